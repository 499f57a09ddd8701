"""Cross-validation."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import LAMS, same_numbers, wide

import mtlirt
from mtlirt.data.splits import make_split


@pytest.fixture(scope="module")
def tiny():
    """30 models, 3 domains of 12 items."""
    return mtlirt.simulate(mtlirt.HeterogeneityDesign(h0=0.3, N=30, sizes=(12,), per_size=3), seed=2).responses


def test_losses_equal_those_of_single_fits(cv, small):
    """The slow way: hold out, fit with fit_mtl, predict each held-out answer, average within and over domains."""
    split = make_split(small.responses, "cells", 3, 5)
    frame, lookup = wide(small.responses)
    held = np.concatenate(split.blocks, axis=1)
    for number, position in ((0, 0), (1, 2), (2, 3)):
        train = mtlirt.Responses.from_wide(frame.where(held != number), domains=lookup)
        lam = float(cv.lams[position])
        p = mtlirt.fit_mtl(train, lam).predict()
        truth = frame.to_numpy()
        right = np.where(truth == 1, p, 1 - np.asarray(p))
        loss = np.where(held == number, -np.log(right), np.nan)
        by_domain = pd.DataFrame(loss).T.groupby([lookup[c] for c in frame.columns]).apply(lambda x: np.nanmean(x))
        np.testing.assert_allclose(cv.losses[number, position], by_domain, rtol=1e-4)  # folds: traits to 1e-3
        assert cv.folds["log_loss"][number * 4 + position] == pytest.approx(by_domain.mean(), rel=1e-4)


def test_mean_score_prediction(cv, small):
    split = make_split(small.responses, "cells", 3, 5)
    block, scores = split.blocks[1], small.responses.block(small.responses.domains[1])
    train, test = block != 2, block == 2
    share = ((scores * train).sum(axis=1) + 0.5) / (train.sum(axis=1) + 1)
    p = np.broadcast_to(share[:, None], scores.shape)[test]
    want = -np.log(np.where(scores[test] == 1, p, 1 - p)).mean()
    assert cv.mean_score_losses[2, 1] == pytest.approx(want, rel=1e-12)


def test_table(cv):
    table = cv.table
    assert list(table.columns) == [
        "lam",
        "lam_ratio",
        "C_lambda",
        "mean",
        "se",
        "excess",
        "excess_se",
        "n_fused",
        "n_converged",
        "sweeps",
        "seconds",
    ]
    assert list(table["lam"]) == [math.inf, 3.0, 1.0, 0.0]
    by_fold = cv.folds.pivot_table(index="lam", columns="fold", values="log_loss").loc[table["lam"]]
    np.testing.assert_allclose(table["mean"], by_fold.mean(axis=1))
    np.testing.assert_allclose(table["se"], by_fold.std(axis=1) / math.sqrt(3))
    best = table["mean"].idxmin()
    difference = by_fold.sub(by_fold.iloc[best], axis=1)
    np.testing.assert_allclose(table["excess"], difference.mean(axis=1), atol=1e-15)
    np.testing.assert_allclose(table["excess_se"], difference.std(axis=1) / math.sqrt(3), atol=1e-15)
    assert cv.lam_min == table["lam"][best]
    assert cv.lam_1se == table["lam"][table["mean"] <= table["mean"][best] + table["se"][best]].iloc[0]
    assert cv.lam_1se >= cv.lam_min
    assert (table["n_converged"] == 3).all()


def test_fit_is_the_path_at_lam_min(cv, small, tmp_path):
    assert cv.fit.lam == cv.lam_min
    assert cv.fit.theta.equals(cv.path.at(cv.lam_min).theta)
    assert "3-fold cross-validation over cells (seed 5)" in str(cv.fit.summary())
    cv.fit.save(tmp_path / "fit")
    assert mtlirt.load(tmp_path / "fit").settings == cv.fit.settings
    for words in ("lam_min", "lam_1se", "separate domains"):
        assert words in repr(cv)


def test_per_domain(cv, small):
    table = cv.per_domain
    assert list(table["domain"]) == list(small.responses.domains)
    position = list(cv.lams).index(cv.lam_min)
    np.testing.assert_allclose(table["chosen"], cv.losses[:, position].mean(axis=0))
    np.testing.assert_allclose(table["gain_over_complete"], table["complete"] - table["chosen"], atol=1e-15)
    np.testing.assert_allclose(table["gain_over_separate"], table["separate"] - table["chosen"], atol=1e-15)
    want = (cv.losses[:, -1] - cv.losses[:, position]).std(axis=0, ddof=1) / math.sqrt(3)
    np.testing.assert_allclose(table["gain_over_separate_se"], want)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_number_of_processes_does_not_matter(cv, small, n_jobs):
    again = mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, seed=5, n_jobs=n_jobs)
    same_numbers(again, cv)


def test_one_trait_is_pooled_completely():
    """Domains that share one trait: the choice is infinity, called by that name."""
    design = mtlirt.HeterogeneityDesign(h0=0.0, N=60, sizes=(30,), per_size=4)
    cv = mtlirt.cv_mtl(mtlirt.simulate(design, 1).responses, lams=[100.0, 2.0], folds=3)
    assert cv.lam_min == math.inf  # and not 100, which gives the same fit
    assert cv.lam_1se == math.inf
    assert cv.table["excess"][1] == pytest.approx(0, abs=1e-6)  # _TIE


def test_unrelated_traits_are_kept_apart():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(2, 300))
    blocks = [(rng.random((300, 40)) < 1 / (1 + np.exp(-1.5 * t[:, None] - rng.normal(size=40)))) for t in theta]
    names = [f"d{t}.q{j}" for t in range(2) for j in range(40)]
    frame = pd.DataFrame(np.concatenate(blocks, axis=1).astype(float), columns=names)
    responses = mtlirt.Responses.from_wide(frame.rename(index=str), domains=lambda x: x.split(".")[0])
    cv = mtlirt.cv_mtl(responses, lams=[40.0, 20.0], folds=2)
    assert cv.lam_min == 0
    assert "0 (separate domains)" in repr(cv)
    assert not cv.fit.fused.any()


def test_paper_grid(tiny):
    cv = mtlirt.cv_mtl(tiny, grid="paper", folds=2)
    np.testing.assert_allclose(cv.table["C_lambda"][1:-1], np.arange(20, 0, -1) / 10)
    assert len(cv.table) == 22


def test_lam_shrinks_with_the_answers_under_the_paper_weights(small):
    """With 1 / J_t the loss of two thirds of the answers is two thirds as large, and so must lam be."""
    how = {"folds": 3, "missing_weight": "paper"}
    scaled = mtlirt.cv_mtl(small.responses, lams=[2.0], **how)
    same = mtlirt.cv_mtl(small.responses, lams=[2.0], lam_in_folds="same", **how)
    smaller = mtlirt.cv_mtl(small.responses, lams=[2.0 * 2 / 3], lam_in_folds="same", **how)
    observed = mtlirt.cv_mtl(small.responses, lams=[2.0], folds=3)
    # 30 items are dealt out in threes exactly, 40 are not: the share is within .7 % of 2/3 in every fold
    np.testing.assert_allclose(scaled.losses[:, 1], smaller.losses[:, 1], rtol=2e-3)
    assert np.abs(scaled.losses[:, 1] - same.losses[:, 1]).max() > 2e-3
    np.testing.assert_allclose(scaled.losses[:, 1], observed.losses[:, 1], rtol=2e-3)


def test_scheme_items(small):
    cv = mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, scheme="items")
    assert cv.settings["scheme"] == "items"
    assert np.isfinite(cv.losses).all()
    # the held-out items' own slopes and intercepts are fitted, so the loss is below that of held-out answers
    cells = mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3)
    assert (cv.table["mean"] < cells.table["mean"]).all()


def test_answers_that_cannot_be_predicted_are_counted(small):
    frame, lookup = wide(small.responses)
    frame.iloc[0, 31:70] = np.nan  # a single answer in the second domain, that to its first item
    responses = mtlirt.Responses.from_wide(frame, domains=lookup)
    cv = mtlirt.cv_mtl(responses, lams=[1.0], folds=3)
    assert "other answer: 1 of" in cv.notes[0]
    assert cv.notes[0] in repr(cv)
    assert np.isfinite(cv.losses).all()


def test_fits_that_do_not_converge_take_no_part(small):
    """25 sweeps are enough for some fits and not for others; with one no fit is done."""
    with pytest.warns(mtlirt.ConvergenceWarning, match="take no part"):
        cv = mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, solver=mtlirt.Block(max_sweeps=25))
    failed = cv.table["n_converged"] < 3
    assert failed.any()
    assert not failed.all()
    assert cv.table["mean"].isna().equals(failed)
    assert not failed[cv.table["lam"] == cv.lam_min].any()
    assert any("did not converge at lam" in note for note in cv.notes)
    assert (cv.folds["status"] == "MAX_STEPS").sum() == 3 * len(cv.lams) - cv.table["n_converged"].sum()
    repr(cv)
    repr(mtlirt.compare_pooling(small.responses, cv=cv))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(mtlirt.FitError, match="no lam"):
            mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, solver=mtlirt.Block(max_sweeps=1))


def test_adam_in_folds(small):
    block, adam = (
        mtlirt.cv_mtl(small.responses, lams=[2.0], folds=2, solver=solver)
        for solver in (mtlirt.Block(), mtlirt.Adam(steps=1500))
    )
    np.testing.assert_allclose(adam.losses, block.losses, rtol=1e-3)  # objectives agree to 1e-4 or so


def test_fit_mtl_chooses_by_cross_validation(tiny):
    fit, cv = mtlirt.fit_mtl(tiny), mtlirt.cv_mtl(tiny)
    assert fit.lam == cv.lam_min
    np.testing.assert_array_equal(fit.theta, cv.fit.theta)
    with pytest.raises(mtlirt.InputError, match="init"):
        mtlirt.fit_mtl(tiny, init=fit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "folds must be"),
        ({"seed": -3}, "seed must be"),
        ({"scheme": "models"}, "scheme must be one of"),
        ({"grid": "fine"}, "grid must be one of"),
        ({"lam_in_folds": "half"}, "lam_in_folds must"),
        ({"n_jobs": 0}, "n_jobs .* must"),
        ({"solver": "block"}, "solver must be"),
    ],
)
def test_bad_arguments_of_cv(small, arguments, message):
    with pytest.raises(mtlirt.InputError, match=message):
        mtlirt.cv_mtl(small.responses, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("h0", "of_complete"), [(0.1, 1.08), (0.5, 0.8)])
def test_the_choice_recovers_traits_of_the_paper_design(h0, of_complete):
    """Mean domain error, 5 data sets: near complete pooling's at h0 = .1, a fifth below both ends at .5."""
    errors = []
    for seed in range(5):
        simulation = mtlirt.simulate(mtlirt.HeterogeneityDesign(h0=h0), seed)
        cv = mtlirt.cv_mtl(simulation.responses, seed=seed)
        truth = simulation.truth.theta.to_numpy()
        fits = (cv.path.at(math.inf), cv.fit, cv.path.at(0.0))
        errors.append([np.sqrt(np.square(f.theta.to_numpy() - truth).mean(axis=0)).mean() for f in fits])
    complete, chosen, separate = np.mean(errors, axis=0)
    # 20 data sets gave 1.000 of complete pooling at .1, and .752 of it and .731 of separate fits at .5
    assert chosen <= of_complete * complete
    assert chosen <= 0.8 * separate
