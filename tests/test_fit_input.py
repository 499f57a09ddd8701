"""What a fit refuses, how it says that it did not converge, and real answers."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import wide

import mtlirt
from mtlirt import Adam, Block, InputError, Responses, fit_mtl


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.9}, "C must be a number from 1 to 20, not 0.9"),
        ({"C": math.nan}, "C must be .* not nan"),
        ({"C": "x"}, "C must be .* not 'x'"),
        ({"C": None}, "C must be"),
        ({"C": 1e6}, "C must be"),
        ({"missing_weight": "none"}, "missing_weight must be one of"),
        ({"on_fail": "cry"}, "on_fail must be one of"),
        ({"solver": "block"}, "solver must be Block"),
        ({"penalty_weights": {"d01": 1}}, "no weight for domain 'd02'"),
        ({"penalty_weights": {"d01": 1, "d02": -1, "d03": 1, "d04": 1}}, r"penalty_weights\['d02'\] must be a number"),
        ({"penalty_weights": {"d01": 1, "d02": "x", "d03": 1, "d04": 1}}, r"penalty_weights\['d02'\] must be .* 'x'"),
        ({"penalty_weights": 2.0}, "penalty_weights must map domains"),
    ],
)
def test_bad_arguments(small, arguments, message):
    with pytest.raises(InputError, match=message):
        fit_mtl(small.responses, 1.0, **arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Block(max_sweeps=0),
        lambda: Block(max_sweeps=2.5),
        lambda: Block(tol=0),
        lambda: Adam(lr=-1),
        lambda: Adam(steps=0),
        lambda: Adam(dtype="int"),
        lambda: Adam(tol=1),
        lambda: Adam(window=0),
    ],
)
def test_bad_solver_options_fail_where_they_are_written(make):
    with pytest.raises(ValueError, match=r"Block|Adam"):
        make()


@pytest.mark.parametrize("lam", [-1, math.nan, "x", None, -math.inf, 1e300, 1e-300, np.ones(2), 1j, True])
def test_bad_lam(small, lam):
    with pytest.raises(InputError, match="lam"):
        fit_mtl(small.responses, lam)


def test_responses_of_another_kind(small):
    for other in (None, small.responses.scores, small.responses.to_long()):
        with pytest.raises(InputError, match="responses must be Responses"):
            fit_mtl(other, 1.0)


def test_a_domain_that_few_models_answered(small):
    frame, domains = wide(small.responses)
    few = frame.copy()
    few.iloc[2:, :30] = np.nan
    with pytest.raises(InputError, match=r"domain 'd01' was answered by fewer than 3 models \(2\)"):
        fit_mtl(Responses.from_wide(few, domains=domains), 1.0)
    three = frame.copy()
    three.iloc[3:, :30] = np.nan
    three = Responses.from_wide(three, domains=domains)
    with pytest.raises(InputError, match=r"domain 'd01': C = 1\.1 leaves no trait of 3 models"):
        fit_mtl(three, 0, C=1.1)
    assert fit_mtl(three, 1.0).theta.notna().all().all()


def test_too_few_models_and_items(small):
    with pytest.raises(InputError, match="at least 3 models"):
        fit_mtl(small.responses.subset(models=list(small.responses.models[:2])), 1.0)
    keep = (small.responses.items["domain"] != "d01").to_numpy().copy()
    keep[0] = True
    with pytest.raises(InputError, match=r"domain 'd01' has fewer than 2 items"):
        fit_mtl(small.responses.subset(items=keep), 1.0)


def test_empty_models_and_items(small):
    frame, domains = wide(small.responses)
    frame = frame.copy()
    frame.iloc[3] = np.nan
    with pytest.raises(InputError, match=r"models without any answer: 1 \('m04'\)"):
        fit_mtl(Responses.from_wide(frame, domains=domains), 1.0)
    frame, _ = wide(small.responses)
    frame = frame.copy()
    frame.iloc[:, 5] = np.nan
    with pytest.raises(InputError, match=r"items without any answer: 1 \('d01: d01.i006'\)"):
        fit_mtl(Responses.from_wide(frame, domains=domains), 1.0)


def test_init_of_other_data(small, demo):
    with pytest.raises(InputError, match="other models or items"):
        fit_mtl(small.responses, 1.0, init=fit_mtl(demo, 1.0))


def test_a_fit_that_does_not_converge_says_so_once(small):
    with pytest.warns(mtlirt.ConvergenceWarning, match="raise the limit") as record:
        fit = fit_mtl(small.responses, 1.0, solver=Block(max_sweeps=1))
    assert len(record) == 1
    assert not fit.converged
    assert "Not converged" in str(fit.summary())
    with pytest.raises(mtlirt.FitError, match="Not converged"):
        fit_mtl(small.responses, 1.0, solver=Block(max_sweeps=1), on_fail="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_mtl(small.responses, 1.0, solver=Block(max_sweeps=1), on_fail="ignore")
    with pytest.warns(mtlirt.ConvergenceWarning):
        fit_mtl(small.responses, math.inf, solver=Block(max_sweeps=1))


# Real answers --------------------------------------------------------------------------------------------------------


def test_real_answers_at_a_fifth_of_the_threshold(leaderboard):
    lam = 0.2 * float(mtlirt.fusion_thresholds(leaderboard).max())
    fit = fit_mtl(leaderboard, lam)
    assert fit.converged
    assert fit.heterogeneity()["domain"][0] == "gsm8k"


def test_general_rank_on_the_leaderboard(leaderboard):
    fit = fit_mtl(leaderboard, 30)
    total = pd.Series(leaderboard.scores.mean(axis=1), index=fit.models)
    # the issue: Spearman .946 with the mean over all items at the best known optimum
    assert fit.general.corr(total, method="spearman") == pytest.approx(0.946, abs=1e-3)
    scores = fit.scores()
    # the mean of the domain means, which the scores table shows, weighs the domains as the penalty does
    assert scores["general"].corr(scores["mean_score"], method="spearman") > 0.95
    assert "gsm8k (0.49)" in str(fit.summary())
