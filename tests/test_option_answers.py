"""From tables with options or probabilities to what option models fit: read, left out, counted, refused."""

import numpy as np
import pandas as pd
import pytest
from conftest import LAW, LETTERS, table_of

import mtlirt
from mtlirt import InputError, Responses
from mtlirt.data.options import option_answers


@pytest.fixture(scope="module")
def golden(golden_options):
    return golden_options


def test_probabilities_and_keys_alone(golden):
    table = golden.to_long()[["model", "domain", "item", "probs", "key"]]
    responses = Responses.from_long(table, score=None, probs="probs", key="key")
    np.testing.assert_array_equal(responses.scores, golden_argmax(golden))
    assert mtlirt.fit_nrm(responses).loss == pytest.approx(mtlirt.fit_nrm(golden, channel="soft").loss, rel=1e-9)


def golden_argmax(golden):
    """Right where the most probable option is the key."""
    long = golden.to_long()
    right = [LETTERS[int(np.argmax(p))] == key for p, key in zip(long["probs"], long["key"], strict=True)]
    return np.reshape(right, (golden.n_models, golden.n_items)).astype(float)


def test_answers_given_twice_with_different_options_are_refused(golden):
    table = golden.to_long()
    wrong = table[(table["option"] != table["key"]) & (table["n_options"] > 3)].iloc[[0]]
    other = next(x for x in "ABCD" if x not in (wrong["option"].iloc[0], wrong["key"].iloc[0]))
    twice = pd.concat([table, wrong.assign(option=other)]).astype({"option": str})
    with pytest.raises(InputError, match="given twice with different options"):
        Responses.from_long(twice, score=None, option="option", key="key", n_options="n_options")
    probs = [list(reversed(wrong["probs"].iloc[0]))]
    with pytest.raises(InputError, match="given twice with different probabilities"):
        Responses.from_long(pd.concat([table, wrong.assign(probs=probs)]), probs="probs", key="key")


def test_empty_probabilities_are_none(golden):
    table = golden.to_long().assign(probs=None)
    responses = Responses.from_long(table, probs="probs", **LAW)
    assert responses.blocks.probs is None
    assert option_answers(responses, "auto").channel == "hard"


def test_options_without_a_score_are_counted(golden):
    table = golden.to_long()
    table.loc[table.index[::13], "score"] = np.nan
    lost = len(table.index[::13])
    responses = Responses.from_long(table, option="option", key="key", n_options="n_options")
    assert any(f"but no score, left out: {lost}" in note for note in responses.notes)


@pytest.fixture
def odd():
    """Answers with everything that an option model has to leave out."""
    rng = np.random.default_rng(5)
    table = table_of(rng.integers(0, 3, (6, 8)), rng.integers(0, 3, 8), np.full(8, 3), ["a"] * 4 + ["b"] * 4)
    table["score"] = (table["option"] == table["key"]).astype(int)
    table.loc[table["item"] == "q00", "n_options"] = 1
    table.loc[table["item"] == "q00", ["option", "key"]] = "A"
    table.loc[table["item"] == "q01", "key"] = None
    table.loc[table["item"] == "q04", "option"] = "-"
    table.loc[(table["item"] == "q05") & (table["model"] == "m01"), "option"] = "+"
    table.loc[(table["item"] == "q06") & (table["model"] == "m02"), "score"] ^= 1
    table.loc[table["model"] == "m05", "option"] = "-"
    return table


def test_what_is_left_out_is_counted(odd):
    responses = Responses.from_long(odd, option="option", key="key", n_options="n_options")
    assert any("(+) or none (-), set to missing: 14" in note for note in responses.notes)
    answers = option_answers(responses, "auto")
    assert answers.channel == "hard"
    assert list(answers.responses.items["item"]) == ["q02", "q03", "q05", "q06", "q07"]
    assert list(answers.responses.models) == ["m00", "m01", "m02", "m03", "m04"]
    notes = "; ".join(answers.notes)
    for text in (
        "items left out, without a key: 1",
        "items left out, with fewer than two options: 1",
        "items left out, that nobody answered with an option: 1",
        "models left out, without a single option: 1 ('m05')",
        "answers without an option, missing for an option model: 1",
        "scores that differ from (option == key), where an option model goes by the option: 1",
    ):
        assert text in notes
    fit = mtlirt.fit_nrm(responses)
    assert set(answers.notes) <= set(fit.data.notes)
    assert fit.data.answers.to_numpy().sum() == 5 * 5 - 1


def test_most_probable_option_and_ties(golden):
    table = golden.to_long().drop(columns="option")
    lists = list(table["probs"])
    lists[0] = [0.5, 0.5, *([0.0] * (len(lists[0]) - 2))]
    table["probs"] = lists
    responses = Responses.from_long(table, probs="probs", key="key", n_options="n_options")
    answers = option_answers(responses, "hard")
    assert any("the first of several equals: 1" in note for note in answers.notes)
    assert option_answers(responses, "auto").channel == "soft"


def test_answers_that_cannot_be_used(odd, golden):
    scores = Responses.from_long(odd[["model", "domain", "item", "score"]])
    with pytest.raises(InputError, match="have neither"):
        mtlirt.fit_nrm(scores)
    responses = Responses.from_long(odd, option="option", key="key", n_options="n_options")
    with pytest.raises(InputError, match="needs option probabilities"):
        mtlirt.fit_nrm(responses, channel="soft")
    with pytest.raises(InputError, match="no item is left"):
        mtlirt.fit_nrm(responses.subset(items=["q00", "q01"]))
    for arguments in ({"channel": "loud"}, {"ridge": 0}, {"solver": mtlirt.Adam()}, {"C": 0.5}):
        with pytest.raises(InputError):
            mtlirt.fit_nrm(golden, **arguments)
    two_keys = odd.copy()
    two_keys.loc[(two_keys["item"] == "q07") & (two_keys["model"] == "m03"), "key"] = "B"
    two_keys.loc[(two_keys["item"] == "q07") & (two_keys["model"] != "m03"), "key"] = "C"
    with pytest.raises(InputError, match="item 'q07' of domain 'b' has two keys"):
        Responses.from_long(two_keys, option="option", key="key", n_options="n_options")
