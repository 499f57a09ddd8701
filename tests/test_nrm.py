"""Nominal response models: the problem, its solver, what fits say, and what is left out."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import LAW, same_numbers, table_of
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import mtlirt
from mtlirt import InputError, Responses
from mtlirt.core.distractors import information_split, on_top
from mtlirt.core.field import tabulate
from mtlirt.core.option_likelihood import option_cell_sums
from mtlirt.core.options import centred
from mtlirt.core.projection import standardise
from mtlirt.models.nrm import NominalSettings


@pytest.fixture(scope="module")
def golden(golden_options):
    return golden_options


@pytest.fixture(scope="module", params=["hard", "soft"])
def fit(request, golden):
    return mtlirt.fit_nrm(golden, channel=request.param)


def problem_of(responses, **how):
    settings = NominalSettings(**how)
    return settings.problem(settings.prepare(responses))


def slow_nll(responses, fit):
    """Answer by answer, from the published formula."""
    long, total = responses.to_long(), 0.0
    options = dict(list(fit.options.groupby(["domain", "item"], sort=False)))
    for row in long.itertuples():
        of_item = options[(row.domain, row.item)]
        z = of_item["a"].to_numpy() * fit.theta.loc[row.model, row.domain] + of_item["c"].to_numpy()
        target = row.probs if fit.settings["channel"] == "soft" else of_item["option"].to_numpy() == row.option
        total -= np.asarray(target, dtype=float) @ log_softmax(z)
    return total


def test_the_loss_is_that_of_the_formula(fit, golden):
    ridge = 0.02 * (fit.options[["a", "c"]] ** 2).to_numpy().sum()
    assert fit.log_likelihood == pytest.approx(-slow_nll(golden, fit), rel=1e-6)  # probabilities are kept as float32
    assert fit.loss == pytest.approx(-fit.log_likelihood + ridge, rel=1e-12)
    assert fit.trace["objective"].iloc[-1] == pytest.approx(fit.loss, rel=1e-7)  # interpolation, see test_grid.py


def test_constraints_and_orientation(fit, golden):
    theta = fit.general.to_numpy()
    assert fit.converged
    assert abs(theta.mean()) < 1e-10
    assert np.square(theta).mean() == pytest.approx(1, abs=1e-10)
    sums = fit.options.groupby(["domain", "item"])[["a", "c"]].sum()
    assert np.abs(sums.to_numpy()).max() < 1e-10
    assert np.corrcoef(theta, golden.scores.mean(axis=1))[0, 1] > 0.8
    steps = np.diff(fit.trace["objective"])
    assert (steps <= 1e-12 * fit.loss).all()  # rounding


def test_minimum_against_a_general_optimiser(golden):
    """L-BFGS on all parameters at once, traits standardised inside."""
    small = golden.subset(models=list(golden.models[:8]), domains=["d0"])
    small = small.subset(items=small.items["item"].isin(small.items["item"][:6]).to_numpy())
    fit = mtlirt.fit_nrm(small, channel="hard", solver=mtlirt.Block(tol=1e-14))
    problem = problem_of(small, channel="hard")
    own, shape = problem.options, problem.options.shape

    def loss(x):
        theta = standardise(x[None, : len(small.models)])
        a, c = (centred(p.reshape(shape), own) for p in np.split(x[len(small.models) :], 2))
        nll = option_cell_sums(problem, theta, a, c).nll.sum()
        return nll + problem.ridge / 2 * (np.square(a) + np.square(c)).sum()

    start = np.concatenate([fit.general + 0.05, *(x.ravel() for x in fit.bank[:2])])
    start += np.random.default_rng(0).normal(0, 0.05, len(start))
    best = minimize(
        loss, start, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-8}
    )
    # no lower point; the optimiser's differences by the gradient leave it up to 1e-7 above
    assert fit.loss <= best.fun * (1 + 1e-9)
    assert fit.loss == pytest.approx(best.fun, rel=1e-6)


def test_two_options_are_the_2pl_with_a_ridge():
    """With K = 2 the slopes are a/2 and -a/2: a ridge of r on both is one of r / 2 on the 2PL's a, and so for d."""
    rng = np.random.default_rng(3)
    theta, slope, shift = rng.normal(size=60), rng.uniform(0.5, 1.2, 40), rng.normal(size=40)
    right = rng.random((60, 40)) < 1 / (1 + np.exp(-(theta[:, None] * slope + shift)))
    chosen = np.where(right, 1, 0)
    key = np.ones(40, dtype=int)
    answers = Responses.from_long(table_of(chosen, key, np.full(40, 2), ["all"] * 40), **LAW)
    fit = mtlirt.fit_nrm(answers, solver=mtlirt.Block(tol=1e-14))
    y = right.astype(float)

    def loss(x):
        t = standardise(x[None, :60])[0]
        a, d = np.split(x[60:], 2)
        z = np.multiply.outer(t, a) + d
        value = (np.logaddexp(0, z) - y * z).sum() + 0.01 * (a @ a + d @ d)
        residual = 1 / (1 + np.exp(-z)) - y
        g = residual @ a
        spread = np.sqrt(np.square(x[:60] - x[:60].mean()).mean())
        g = (g - g.mean() - t * (g @ t) / 60) / spread
        return value, np.concatenate([g, residual.T @ t + 0.02 * a, residual.sum(axis=0) + 0.02 * d])

    start = np.concatenate([standardise(y.mean(axis=1)[None])[0], np.ones(40), np.zeros(40)])
    best = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10**4})
    t, (a, d) = standardise(best.x[None, :60])[0], np.split(best.x[60:], 2)
    expected = 1 / (1 + np.exp(-(np.multiply.outer(t, a) + d)))
    np.testing.assert_allclose(fit.predict().to_numpy()[:, 1::2], expected, atol=1e-6)


def test_field_equals_the_exact_sums(golden):
    problem = problem_of(golden, channel="soft")
    rng = np.random.default_rng(0)
    shape = problem.options.shape
    a, c = (centred(rng.normal(0, s, shape), problem.options) for s in (1.0, 1.0))
    theta = rng.uniform(-3, 3, (3, problem.n_models))
    exact = option_cell_sums(problem, theta, a, c)
    der = tabulate(problem, problem.grid, a, c).derivatives(theta)
    w = problem.weights
    ridge = np.bincount(problem.item_domain, (np.square(a) + np.square(c)).sum(axis=1)) * problem.ridge / 2
    np.testing.assert_allclose(der.value, w * (exact.nll + ridge), rtol=1e-9)  # slopes well below the grid's 8
    np.testing.assert_allclose(der.gradient, w[:, None] * exact.gradient, atol=1e-7)
    h = 1e-5
    up, down = (option_cell_sums(problem, theta + s * h, a, c) for s in (1, -1))
    np.testing.assert_allclose((up.nll - down.nll).sum() / (2 * h), exact.gradient.sum(), rtol=1e-6)


def test_softmax_shifts_change_nothing(golden):
    problem = problem_of(golden, channel="hard")
    rng = np.random.default_rng(1)
    a, c = (centred(rng.normal(size=problem.options.shape), problem.options) for _ in range(2))
    theta = rng.normal(size=(3, problem.n_models))
    shift = np.where(problem.options, 1.7, 0.0)
    one, two = option_cell_sums(problem, theta, a, c), option_cell_sums(problem, theta, a + shift, c - shift)
    np.testing.assert_allclose(two.nll, one.nll, rtol=1e-12)
    np.testing.assert_allclose(two.gradient, one.gradient, atol=1e-9)
    np.testing.assert_allclose(two.information, one.information, rtol=1e-9)


def test_information_identity():
    rng = np.random.default_rng(2)
    K = rng.integers(2, 11, 200)
    options = np.arange(10) < K[:, None]
    a, c = (centred(rng.normal(0, 1.5, options.shape), options) for _ in range(2))
    key, theta = rng.integers(0, K), np.linspace(-4, 4, 31)
    split = information_split(theta, a, c, options, key)
    logit = a[:, :, None] * theta + np.where(options, c, -np.inf)[:, :, None]
    p = softmax(logit, axis=1)
    variance = (p * a[:, :, None] ** 2).sum(axis=1) - (p * a[:, :, None]).sum(axis=1) ** 2
    np.testing.assert_allclose(split.binary + split.wrong, variance, rtol=1e-12, atol=1e-12)
    assert (split.wrong >= 0).all()
    h = 1e-4  # minus the second derivative of log p, whichever option: a variance, so the same for all
    at = [
        log_softmax(a[:, :, None] * (theta + s) + np.where(options, c, -np.inf)[:, :, None], axis=1)[:, 0]
        for s in (-h, 0, h)
    ]
    np.testing.assert_allclose(-(at[0] - 2 * at[1] + at[2]) / h**2, variance, atol=1e-5)


def test_informative_distractors_equal_the_argmax_of_a_fine_grid():
    rng = np.random.default_rng(4)
    K = rng.integers(2, 11, 150)
    options = np.arange(10) < K[:, None]
    a, c = (np.where(options, rng.normal(0, 1, options.shape).round(1), 0.0) for _ in range(2))  # rounding makes ties
    theta = np.linspace(-2, 3, 4_001)
    start, end = on_top(a, c, options, -2.0, 3.0)
    logit = np.where(options[:, :, None], a[:, :, None] * theta + c[:, :, None], -np.inf)
    top = logit.max(axis=1, keepdims=True)
    alone = (logit == top) & ((logit == top).sum(axis=1, keepdims=True) == 1)
    seen = alone.sum(axis=2) > 1
    wide = end - start > 2 * (theta[1] - theta[0])  # narrower intervals may fall between two points of the grid
    assert (wide <= seen).all()
    assert (seen <= (start < end)).all()


def test_a_fit_tells(fit, golden, tmp_path):
    gain = fit.information_gain().set_index("domain")
    items = fit.information()
    np.testing.assert_allclose(items["nominal"], items["binary"] + items["wrong"], rtol=1e-12)
    assert gain.loc["all items", "gain"] == pytest.approx(items["wrong"].mean() / items["binary"].mean())
    distractors = fit.informative_distractors()
    assert (distractors["start"] < distractors["end"]).all()
    assert not distractors.merge(fit.options[fit.options["right"]], on=["domain", "item", "option"]).size
    curve = fit.curves("d0", "q00", theta=np.array([0.0, 1.0]))
    np.testing.assert_allclose(curve.sum(axis=1), 1)
    predicted = fit.predict()
    np.testing.assert_allclose(predicted.T.groupby(level=[0, 1]).sum(), 1)
    row = fit.items.iloc[7]
    at = predicted[(row["domain"], row["item"])].loc["m03"]
    np.testing.assert_allclose(fit.curves(row["domain"], row["item"], [fit.general["m03"]]).iloc[0], at)
    scores = fit.scores("expected", se=True)
    key = fit.options.set_index(["domain", "item", "option"])["right"]
    right = predicted.loc[:, key.to_numpy()].T.groupby(level=0, sort=False).mean().T
    np.testing.assert_allclose(scores[["d0", "d1", "d2"]], right[["d0", "d1", "d2"]])
    fit.save(tmp_path / "fit")
    again = mtlirt.load(tmp_path / "fit")
    for name in ("theta", "items", "options", "trace"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(fit, name))
    assert str(again.summary()) == str(fit.summary())
    with pytest.raises(InputError, match="no item 'q99'"):
        fit.curves("d0", "q99")


def test_fitted_models_score_as_fitted(fit, golden):
    scores = fit.score(golden)
    np.testing.assert_allclose(scores["general"], fit.general, atol=1e-4)  # traits are right to 1e-4
    other = golden.to_long().assign(key="A", option="A")
    with pytest.raises(InputError, match="has another key"):
        fit.score(Responses.from_long(other, probs="probs", **LAW))


def test_mtl_nrm_between_its_ends(golden):
    pooled, separate = (mtlirt.fit_mtl_nrm(golden, lam, channel="soft") for lam in (np.inf, 0.0))
    assert pooled.fused.all()
    alone = mtlirt.fit_mtl_nrm(golden.subset(domains=["d1"]), 0.0, channel="soft")
    np.testing.assert_allclose(separate.theta["d1"], alone.theta["d1"], atol=1e-3)  # traits of both right to 1e-4 or so
    top = float(pooled.lam_max.max())
    fused = mtlirt.fit_mtl_nrm(golden, 1.01 * top, channel="soft")
    assert fused.fused.all()
    assert fused.objective == pytest.approx(pooled.objective, rel=1e-6)
    between = mtlirt.fit_mtl_nrm(golden, 0.3 * float(pooled.lam_max.min()), channel="soft")
    assert separate.loss < between.loss < pooled.loss
    assert not between.fused.any()
    assert between.heterogeneity()["sine"].between(0.01, 0.9).all()


def test_cross_validation(golden, tmp_path):
    how = {"model": "nrm", "channel": "hard", "lams": [2.0], "folds": 3}
    cv = mtlirt.cv_mtl(golden, **how)
    same_numbers(cv, mtlirt.cv_mtl(golden, n_jobs=2, resume=tmp_path / "work", **how))
    again = mtlirt.cv_mtl(golden, resume=tmp_path / "work", **how)
    same_numbers(cv, again)
    assert isinstance(cv.fit, mtlirt.NominalFit)
    from mtlirt.data.splits import make_split

    held = np.concatenate(make_split(golden, "cells", 3, 0).blocks, axis=1) == 0
    long = golden.to_long().assign(held=held.ravel())
    train = Responses.from_long(long[~long["held"]].drop(columns="probs"), **LAW)
    fit = mtlirt.fit_mtl_nrm(train, 2.0)
    p = fit.predict().T.reset_index().melt(["domain", "item", "option"], var_name="model", value_name="p")
    named = ["model", "domain", "item", "option"]
    judged = long[long["held"]].astype(dict.fromkeys(named, str)).merge(p, on=named)
    expected = -np.log(judged["p"]).groupby(judged["domain"]).mean()
    np.testing.assert_allclose(cv.losses[0, 1], expected[list(cv.fit.domains)], rtol=1e-3)  # folds: traits to 1e-3
    with pytest.raises(InputError, match="over cells"):
        mtlirt.cv_mtl(golden, model="nrm", scheme="items")
    with pytest.raises(InputError, match='go with model="nrm"'):
        mtlirt.cv_mtl(golden, channel="hard")
    with pytest.raises(InputError, match="of the 2PL"):
        mtlirt.compare_pooling(golden, cv=cv)


def test_path(golden):
    path = mtlirt.lambda_path(golden, n=3, ratio=0.3, model="nrm", channel="soft")
    assert path.table["n_fused"].iloc[0] == 3
    assert (np.diff(path.table["objective"]) <= 1e-9).all()


def test_new_answers_need_not_say_how_many_options_there_are(golden):
    fit = mtlirt.fit_nrm(golden, channel="hard")
    table = golden.to_long().drop(columns=["probs", "n_options", "score"])
    two = Responses.from_long(table[table["model"].isin(["m03", "m11"])], score=None, option="option", key="key")
    scores = fit.score(two)
    np.testing.assert_allclose(scores["general"], fit.general[["m03", "m11"]], atol=1e-4)  # traits are right to 1e-4


def test_command_line(golden, tmp_path):
    path = tmp_path / "answers.parquet"
    golden.to_long().to_parquet(path)

    def run(*arguments):
        command = [sys.executable, "-m", "mtlirt", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    done = run("nrm", path, "--out", tmp_path / "one", "--channel", "hard")
    assert done.returncode == 0, done.stderr
    names = {p.name for p in (tmp_path / "one").iterdir()}
    assert {"scores.csv", "options.csv", "information.csv", "distractors.csv", "summary.txt", "fit"} <= names
    options = pd.read_csv(tmp_path / "one" / "options.csv")
    pd.testing.assert_series_equal(options["a"], mtlirt.fit_nrm(golden, channel="hard").options["a"], rtol=1e-6)
    done = run("nrm", path, "--out", tmp_path / "many", "--model", "mtl-nrm", "--lam", "1.5")
    assert done.returncode == 0, done.stderr
    scored = run("score", tmp_path / "many", path, "--out", tmp_path / "scored")
    assert scored.returncode == 0, scored.stderr
    golden.to_long()[["model", "domain", "item", "score"]].to_csv(tmp_path / "plain.csv", index=False)
    wrong = run("nrm", tmp_path / "plain.csv", "--out", tmp_path / "none")
    assert (wrong.returncode, "have neither" in wrong.stderr) == (2, True)
    assert not (tmp_path / "none").exists()
