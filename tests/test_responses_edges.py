"""Corners of the container and the readers: gaps in probabilities and options, parts that read back, odd cells."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import shared

from mtlirt import InputError, Responses, read_responses

LONG = pd.DataFrame(
    {
        "model": list("xxxyyz"),
        "domain": ["math", "law", "math", "math", "law", "law"],
        "item": ["q1", "q1", "q2", "q1", "q1", "q2"],
        "score": [1, 0, 1, 0, 1, 1],
    }
)
OPTIONS = LONG.assign(option=list("ABBDBA"), key=list("ABBABA"), n=[4, 2, 4, 4, 2, 2])
NAMED = {"option": "option", "key": "key", "n_options": "n"}
MIXED = [[0.5, 0.5], [0.1, 0.2, 0.3, 0.4], [0.2] * 5, [0.3, 0.7], [0.25] * 4, [0.6, 0.3, 0.1]]
FRACTIONS = LONG.assign(domain=["math", "law"] * 3, item=list("abcdab"), score=[0.5, 0, 1, 0.25, 1, 1])
RUNS = FRACTIONS.assign(trials=[2, 1, 3, 4, 1, 1])


def read_back(responses, tmp_path):
    responses.to_long().to_parquet(tmp_path / "answers.parquet")
    return read_responses(tmp_path / "answers.parquet")


PARTS = {
    "fewer options": lambda: Responses.from_long(OPTIONS, **NAMED).subset(domains=["law"]),
    "numbers as options": lambda: Responses.from_long(OPTIONS.assign(option=[0, 1, 1, 3, 1, 0], key=1), **NAMED),
    "no option left": lambda: Responses.from_long(OPTIONS.assign(option=[None, *"BBDBA"]), **NAMED).subset(
        models=["x"], items=[("math", "q1")]
    ),
    "keys without options": lambda: Responses.from_long(OPTIONS, key="key").subset(domains=["law"]),
    "fractions become binary": lambda: Responses.from_long(FRACTIONS).subset(items=["c"]),
    "runs": lambda: Responses.from_long(RUNS, trials="trials").subset(models=["x", "y"]),
    "2 to 5 probabilities": lambda: Responses.from_long(LONG.assign(probs=MIXED, item=list("abcdef")), probs="probs"),
    "item without probabilities": lambda: Responses.from_long(LONG.assign(probs=[*MIXED[:3], None, *[None] * 2]),
                                                              probs="probs"),
    "a model without answers": lambda: Responses.from_long(LONG.assign(score=[1, 0, 1, 0, 1, None])),
    "cleaned": lambda: Responses.from_long(OPTIONS, **NAMED).clean(constant=True, min_answers=1),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_every_part_reads_back(name, tmp_path):
    r = PARTS[name]()
    back = read_back(r, tmp_path)
    assert back == r
    assert back.labels == r.labels
    pd.testing.assert_frame_equal(back.items, r.items)
    assert (r.to_long().shape[0], hash(back)) == (r.n_models * r.n_items, hash(r))


def test_facts_read_back_with_all_digits_and_types(tmp_path):
    facts = pd.DataFrame(
        {
            "size": [7, 8, 9],
            "accuracy": [1 / 3, 0.1234567890123456, 1e-13],
            "released": pd.to_datetime(["2024-01-02", None, "2025-03-04"]),
            "family": pd.Categorical(["a", "b", "a"]),
            "open": [True, False, True],
            "note": ["one", None, "three"],
        },
        index=list("xyz"),
    )
    r = Responses.from_long(LONG, model_info=facts)
    pd.testing.assert_frame_equal(read_back(r, tmp_path).model_info, r.model_info)


def test_binary_part_of_a_domain_with_fractions_is_stored_small():
    assert PARTS["fractions become binary"]().block("math").dtype == np.int8


def test_probabilities_written_as_text():
    as_text = LONG.assign(probs=[str(p) for p in MIXED], item=list("abcdef"))
    assert Responses.from_long(as_text, probs="probs") == PARTS["2 to 5 probabilities"]()


def test_probabilities_say_how_many_options_there_are():
    r = Responses.from_long(LONG.assign(option="B", probs=[[0.25] * 4] * 6), option="option", probs="probs")
    assert r.items["n_options"].tolist() == [4, 4, 4, 4]
    assert r.labels == ("A", "B", "C", "D")


def test_number_of_options_is_filled_in_where_it_is_not_given():
    r = Responses.from_long(OPTIONS.assign(n=[4, None, 4, 4, None, 2], key=list("AHBAHA")), **NAMED)
    assert r.items["n_options"].tolist() == [4, 4, 8, 2]
    assert r.items["key"].tolist() == ["A", "B", "H", "A"]


@pytest.mark.parametrize(
    ("changed", "arguments", "messages"),
    [
        ({"score": [[1]] * 6}, {}, ["'score'", "not numbers", "row 1"]),
        ({"score": pd.Timestamp("2020-01-01")}, {}, ["'score'", "not numbers"]),
        ({"score": 1j}, {}, ["'score'", "not numbers"]),
        ({"model": [" ", *"xxyyz"]}, {}, ["'model'", "names missing", "row 1"]),
        ({"p": [[0.5, 0.5]] * 5 + [["a", "b"]]}, {"probs": "p"}, ["'p'", "lists of numbers", "row 6"]),
        ({"p": [[0.5, 0.5]] * 5 + [0.5]}, {"probs": "p"}, ["'p'", "lists of numbers", "row 6"]),
        ({"p": [[0.5, 0.5]] * 5 + ["half"]}, {"probs": "p"}, ["'p'", "lists of numbers", "row 6"]),
        ({"p": [[0.5, 0.5]] * 5 + [[0.5, np.nan]]}, {"probs": "p"}, ["'p'", "sum to 1", "row 6"]),
        ({"n": 2.5, "o": "A"}, {"n_options": "n", "option": "o"}, ["'n'", "whole numbers"]),
        ({"score": 0.4, "n": 2.5}, {"trials": "n"}, ["'n'", "whole numbers"]),
        ({"k": list("ABBCBA")}, {"key": "k"}, ["'q1'", "'math'", "'A' and 'C'", "row 4"]),
    ],
)
def test_odd_cells(changed, arguments, messages):
    with pytest.raises(InputError) as error:
        Responses.from_long(LONG.assign(**changed), **arguments)
    for message in messages:
        assert message in str(error.value)


def test_a_column_given_twice():
    with pytest.raises(InputError, match="'score' appears twice"):
        Responses.from_long(pd.concat([LONG, LONG[["score"]]], axis=1))


WIDE = pd.DataFrame({"a.1": [1, 0], "b.1": [1, 1]}, index=["x", "y"])


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        (pd.Series(["u", "v", "w"], index=["a.1", "a.1", "b.1"]), "more than once"),
        ({"a.1": None, "b.1": "k"}, "no domain is given for item 'a.1'"),
        ({"a.1": "k"}, "no domain is given for item 'b.1'"),
        (lambda item: None, "no domain is given for item 'a.1'"),
        (["u", "v"], "not a list"),
    ],
)
def test_rules_that_leave_a_domain_open(domains, message):
    with pytest.raises(InputError, match=message):
        Responses.from_wide(WIDE, domains)


def test_items_named_by_numbers():
    numbered = WIDE.set_axis([1, 2], axis=1)
    assert Responses.from_wide(numbered, {1: "a", 2: "b"}).domains == ("a", "b")
    with pytest.raises(InputError, match="'1' appears twice"):
        Responses.from_wide(WIDE.set_axis([1, "1"], axis=1), None)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda m: pd.array(m, dtype="boolean")])
def test_masks_over_items(kind):
    r = Responses.from_long(LONG)
    assert r.subset(items=kind([True, False, False, True])).items["item"].tolist() == ["q1", "q2"]
    with pytest.raises(InputError, match="length 2"):
        r.subset(items=kind([True, False]))


def test_one_name_is_one_name():
    r = Responses.from_long(LONG.replace({"model": {"x": "ab"}, "item": {"q1": "long"}}))
    assert r.subset(models="ab").models.tolist() == ["ab"]
    assert r.subset(items="long").items["item"].tolist() == ["long", "long"]


def test_constant_models_are_counted():
    scores = pd.DataFrame({"a": [1, 0.5, 1], "b": [1, 0.5, 0], "c": [None, 0.5, 0]}, index=list("xyz"))
    assert "models whose scores are all equal: 2" in str(Responses.from_wide(scores, None).summary())


# Files ---------------------------------------------------------------------------------------------------------------


def read_text(tmp_path, name, text, **arguments):
    (tmp_path / name).write_text(text)
    return read_responses(tmp_path / name, **arguments)


def test_words_for_missing_are_names_in_name_columns(tmp_path):
    r = read_text(tmp_path, "a.csv", "model,item,score\nNA,nan,1\nnull,nan,NA\nNA,None,0\n")
    assert (r.models.tolist(), r.items["item"].tolist(), r.n_answers) == (["NA", "null"], ["nan", "None"], 2)


def test_model_column_of_a_wide_table(tmp_path):
    text = "a,{},b\n1,x,0\n0,y,\n"
    facts = pd.DataFrame({"size": [7, 8]}, index=["x", "y"])
    r = read_text(tmp_path, "a.csv", text.format("agent"), model="agent", model_info=facts)
    assert (r.models.tolist(), r.items["item"].tolist(), r.n_answers) == (["x", "y"], ["a", "b"], 3)
    assert r == read_text(tmp_path, "b.csv", text.format("model"))
    assert r.model_info["size"].tolist() == [7, 8]


def test_json_values_stay_as_they_are_written(tmp_path):
    r = read_text(tmp_path, "a.jsonl", '{"agent": "007", "date": 1, "b_at": 0}\n\n{"agent": "008", "date": 0}\n')
    assert r.models.tolist() == ["007", "008"]
    np.testing.assert_array_equal(r.scores, [[1, 0], [0, np.nan]])


def test_probabilities_in_a_csv(tmp_path):
    r = read_text(tmp_path, "a.csv", 'model,item,score,probs\nx,q,1,"[0.5, 0.5]"\ny,q,0,"[0.25, 0.75]"\nz,q,0,\n')
    np.testing.assert_array_equal(r.probs_block("all")[0], [[0.5, 0.5], [0.25, 0.75], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("name", "text", "arguments", "messages"),
    [
        ("a.csv", "model,a,a\nx,1,0\ny,0,1\n", {}, ["'a' appears twice"]),
        ("a.jsonl", '{"model": "x"}\n[1]\n', {}, ["line 2", "not a JSON object"]),
        ("a.jsonl", '{"model": "x"}\n{"model"\n', {}, ["line 2", "not JSON"]),
        ("a.csv", "model,question,acc\nx,q1,1\n", {"item": "quest"}, ["'quest'", "'question'"]),
        ("a.csv", "model,question,acc\nx,q1,1\n", {}, ["'question'", "row 1", "read as a wide table"]),
        ("a.csv", "model,item,score\nx,q,1\n", {"domains": {"p": "d"}}, ["no domain is given for item 'q'"]),
    ],
)
def test_files_that_mislead(tmp_path, name, text, arguments, messages):
    with pytest.raises(InputError) as error:
        read_text(tmp_path, name, text, **arguments)
    assert str(error.value).startswith(str(tmp_path / name))
    for message in messages:
        assert message in str(error.value)


# Real answers --------------------------------------------------------------------------------------------------------


def test_mmlu_pro_reads_back(tmp_path):
    r = read_responses(shared("data", "mmlu_pro.parquet"))
    # the data's README counts 82; 4 of these chose an option beyond n_options, which is set to missing first
    assert "scores kept although they differ from (option == key): 78" in r.notes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_back(r, tmp_path) == r


def test_blocks_are_not_written_to(demo):
    """A tensor that shares their memory would change the answers under everybody's feet."""
    with pytest.raises(ValueError, match="read-only"):
        demo.block("law")[0, 0] = 1


def test_columns_that_are_not_read_are_named():
    table = pd.DataFrame({"model": ["x"], "domain": "d", "item": "q", "score": 1, "option": "A", "key": "A"})
    assert Responses.from_long(table).notes == ("columns that were not asked for, and not read: option, key",)


def test_facts_about_other_models(demo):
    with pytest.raises(InputError, match="model_info names none of the models"):
        demo.with_model_info(pd.DataFrame({"name": ["Elm-1B"], "size": [1]}))
