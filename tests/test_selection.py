"""Paths over lam, cross-validation and the comparison of pooling regimes."""

import math
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import wide
from safetensors.numpy import load_file

import mtlirt
from mtlirt.data.splits import make_split
from mtlirt.selection.cv_result import CVResult

LAMS = (3.0, 1.0)


@pytest.fixture(scope="module")
def tiny():
    """30 models, 3 domains of 12 items."""
    return mtlirt.simulate(mtlirt.HeterogeneityDesign(h0=0.3, N=30, sizes=(12,), per_size=3), seed=2).responses


@pytest.fixture(scope="module")
def path(small):
    return mtlirt.lambda_path(small.responses, n=6)


@pytest.fixture(scope="module")
def cv(small):
    return mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, seed=5)


# Paths ---------------------------------------------------------------------------------------------------------------


def test_path_runs_from_infinity_to_zero(path):
    table = path.table
    assert table["lam"].is_monotonic_decreasing
    assert list(table["lam"].iloc[[0, -1]]) == [math.inf, 0.0]
    assert table["lam_ratio"].iloc[1] == pytest.approx(1)
    assert table["lam_ratio"].iloc[-2] == pytest.approx(0.03)
    ratios = table["lam"].iloc[1:-2].to_numpy() / table["lam"].iloc[2:-1].to_numpy()
    np.testing.assert_allclose(ratios, ratios[0])
    assert (table["status"] == "CONVERGED").all()
    assert list(table["n_fused"].iloc[:2]) == [4, 4]  # at lam_max all four are still fused
    assert table["n_fused"].iloc[-1] == 0


def test_path_is_monotone(path):
    """The least objective rises with lam, and its loss too; both up to the solver's tolerance of 1e-10, here 1e-8."""
    table = path.table.iloc[1:]
    assert (table["objective"].diff().dropna() <= 1e-8 * table["objective"].iloc[1:]).all()
    assert (path.table["loss"].diff().dropna() <= 1e-8 * path.table["loss"].iloc[1:]).all()


def test_ends_of_the_path_are_the_single_fits(path, small):
    for lam in (math.inf, path.table["lam"].iloc[3], 0.0):
        single = mtlirt.fit_mtl(small.responses, lam)
        on_path = path.at(lam)
        assert on_path.objective == pytest.approx(single.objective, rel=1e-9)  # ten times the tolerance
        np.testing.assert_allclose(on_path.theta, single.theta, rtol=0, atol=1e-3)  # root of 1e-10 of 100, by curvature


def test_sines_and_leavers(path):
    sines = path.sines
    assert sines.shape == (8, 4)
    assert (sines.iloc[0] == 0).all()
    for fit, row in zip(path.fits, sines.to_numpy(), strict=True):
        assert (row == 0).sum() >= fit.fused.sum()
    for domain, lam in path.leaves.items():
        assert sines.loc[lam, domain] > 0
        assert (sines.loc[sines.index > lam, domain] == 0).all()
    assert path.leaves.is_monotonic_decreasing


def test_paper_scale(path):
    # 40 models, smallest domain 30 items
    np.testing.assert_allclose(path.table["C_lambda"], path.table["lam"] / (40 / math.sqrt(30)))


def test_both_directions_keep_the_lower_objective(demo, path):
    down, both = mtlirt.lambda_path(demo, n=4), mtlirt.lambda_path(demo, n=4, start="both")
    assert (both.table["objective"] <= down.table["objective"] * (1 + 1e-9)).all()
    assert set(both.table["start"]) <= {"pooled", "separate"}
    assert set(down.table["start"]) == {"pooled"}


def test_lams_of_your_own(small):
    path = mtlirt.lambda_path(small.responses, lams=[1.0, 5.0, 1.0])
    assert list(path.table["lam"]) == [math.inf, 5.0, 1.0, 0.0]
    with pytest.raises(mtlirt.InputError, match=r"nearest is 5\.0"):
        path.at(4.5)
    assert "C_lambda" in repr(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be"),
        ({"ratio": 1.0}, "ratio must"),
        ({"lams": [-1.0]}, "lam must be"),
        ({"start": "middle"}, "start must be one of"),
        ({"C": 0.5}, "C"),
    ],
)
def test_bad_arguments_of_a_path(small, arguments, message):
    with pytest.raises(mtlirt.InputError, match=message):
        mtlirt.lambda_path(small.responses, **arguments)


def test_one_domain_has_no_path(small):
    one = small.responses.subset(domains=["d01"])
    for verb in (mtlirt.lambda_path, mtlirt.cv_mtl, mtlirt.compare_pooling):
        with pytest.raises(mtlirt.InputError, match="one domain"):
            verb(one)
    assert mtlirt.fit_mtl(one).objective == mtlirt.fit_mtl(one, 0).objective


def test_path_with_a_model_that_skipped_a_domain(demo):
    path = mtlirt.lambda_path(demo, lams=[1.0], start="both")
    assert path.at(0).theta.isna().sum().sum() == 1
    assert path.at(1.0).theta.notna().all().all()
    assert (path.table["status"] == "CONVERGED").all()


# Cross-validation ----------------------------------------------------------------------------------------------------


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
        np.testing.assert_allclose(cv.losses[number, position], by_domain, rtol=1e-5)  # traits agree to 1e-4
        assert cv.folds["log_loss"][number * 4 + position] == pytest.approx(by_domain.mean(), rel=1e-5)


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


def same_numbers(one: CVResult, other: CVResult):
    """All but timing columns, bit for bit."""
    np.testing.assert_array_equal(one.losses, other.losses)
    for name in ("table", "folds"):
        x, y = (getattr(cv, name).drop(columns="seconds") for cv in (one, other))
        pd.testing.assert_frame_equal(x, y, check_exact=True)
    for x, y in zip(one.path.fits, other.path.fits, strict=True):
        np.testing.assert_array_equal(x.theta, y.theta)


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
    """55 sweeps are enough for some fits and not for others; with one no fit is done."""
    with pytest.warns(mtlirt.ConvergenceWarning, match="take no part"):
        cv = mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, solver=mtlirt.Block(max_sweeps=55))
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


# Interrupted work ----------------------------------------------------------------------------------------------------


def test_finished_work_is_not_done_again(cv, small, tmp_path, monkeypatch):
    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    first = mtlirt.cv_mtl(small.responses, **how)
    same_numbers(first, cv)
    with monkeypatch.context() as patched:
        patched.setattr("mtlirt.selection.path.solve_next", None)
        patched.setattr("mtlirt.selection.cv.solve_next", None)
        again = mtlirt.cv_mtl(small.responses, **how)
    same_numbers(again, first)
    pd.testing.assert_frame_equal(again.table, first.table)  # seconds too: they are those of the first time


@pytest.mark.parametrize("steps", [1, 3, 6, 10, 15])
def test_stopped_anywhere_and_gone_on(cv, small, tmp_path, monkeypatch, steps):
    from mtlirt.selection import cv as module

    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    real, done = module.solve_next, []

    def stopping(*arguments):
        done.append(1)
        if len(done) == steps:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("mtlirt.selection.cv.solve_next", stopping)
        patched.setattr("mtlirt.selection.path.solve_next", stopping)
        with pytest.raises(KeyboardInterrupt):
            mtlirt.cv_mtl(small.responses, **how)
    same_numbers(mtlirt.cv_mtl(small.responses, **how), cv)


@pytest.mark.parametrize("change", [{"seed": 6}, {"folds": 2}, {"lams": [1.0]}, {"C": 3.0}, {"scheme": "items"}])
def test_kept_work_of_another_kind_is_refused(small, tmp_path, change):
    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    mtlirt.cv_mtl(small.responses, **how)
    with pytest.raises(mtlirt.InputError, match=f"{next(iter(change))}|grid"):
        mtlirt.cv_mtl(small.responses, **{**how, **change})
    with pytest.raises(mtlirt.InputError, match="answers"):
        mtlirt.cv_mtl(small.responses.subset(domains=["d01", "d02"]), **how)


def test_training_is_blind_to_held_out_answers(small, tmp_path):
    """Turn round the answers that the first fold holds out: its fits stay the same to the bit, its losses do not."""
    frame, lookup = wide(small.responses)
    held = np.concatenate(make_split(small.responses, "cells", 3, 5).blocks, axis=1) == 0
    turned = mtlirt.Responses.from_wide(frame.where(~held, 1 - frame), domains=lookup)
    kept = []
    for name, responses in (("one", small.responses), ("two", turned)):
        mtlirt.cv_mtl(responses, lams=LAMS, folds=3, seed=5, resume=tmp_path / name)
        kept.append(load_file(tmp_path / name / "fold-1.safetensors"))
    for name in ("theta", "general", "a", "d", "sweeps"):
        np.testing.assert_array_equal(kept[0][name], kept[1][name])
    assert (kept[0]["nll"] != kept[1]["nll"]).all()


def test_killed_and_started_again(small, tmp_path):
    """kill -9 in the middle, twice; then the same tables as without, but for the seconds."""
    answers = tmp_path / "answers.parquet"
    small.responses.to_long().to_parquet(answers)
    kept = tmp_path / "kept"

    def command(out):
        return [sys.executable, "-m", "mtlirt", "cv", str(answers), "--out", str(out), "--folds", "3", "--seed", "2"]

    for wanted in (2, 5):
        running = subprocess.Popen(
            [*command(tmp_path / "out"), "--resume", str(kept), "--jobs", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while not _lams_done(kept) >= wanted:
                assert running.poll() is None
                time.sleep(0.005)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        assert not (tmp_path / "out").exists()
    for out, more in ((tmp_path / "out", ("--resume", str(kept))), (tmp_path / "uninterrupted", ())):
        done = subprocess.run([*command(out), *more], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    for name in ("cv.csv", "folds.csv", "per_domain.csv", "path.csv", "sines.csv"):
        texts = []
        for out in ("out", "uninterrupted"):
            lines = (tmp_path / out / name).read_text().splitlines()
            skip = [i for i, column in enumerate(lines[0].split(",")) if column == "seconds"]
            texts.append([[x for i, x in enumerate(line.split(",")) if i not in skip] for line in lines])
        assert texts[0] == texts[1]


def _lams_done(folder):
    """Number of lams that the first fold has finished; a file being replaced counts as not there."""
    try:
        return len(load_file(folder / "fold-1.safetensors")["status"])
    except OSError:
        return 0


# Comparison ----------------------------------------------------------------------------------------------------------


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


# Recovery ------------------------------------------------------------------------------------------------------------


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
