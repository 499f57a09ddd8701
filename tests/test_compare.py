"""The comparison of pooling regimes."""

import math

import numpy as np
import pandas as pd
import pytest
from conftest import LAMS

import mtlirt


@pytest.fixture(scope="module")
def comparison(cv, small):
    return mtlirt.compare_pooling(small.responses, cv=cv, top=5)


def test_comparison_table(comparison, cv):
    table = comparison.table.set_index("regime")
    assert list(table.index) == ["separate", "chosen", "complete", "mean_score"]
    assert list(table["lam"][:3]) == [0, cv.lam_min, math.inf]
    np.testing.assert_allclose(table["log_loss"].iloc[[0, 2]], cv.table["mean"].iloc[[-1, 0]])
    want = np.nanmean(cv.mean_score_losses, axis=1) - cv.fold_losses[:, list(cv.lams).index(cv.lam_min)]
    assert table["above_chosen"]["mean_score"] == pytest.approx(want.mean())
    assert table["above_chosen_se"]["mean_score"] == pytest.approx(want.std(ddof=1) / math.sqrt(3))
    assert table["rho"]["chosen"] == 1
    assert table["top_shared"]["chosen"] == 5
    flat = cv.path.fits[-1].items["a"] == 0
    assert table["flat_items"]["separate"] == flat.sum()
    assert table["flat_share"]["separate"] == flat.mean()


def test_ranks_and_movers(comparison, cv):
    ranks = comparison.ranks
    assert list(ranks["complete"]) == list(cv.path.fits[0].scores()["general_rank"])
    assert list(ranks["mean_score"]) == list(cv.fit.scores()["mean_score_rank"])
    movers = comparison.movers
    assert list(movers.columns) == ["model", "separate", "chosen", "complete", "mean_score", "against", "shift"]
    assert movers["shift"].abs().is_monotonic_decreasing
    for _, row in movers.head(5).iterrows():
        assert row[row["against"]] - row["chosen"] == row["shift"]
    np.testing.assert_allclose(np.diag(comparison.rank_correlation), 1)
    first, second = (set(ranks.index[ranks[x] <= 5]) for x in ("separate", "mean_score"))
    assert comparison.top_shared.loc["separate", "mean_score"] == len(first & second)
    assert (np.diag(comparison.top_shared) == 5).all()


def test_flat_items(comparison, cv):
    flat = comparison.flat_items
    for regime, fit in comparison.fits.items():
        zero = fit.items[fit.items["a"] == 0]
        assert set(flat[flat[regime]]["item"]) == set(zero["item"])
    assert flat[["separate", "chosen", "complete"]].any(axis=1).all()
    assert "rank differs most" in repr(comparison)


def test_bad_arguments_of_a_comparison(cv, small, demo):
    with pytest.raises(mtlirt.InputError, match="other responses"):
        mtlirt.compare_pooling(demo, cv=cv)
    with pytest.raises(mtlirt.InputError, match="folds is an argument of cv_mtl"):
        mtlirt.compare_pooling(small.responses, cv=cv, folds=3)
    with pytest.raises(mtlirt.InputError, match="top must be"):
        mtlirt.compare_pooling(small.responses, cv=cv, top=0)


def test_comparison_runs_its_own_cross_validation(cv, small):
    own = mtlirt.compare_pooling(small.responses, lams=LAMS, folds=3, seed=5, top=5)
    pd.testing.assert_frame_equal(own.table, mtlirt.compare_pooling(small.responses, cv=cv, top=5).table)


def test_a_fit_that_creeps_along_the_box_arrives():
    """Two short domains near lam_max: 83 sweeps with extrapolation over sweeps, over 500 without."""
    design = mtlirt.HeterogeneityDesign(h0=0.4, N=80, sizes=(40,), per_size=2)
    cv = mtlirt.cv_mtl(mtlirt.simulate(design, 2).responses, lams=[5.1142836], folds=2)
    worst = cv.folds.set_index("lam").loc[5.1142836].iloc[1]
    assert worst["max_abs_theta"] == pytest.approx(4)
    assert worst["status"] == "CONVERGED"
    assert worst["sweeps"] < 200
