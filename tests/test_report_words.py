"""Sentences of the report: what they say of fits of all kinds, and that they say nothing that is not known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_report import HOSTILE, RECORD, named

import mtlirt
from mtlirt.report import Evidence, facts, render
from mtlirt.report.checks import arrangements, item_checks
from mtlirt.report.reading import reading_facts
from mtlirt.report.words import isolated, method, pooling


@pytest.fixture(scope="module")
def cv(small):
    return mtlirt.cv_mtl(small.responses, lams=[3.0], folds=5)


def table_where_pooling_is_best():
    return pd.DataFrame(
        {
            "lam": [np.inf, 3.0, 0.0],
            "mean": [0.5, 0.51, 0.52],
            "se": 0.01,
            "excess": [0.0, 0.01, 0.02],
            "excess_se": [0.0, 0.02, 0.001],
            "n_fused": [4, 2, 0],
            "n_converged": 5,
        }
    )


def test_a_lam_chosen_elsewhere_counts_as_chosen(cv):
    told = pooling(cv.fit, Evidence())
    assert told.startswith(f"lam = {cv.fit.lam:.4g} was chosen by 5-fold cross-validation")
    assert told.endswith("Its curve does not lie beside this fit.")
    assert "was given" in pooling(cv.path.fits[1], Evidence())


def test_pooling_of_a_fit_at_another_lam_than_the_best(small):
    evidence = Evidence(cv=table_where_pooling_is_best())
    assert evidence.chosen == np.inf
    apart = pooling(mtlirt.fit_mtl(small.responses, 0.0), evidence)
    assert apart == (
        "Separate domains predict held-out answers with log-loss 0.5200 (se 0.0100), clearly worse, by 0.02000 over "
        "the best (se 0.00100, paired over folds). Complete pooling predicts them best."
    )
    between = pooling(mtlirt.fit_mtl(small.responses, 3.0), evidence)
    assert "not clearly worse, by 0.01000 over the best" in between
    assert "Complete pooling predicts them best. Separate domains predict them clearly worse" in between
    best = pooling(mtlirt.fit_mtl(small.responses, np.inf), evidence)
    assert best.startswith("Complete pooling predicts held-out answers best: log-loss 0.5000")


def test_few_folds_make_nothing_clear(small):
    evidence = Evidence(cv=table_where_pooling_is_best().assign(n_converged=4))  # 3 degrees of freedom
    told = pooling(mtlirt.fit_mtl(small.responses, 0.0), evidence)
    assert "clearly" not in told
    assert "worse, by 0.02000 over the best" in told


def test_ranks_of_a_fit_at_another_lam(small, cv):
    other = next(fit for fit in cv.path.fits if fit.lam != cv.fit.lam)
    ranks = facts(other, Evidence.of(other, cv))["ranks"]
    scores = other.scores()
    assert [column["label"] for column in ranks[:2]] == ["this fit", f"chosen lam, {cv.fit.lam:.4g}"]
    assert ranks[0]["values"] == list(scores["general_rank"])
    assert ranks[1]["values"] == list(cv.fit.scores()["general_rank"])


@pytest.mark.parametrize("verb", ["fit_nrm", "fit_llm_nrm"])
def test_one_trait_has_no_penalty(golden_options, verb):
    fit = getattr(mtlirt, verb)(golden_options)
    told = facts(fit)
    said = {each["about"]: each["text"] for each in told["verdict"]}
    assert said["Domains"] == "This model has one trait for all domains."
    assert said["Pooling"].startswith("This model has one trait for all domains")
    assert told["left_out"]["domains"].startswith("This model has one trait for all domains")
    page = render(told)
    assert "lam =" not in page
    assert "at this lam" not in page
    assert "Penalty" not in dict(told["summary"])
    assert "lam" not in dict(told["settings"])
    assert "lam =" not in str(fit.summary())
    legend = dict(told["flag_legend"])
    assert not {"flat", "at bound"} & {*legend}


def test_method_says_how_domains_borrow(small):
    one = mtlirt.fit_mtl(small.responses.subset(domains=small.responses.domains[:1]), 1.0)
    assert any("nothing is borrowed" in sentence for sentence in method(one))
    assert any("borrow nothing from each other (lam = 0)" in x for x in method(mtlirt.fit_mtl(small.responses, 0.0)))
    told = " ".join(method(mtlirt.fit_mtl(small.responses, 1.0)))
    assert "its mean over items, so domains weigh alike" in told
    assert "a sine of 0 means the same trait" in told
    assert "weight of its own" not in told
    weights = dict.fromkeys(small.responses.domains, 1.0) | {small.responses.domains[0]: 2.0}
    told = " ".join(method(mtlirt.fit_mtl(small.responses, 1.0, penalty_weights=weights)))
    assert f"{isolated(small.responses.domains[0])} 2," in told


def test_names_do_not_turn_sentences(small):
    names = ["\u202eright-to-left", *HOSTILE]
    fit = mtlirt.fit_mtl(named(small.responses, names, names), 1.0)
    told = facts(fit)
    sentences = [each["text"] for each in told["verdict"]] + told["notes"] + told["method"]
    for sentence in sentences:
        assert sentence.count("\u2068") == sentence.count("\u2069")
        assert not any(c in sentence for c in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067")
    page = render(facts(fit, Evidence(reading={**RECORD, "warnings": ["\u202eturned"]})))
    assert "<li>turned</li>" in page
    assert "the verdict goes by the standard error of the difference" in page
    assert '<dd dir="auto">' not in page
    assert '<li dir="auto">' not in page


def test_only_unlikely_coincidences_are_repeats():
    """30 models, 8 items: an item that one model missed is repeated by chance, one half right is not."""
    rng = np.random.default_rng(3)
    theta = np.linspace(-2, 2, 30)
    scores = (rng.random((30, 8)) < 1 / (1 + np.exp(-theta[:, None]))).astype(float)
    scores[:, 1] = scores[:, 0]
    scores[:, 2:4] = 1.0
    scores[4, 2:4] = 0.0
    scores[:, 4] = 1.0
    answers = mtlirt.Responses.from_wide(pd.DataFrame(scores, columns=[f"i{j}" for j in range(8)]), domains="d")
    fit = mtlirt.fit_mtl(answers, 1.0, on_fail="ignore")
    same = item_checks(fit, answers)["same_as"]
    assert [j for j in range(8) if same[j]] == [1]
    # log C(30, 1) = 3.4 is below log(8^2 / 2) + 3 = 6.5, log C(30, 15) = 18.9 is above
    assert arrangements(scores[:, 2]) < np.log(32) + 3 < arrangements(scores[:, 0])
    assert arrangements(np.full(5, np.nan)) == 0


def test_flags_of_items_that_all_models_answer_alike(small):
    frame = small.responses.to_long()
    first = small.responses.items["item"][0]
    frame.loc[frame["item"] == first, "score"] = 1.0
    fit = mtlirt.fit_mtl(mtlirt.Responses.from_long(frame), 1.0)
    told = facts(fit)
    assert told["items"]["flags"][0] == "all right"
    assert told["items"]["b"][0] is None
    items = replace(fit, items=fit.items.assign(b=101.0))
    assert set(facts(items)["items"]["b"]) == {None}
    text = told["verdict"][4]["text"]
    assert text.endswith(
        "An item may have several flags. Inverted and repeated items are not known: that takes the answers themselves."
    )


def test_scores_of_tables_have_no_task():
    files = [{"file": "a.csv", "format": "table", "task": None, "metric": "score", "rows": 1, "used": True}]
    assert reading_facts({**RECORD, "files": files})["scores"] == [["score", 1]]


def test_versions_of_the_page_and_of_the_fit(small):
    fit = mtlirt.fit_mtl(small.responses, 1.0)
    told = facts(fit)["versions"]
    assert [name for name, _ in told] == ["page made with"]
    assert facts(fit, Evidence(fitted_with="0.0.1"))["versions"][0] == ["fit made with", "mtlirt 0.0.1"]


def test_wrong_options_of_an_item_nobody_solved_may_tell(golden_options):
    fit = mtlirt.fit_nrm(golden_options)
    flagged = replace(fit, items=fit.items.assign(flag=["all wrong", "all right"] + [""] * (len(fit.items) - 2)))
    wrong, right = (next(x for x in facts(flagged)["notes"] if f"answered {how} by" in x) for how in ("wrong", "right"))
    assert "They say nothing" in right
    assert "They say nothing" not in wrong
