"""The container: building, reading back, selecting, and refusing."""

import numpy as np
import pandas as pd
import pytest
from conftest import shared
from hypothesis import given, settings
from hypothesis import strategies as st

from mtlirt import DataWarning, InputError, Responses, read_responses

LONG = pd.DataFrame(
    {
        "model": ["x", "x", "x", "y", "y", "z"],
        "domain": ["math", "law", "math", "math", "law", "law"],
        "item": ["q1", "q1", "q2", "q1", "q1", "q2"],
        "score": [1, 0, 1, 0, 1, 1],
    }
)


def lookup(responses):
    """Scores by (model, domain, item), answered cells only."""
    table = responses.to_long().dropna(subset="score")
    return {(m, d, i): s for m, d, i, s in table[["model", "domain", "item", "score"]].itertuples(index=False)}


def test_long_table():
    r = Responses.from_long(LONG)
    assert list(r.models) == ["x", "y", "z"]
    assert r.domains == ("math", "law")  # order of first appearance
    assert list(zip(r.items["domain"], r.items["item"], strict=True)) == [
        ("math", "q1"), ("math", "q2"), ("law", "q1"), ("law", "q2"),
    ]  # the same id in two domains is two items  # fmt: skip
    assert r.block("math").dtype == np.int8
    np.testing.assert_array_equal(r.block("math"), [[1, 1], [0, -1], [-1, -1]])
    np.testing.assert_array_equal(r.scores[0], [1, 1, 0, np.nan])
    assert (r.n_models, r.n_items, r.n_answers) == (3, 4, 6)
    assert r.sizes.to_dict() == {"math": 2, "law": 2}
    assert repr(r) == "Responses: 3 models x 4 items in 2 domains, 6 answers (50.0% missing)"


def test_without_domains():
    r = Responses.from_long(LONG[LONG["domain"] == "law"], domain=None)
    assert r.domains == ("all",)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), j=st.integers(1, 12), missing=st.floats(0, 0.8))
def test_row_order_does_not_matter(seed, n, j, missing):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        [(f"m{i}", f"d{k % 3}", f"q{k // 2}", float(rng.integers(0, 3)) / 2) for i in range(n) for k in range(j)],
        columns=["model", "domain", "item", "score"],
    ).drop_duplicates(["model", "domain", "item"])
    table.loc[rng.random(len(table)) < missing, "score"] = np.nan
    shuffled = table.sample(frac=1, random_state=int(seed % 2**31))
    one, two = Responses.from_long(table), Responses.from_long(shuffled)
    assert lookup(one) == lookup(two)
    expected = table.dropna(subset="score")
    assert lookup(one) == dict(
        zip(expected[["model", "domain", "item"]].itertuples(index=False, name=None), expected["score"], strict=True)
    )


def test_wide_table():
    wide = pd.DataFrame({"who": ["x", "y"], "math.q1": [1, 0], "law.q1": [1, None], "math.q2": [0.5, 1]})
    r = Responses.from_wide(wide, domains=lambda item: item.split(".")[0])
    assert list(r.models) == ["x", "y"]
    assert r.domains == ("math", "law")
    assert list(r.items["item"]) == ["math.q1", "math.q2", "law.q1"]
    assert r.block("math").dtype == np.float64
    assert r.block("law").dtype == np.int8
    by_map = Responses.from_wide(wide, domains={"math.q1": "math", "law.q1": "law", "math.q2": "math"})
    by_series = Responses.from_wide(
        wide.set_index("who"), domains=pd.Series({"math.q1": "math", "law.q1": "law", "math.q2": "math"})
    )
    assert r.fingerprint == by_map.fingerprint == by_series.fingerprint
    assert Responses.from_wide(wide, domains=None).domains == ("all",)
    assert Responses.from_wide(wide, domains="exam").domains == ("exam",)
    with pytest.raises(InputError, match=r"no domain is given for item 'law.q1'"):
        Responses.from_wide(wide, domains={"math.q1": "math"})
    with pytest.raises(InputError, match="more than one row"):
        Responses.from_wide(pd.concat([wide, wide]), domains=None)


def test_names_are_text():
    r = Responses.from_long(LONG.assign(model=[7, 7, 7, 8, 8, 9]))
    assert list(r.models) == ["7", "8", "9"]


@pytest.mark.parametrize("scores", [[True, False] * 3, ["True", "false"] * 3, ["1", "0.0"] * 3])
def test_scores_as_words(scores):
    r = Responses.from_long(LONG.assign(score=scores))
    assert sorted(lookup(r).values()) == [0, 0, 0, 1, 1, 1]


# Options -------------------------------------------------------------------------------------------------------------


def option_table(options=("A", "C", "B", "B", None, "A"), keys=("A", "B", "B", "A", "B", "C")):
    return LONG.assign(option=options, key=keys, n_options=[3, 4, 2, 3, 4, 4])


def test_options_and_keys():
    r = Responses.from_long(option_table(), option="option", key="key", n_options="n_options")
    np.testing.assert_array_equal(r.option_block("math"), [[0, 1], [1, -1], [-1, -1]])
    assert list(r.items["key"]) == ["A", "B", "B", "C"]
    assert list(r.items["n_options"]) == [3, 2, 4, 4]
    assert r.labels == ("A", "B", "C", "D")
    scored = Responses.from_long(option_table(), score=None, option="option", key="key", n_options="n_options")
    # y chose B, z chose A where the key says C; a missing option is a missing score
    assert lookup(scored) == {("x", "math", "q1"): 1, ("x", "law", "q1"): 0, ("x", "math", "q2"): 1,
                              ("y", "math", "q1"): 0, ("z", "law", "q2"): 0}  # fmt: skip


def test_scores_that_differ_from_the_key_are_kept_and_counted():
    r = Responses.from_long(option_table(), option="option", key="key", n_options="n_options")
    assert any("differ from (option == key): 1" in note for note in r.notes)  # z: score 1, option A, key C
    assert lookup(r)["z", "law", "q2"] == 1


def test_options_as_numbers():
    r = Responses.from_long(option_table((0, 2, 1, 1, None, 0), (0, 1, 1, 0, 1, 2)), option="option", key="key")
    assert r.labels == ("0", "1", "2")
    assert list(r.items["key"]) == ["0", "1", "1", "2"]


def test_options_beyond_the_item_are_missing_and_counted():
    r = Responses.from_long(option_table(("D", *"CBBBA")), option="option", key="key", n_options="n_options")
    assert r.option_block("math")[0, 0] == -1
    assert any("beyond the item's options: 1" in note for note in r.notes)
    assert lookup(r)["x", "math", "q1"] == 1


def test_probabilities_of_two_to_five_options():
    rng = np.random.default_rng(0)
    probs = [rng.dirichlet(np.ones(k)) for k in (2, 5, 3, 2, 5, 4)]
    r = Responses.from_long(LONG.assign(probs=probs), probs="probs")
    assert list(r.items["n_options"]) == [2, 3, 5, 4]
    block, offsets = r.probs_block("math")
    np.testing.assert_array_equal(offsets, [0, 2, 5])
    assert block.dtype == np.float32
    np.testing.assert_allclose(block[0], np.concatenate([probs[0], probs[2]]), rtol=1e-6)  # float32
    assert np.isnan(block[1, 2:]).all()


# Reading back --------------------------------------------------------------------------------------------------------

FACTS = pd.DataFrame({"size": [7.0, None, 70.0], "family": ["a", "b", None]}, index=["x", "y", "q"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Responses.from_long(LONG),
        lambda: Responses.from_long(
            LONG.assign(score=[0.5, 0, 1, 0.25, 1, 1], trials=[2, 1, 3, 4, 1, 1]), trials="trials"
        ),
        lambda: Responses.from_long(option_table(), option="option", key="key", n_options="n_options"),
        lambda: Responses.from_long(
            LONG.assign(
                probs=[[0.5, 0.5], [0.1, 0.2, 0.7], [1.0, 0.0], [0.25, 0.75], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
            ),
            probs="probs",
        ),
        lambda: Responses.from_long(LONG, model_info=FACTS),
    ],
    ids=["binary", "trials", "options", "probs", "facts"],
)
def test_parquet_holds_everything(make, tmp_path):
    r = make()
    r.to_long().to_parquet(tmp_path / "r.parquet")
    back = read_responses(tmp_path / "r.parquet")
    assert back.fingerprint == r.fingerprint
    assert list(back.models) == list(r.models)
    if r.model_info is not None:
        pd.testing.assert_frame_equal(back.model_info, r.model_info, check_dtype=False, check_names=False)


def test_model_facts_follow_the_models():
    r = Responses.from_long(LONG, model_info=FACTS.rename_axis("model").reset_index())
    assert list(r.model_info.index) == ["x", "y", "z"]
    assert np.isnan(r.model_info.loc["z", "size"])
    assert list(r.subset(models=["z", "x"]).model_info.index) == ["x", "z"]
    with pytest.raises(InputError, match="more than one row for model 'x'"):
        Responses.from_long(LONG, model_info=pd.concat([FACTS, FACTS]))


def test_the_fingerprint_sees_every_answer():
    seen = {Responses.from_long(LONG).fingerprint}
    for row in range(len(LONG)):
        changed = LONG.copy()
        changed.loc[row, "score"] = 1 - changed.loc[row, "score"]
        seen.add(Responses.from_long(changed).fingerprint)
    assert len(seen) == 1 + len(LONG)


# Selecting -----------------------------------------------------------------------------------------------------------


def test_subset():
    r = Responses.from_long(LONG)
    assert r.subset(domains=["law"]).domains == ("law",)
    assert r.subset(models=["z", "x"]).models.tolist() == ["x", "z"]
    assert r.subset(items=["q2"]).n_items == 2
    assert r.subset(items=[("law", "q2")]).items["domain"].tolist() == ["law"]
    assert r.subset(items=np.array([True, False, False, True])).domains == ("math", "law")
    one = r.subset(models=["x"])
    assert one.n_models == 1
    for arguments, name in (({"models": ["w"]}, "'w'"), ({"items": ["q9"]}, "'q9'"), ({"domains": ["art"]}, "'art'"),
                            ({"items": [("math", "q9")]}, "q9")):  # fmt: skip
        with pytest.raises(InputError, match=name):
            r.subset(**arguments)
    with pytest.raises(InputError, match="nothing is left"):
        r.subset(items=["q2"], domains=[])


def test_subset_keeps_options_and_probabilities():
    r = Responses.from_long(option_table(), option="option", key="key", n_options="n_options")
    part = r.subset(domains=["law"], models=["x", "z"])
    np.testing.assert_array_equal(part.option_block("law"), [[2, -1], [-1, 0]])
    probs = [[0.5, 0.5], [0.1, 0.2, 0.7], [1.0, 0.0], [0.25, 0.75], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
    soft = Responses.from_long(LONG.assign(probs=probs), probs="probs").subset(items=[("law", "q2"), ("math", "q2")])
    np.testing.assert_allclose(soft.probs_block("law")[0][2], [0.5, 0.25, 0.25])
    np.testing.assert_allclose(soft.probs_block("math")[0][0], [1.0, 0.0])


def test_clean():
    wide = pd.DataFrame(
        {"a": [1, 1, 1, 1], "b": [1, 0, 1, None], "c": [0, 1, 0, None], "e": [0, 0, None, None]},
        index=["x", "y", "z", "w"],
    )
    r = Responses.from_wide(wide, domains=None)
    cleaned = r.clean(constant=True)
    assert cleaned.items["item"].tolist() == ["b", "c"]
    assert cleaned.notes == ("items dropped because all models answered them alike: 2",)
    few = r.clean(min_answers=3)
    assert few.models.tolist() == ["x", "y", "z"]
    assert few.items["item"].tolist() == ["a", "b", "c"]
    assert len(few.notes) == 2
    twins = Responses.from_wide(wide[["a", "b", "c"]], domains=None).clean(duplicates=True)
    assert twins.models.tolist() == ["x", "y", "w"]
    assert "earlier model: 1" in twins.notes[0]
    assert r.clean() is r


def test_summary():
    text = str(Responses.from_long(LONG).summary())
    assert "3 models x 4 items in 2 domains" in text
    assert "without any answer in some domain: 1" in text
    table = Responses.from_long(LONG).summary().table
    assert table["n_answers"].tolist() == [3, 3]
    assert table["share_missing"].tolist() == [0.5, 0.5]
    assert "<table" in Responses.from_long(LONG).summary()._repr_html_()


# Refusing ------------------------------------------------------------------------------------------------------------


def with_cell(column, row, value):
    table = LONG.astype({column: object}).copy()
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "arguments", "messages"),
    [
        (LONG.drop(columns="domain"), {}, ["'domain'", "'model', 'item', 'score'"]),
        (LONG.drop(columns="score"), {}, ["'score'"]),
        (LONG.iloc[:0], {}, ["no rows"]),
        (with_cell("score", 2, 1.2), {}, ["'score'", "row 3", "1.2", "0 to 1"]),
        (with_cell("score", 4, -1), {}, ["row 5", "-1"]),
        (with_cell("score", 1, "yes"), {}, ["not numbers", "row 2", "'yes'"]),
        (with_cell("model", 3, None), {}, ["'model'", "row 4"]),
        (with_cell("item", 0, np.nan), {}, ["'item'", "row 1"]),
        (pd.concat([LONG, LONG.assign(score=1 - LONG["score"])]), {}, ["6 answers", "(x, math, q1)", "row 7"]),
        (LONG, {"score": None}, ["option (or probs) and a key"]),
        (LONG, {"option": "choice"}, ["'choice'"]),
        (option_table(("A", "?", *"BBBA")), {"option": "option"}, ["'option'", "row 2", "'?'"]),
        (option_table(("A", "1", *"BBBA")), {"option": "option"}, ["partly as letters"]),
        (option_table(keys=(0, 1, 1, 0, 1, 2)), {"option": "option", "key": "key"}, ["both be letters"]),
        (option_table(keys=tuple("ABBBBC")), {"option": "option", "key": "key"}, ["'q1'", "two keys", "row 4"]),
        (LONG.assign(n=[2, 2, 2, 3, 2, 2], option="A"), {"option": "option", "n_options": "n"}, ["two numbers"]),
        (LONG.assign(n=2, option="A", key="C"), {"option": "option", "key": "key", "n_options": "n"}, ["beyond"]),
        (LONG.assign(p=[[0.5, 0.5]] * 5 + [[0.5, 0.4]]), {"probs": "p"}, ["'p'", "row 6", "do not sum to 1"]),
        (LONG.assign(p=[[0.5, 0.5]] * 5 + [[1.5, -0.5]]), {"probs": "p"}, ["'p'", "row 6"]),
        (LONG.assign(p=[[0.5, 0.5]] * 3 + [[1.0]] + [[0.5, 0.5]] * 2), {"probs": "p"}, ["'p'", "row 4", "length"]),
        (LONG.assign(n=[1, 1, 1, 1, 0, 1]), {"trials": "n"}, ["'n'", "row 5"]),
        (LONG.assign(score=0.5, n=[2, 2, 2, 2, 2, 3]), {"trials": "n"}, ["'n'", "row 6"]),
    ],
)  # fmt: skip
def test_bad_tables(table, arguments, messages):
    with pytest.raises(InputError) as error:
        Responses.from_long(table, **arguments)
    for message in messages:
        assert message in str(error.value)


def test_equal_repeats_are_dropped_and_said():
    with pytest.warns(DataWarning, match="same score: 2"):
        r = Responses.from_long(pd.concat([LONG, LONG.iloc[[0, 3]]]))
    assert r.fingerprint == Responses.from_long(LONG).fingerprint
    assert "same score: 2" in r.notes[0]


def test_unknown_domain():
    with pytest.raises(InputError, match="no domain 'art'"):
        Responses.from_long(LONG).block("art")


# Real answers --------------------------------------------------------------------------------------------------------


def test_mmlu_pro():
    r = read_responses(shared("data", "mmlu_pro.parquet"))
    # shared/data/README: 29 x 12,032, 14 domains, 1,713 missing scores, 201 options beyond n_options
    assert (r.n_models, r.n_items, len(r.domains)) == (29, 12032, 14)
    assert r.n_answers == 29 * 12032 - 1713
    assert any(note.endswith("beyond the item's options: 201") for note in r.notes)
    assert r.items["n_options"].between(1, 10).all()
    assert sum(r.summary().table["n_constant_items"]) == 236 + 640


def test_leaderboard(leaderboard):
    assert (leaderboard.n_models, leaderboard.n_items, len(leaderboard.domains)) == (1000, 1133, 6)
    assert leaderboard.n_answers == 1_133_000
    assert "equal those of an earlier model: 11" in str(leaderboard.summary())


@pytest.mark.parametrize(
    ("file", "shape"), [("swebench_verified_wide.csv.gz", (134, 500)), ("terminalbench_wide.csv.gz", (112, 89))]
)
def test_agent_tables(file, shape):
    r = read_responses(shared("data", file))
    assert (r.n_models, r.n_items) == shape
    assert r.domains == ("all",)


def test_log_probabilities_become_probabilities():
    table = pd.DataFrame(
        {
            "model": ["x", "y", "z", "w"],
            "domain": "math",
            "item": "q1",
            "score": [1, 0, 0, 1],
            "key": "A",
            "n_options": 3,
            "logprobs": [
                np.log([0.5, 0.25, 0.125]),
                "[-1.0, null, -2.0]",
                [None, None, None],
                [-800.0, -801.0, -802.0],
            ],
        }
    )
    responses = Responses.from_long(table, key="key", n_options="n_options", logprobs="logprobs")
    block, _ = responses.probs_block("math")
    np.testing.assert_allclose(block[0], np.array([4, 2, 1]) / 7, rtol=1e-6)  # float32
    np.testing.assert_allclose(block[1], np.exp([-1, -np.inf, -2]) / np.exp([-1, -2]).sum(), rtol=1e-6)
    assert np.isnan(block[2]).all()
    np.testing.assert_allclose(block[3], np.exp([0, -1, -2]) / np.exp([0, -1, -2]).sum(), rtol=1e-6)
    # 1 - .875, 1 - e**-1 - e**-2, and 1 where nothing is left
    outside = (0.125 + 1 - np.exp([-1.0, -2.0]).sum() + 1) / 3
    assert any(f"{outside:.2%} of the probability lies outside" in n and "taken as 0: 1" in n for n in responses.notes)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[0.5, -1.0]] * 2, "above 0"),
        (["no list"] * 2, "not lists of numbers"),
        ([[-1.0, "x"]] * 2, "not lists of numbers"),
        ([3.0, 4.0], "not lists of numbers"),
    ],
)
def test_bad_log_probabilities(column, message):
    table = pd.DataFrame({"model": ["x", "y"], "item": "q", "score": [1, 0], "key": "A", "logprobs": column})
    with pytest.raises(InputError, match=message):
        Responses.from_long(table, domain=None, key="key", logprobs="logprobs")
    both = table.assign(probs=[[0.5, 0.5]] * 2, logprobs=[[-1.0, -1.0]] * 2)
    with pytest.raises(InputError, match="not both"):
        Responses.from_long(both, domain=None, key="key", probs="probs", logprobs="logprobs")
