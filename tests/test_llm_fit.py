"""`fit_llm_nrm` and what its fits tell; the core and the solver are tested in test_llm_nrm.py."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import LAW, shared, table_of
from scipy.special import expit, softmax

import mtlirt
from mtlirt import AdamOptions, InputError, LLMNRMDesign, LLMSolver, Responses
from mtlirt.results.llm import _Fleet, _likelihood, llm_objective, llm_parameters
from mtlirt.results.scoring import nominal_problem


@pytest.fixture(scope="module")
def golden():
    with np.load(shared("golden", "nrm.npz")) as z:
        table = table_of(z["hard"], z["key"], z["K"], ["all"] * len(z["K"]), z["P"])
    return Responses.from_long(table, probs="probs", **LAW)


@pytest.fixture(scope="module")
def minima():
    return json.loads(shared("golden", "nrm.json").read_text())


@pytest.fixture(scope="module")
def fit(golden):
    return mtlirt.fit_llm_nrm(golden, channel="soft")


@pytest.mark.parametrize("channel", ["soft", "hard"])
def test_golden_minima_of_the_nrm(golden, minima, channel):
    fit = mtlirt.fit_nrm(golden, channel=channel, scale="prior")
    # the probabilities are kept as float32, 6e-8 of each: 1e-8 of the sum
    assert fit.loss == pytest.approx(minima[f"nrm_{channel}"]["loss_total"], rel=1e-8)
    np.testing.assert_allclose(fit.general, minima[f"nrm_{channel}"]["theta"], atol=5e-3)  # stops when thetas move 1e-3


def test_golden_llm_nrm(golden, minima):
    fit = mtlirt.fit_llm_nrm(golden, channel="soft", scale="prior", solver=LLMSolver(tol=1e-4))
    best = minima["llmnrm_soft_best"]["loss_total"]
    # the best known of many minima, which differ in single items by 1e-5 to 1e-4 of the loss; another gate is 5e-3 away
    assert fit.loss <= best * (1 + 1e-3)
    assert min(fit.settings["starts"]) == fit.loss


def test_predictions_are_those_of_the_formula(fit, golden):
    """Equations 6, 7, 10 and 13, cell by cell."""
    models = fit.model_parameters.set_index("model")
    p = fit.predict()
    for item in ("q03", "q17", "q41"):
        rows = fit.options[fit.options["item"] == item]
        a, c, key = rows["a"].to_numpy(), rows["c"].to_numpy(), rows["right"].to_numpy().argmax()
        wrong = np.arange(len(a)) != key
        num = np.log(np.exp(c[wrong]).sum()) - c[key]
        den = a[key] - softmax(c[wrong]) @ a[wrong]
        b = 6 * np.tanh(num * den / (den**2 + 0.25) / 6)
        for name in ("m00", "m11"):
            m = models.loc[name]
            delta, rho = (m.filter(regex=f"^{x}:").to_numpy(dtype=float)[: len(a)] for x in ("delta", "rho"))
            u = m["s"] * (a * m["theta"] + c + delta)
            gate = expit(fit.gate["w0"] - fit.gate["kappa"] * (m["theta"] - b))
            np.testing.assert_allclose(p.loc[name, ("all", item)], softmax((1 - gate) * u + gate * rho), rtol=1e-9)


def test_gauges(fit):
    frame = fit.model_parameters
    assert abs(frame["theta"].mean()) < 1e-10
    assert np.square(frame["theta"]).mean() == pytest.approx(1)
    assert abs(np.log(frame["s"]).mean()) < 1e-10
    for name in ("delta", "rho"):
        assert np.abs(frame.filter(regex=f"^{name}:").sum(axis=1)).max() < 1e-10
    assert (np.diff(fit.trace["objective"]) <= 1e-9 * fit.loss).all()


def test_components_can_be_left_out(golden, fit):
    plain = mtlirt.fit_llm_nrm(golden, channel="soft", sharpness=False, position=False, fallback=False)
    nrm = mtlirt.fit_nrm(golden, channel="soft", C=20.0)
    assert plain.loss == pytest.approx(nrm.loss, rel=1e-6)  # Block's objective is interpolated to 1e-7
    assert plain.model_parameters is None
    without = mtlirt.fit_llm_nrm(golden, channel="soft", fallback=False)
    assert without.gate is None
    assert fit.loss < without.loss < plain.loss  # the priors on the gate cost less than the gate brings here
    assert (without.model_parameters.filter(regex="^rho:") == 0).all().all()


def test_what_it_tells(fit, golden, tmp_path):
    bias = fit.positional_bias()
    assert list(bias.columns) == ["model", "position", "delta", "rho"]
    np.testing.assert_allclose(bias.groupby("model")[["delta", "rho"]].sum(), 0, atol=1e-10)
    calibration = fit.calibration(golden)
    block, offset = golden.probs_block("all")
    first = [block[0, s:e] for s, e in pairwise(offset)]
    assert calibration["confidence"][0] == pytest.approx(np.mean([p.max() for p in first]), rel=1e-5)
    assert calibration["s"].corr(calibration["confidence"], method="spearman") > 0.5
    fit.save(tmp_path / "fit")
    again = mtlirt.load(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.predict(), fit.predict())
    assert again.gate == fit.gate
    text = str(fit.summary())
    assert "with sharpness, position, fallback" in text
    assert "Gate" in text
    with pytest.raises(InputError, match="no sharpness"):
        mtlirt.fit_nrm(golden).positional_bias()


@pytest.mark.parametrize("use", ["all", "binary", "incorrect"])
def test_gradients_of_scoring(fit, golden, use):
    problem, _, _ = nominal_problem(fit, golden)
    at, goal = llm_parameters(fit), llm_objective(fit)
    _, gradient = _likelihood(at, problem, goal, use)
    K, h = at.delta.shape[1], 1e-5
    for column in (0, 1, 3, 2 + K + 1):

        def moved(step, column=column):
            parts = {name: np.array(getattr(at, name)) for name in ("theta", "log_s", "delta", "rho")}
            flat = [parts["theta"], parts["log_s"], *parts["delta"].T, *parts["rho"].T][column]
            flat += step

            return _likelihood(replace(at, **parts), problem, goal, use)[0]

        # central differences: h**2 and the rounding of float32 shares, 1e-11 / h
        np.testing.assert_allclose((moved(h) - moved(-h)) / (2 * h), gradient[:, column], atol=1e-5)


def test_scoring(fit, golden):
    scores = {use: mtlirt.score_nrm(fit, golden, use=use) for use in ("all", "binary", "incorrect")}
    assert np.corrcoef(scores["all"]["theta"], fit.general)[0, 1] > 0.99  # the prior shrinks, the order stays
    assert (scores["all"]["se"] < scores["binary"]["se"]).mean() > 0.9
    nrm = mtlirt.fit_nrm(golden, channel="hard")
    theta = mtlirt.score_nrm(nrm, golden)["theta"]
    p = nrm.predict(golden)  # the mode, by hand for one model: its gradient vanishes
    a = nrm.options.set_index(["domain", "item", "option"])["a"]
    assert np.corrcoef(theta, nrm.general)[0, 1] > 0.999
    at = nrm.curves("all", "q00", [theta[0]])
    assert at.shape == (1, golden.items["n_options"][0])
    score = -theta[0]
    long = golden.to_long()
    for row in long[long["model"] == "m00"].itertuples():
        curve = nrm.curves("all", row.item, [theta[0]]).iloc[0]
        slopes = a["all", row.item]
        score += slopes[row.option] - curve @ slopes
    assert abs(score) < 1e-3  # of slopes of order 1, sixty of them
    assert p.shape[1] == len(nrm.options)
    with pytest.raises(InputError, match="one trait"):
        mtlirt.score_nrm(mtlirt.fit_mtl_nrm(golden, 1.0), golden)


def test_adam_and_the_paper(golden):
    small = golden.subset(models=list(golden.models[:10]), items=list(golden.items["item"][:12]))
    with pytest.warns(mtlirt.ConvergenceWarning):
        fit = mtlirt.fit_llm_nrm(small, channel="soft", objective="paper", solver=AdamOptions(steps=50))
    assert fit.settings["ridge"] == 0
    assert fit.trace["objective"].iloc[-1] < fit.trace["objective"].iloc[0]
    with pytest.raises(InputError, match="no minimiser"):
        mtlirt.fit_llm_nrm(small, objective="paper", solver=LLMSolver())


def test_simulated_answers_come_back():
    simulation = mtlirt.simulate_llm_nrm(LLMNRMDesign(N=60, J=300), seed=2)
    assert simulation.responses == mtlirt.simulate_llm_nrm(LLMNRMDesign(N=60, J=300), seed=2).responses
    fit = mtlirt.fit_llm_nrm(simulation.responses)
    truth = simulation.truth
    assert np.corrcoef(fit.general, truth.theta)[0, 1] > 0.95  # information of 300 items: errors of about .15
    assert np.corrcoef(np.log(fit.model_parameters["s"]), truth.log_s)[0, 1] > 0.8
    hard = mtlirt.simulate_llm_nrm(LLMNRMDesign(N=20, J=30, channel="hard", missing=0.2), seed=3).responses
    assert hard.blocks.probs is None
    assert 0.1 < 1 - hard.n_answers / 600 < 0.3


def test_scores_of_an_llm_nrm_are_its_own():
    """Traits and expected shares use each model's sharpness, positions and fallback."""
    simulation = mtlirt.simulate_llm_nrm(LLMNRMDesign(N=60, J=150, options=(3, 5)), 4)
    fit = mtlirt.fit_llm_nrm(simulation.responses)
    again = fit.score(simulation.responses)
    fitted, scored = (
        np.sqrt(np.square(x.to_numpy() - simulation.truth.theta).mean()) for x in (fit.general, again["general"])
    )
    assert scored < 1.5 * fitted  # s, delta and rho are drawn to the fleet, which costs a little: .20 for .18
    alone = fit.score(simulation.responses.subset(models=["m07"]))
    assert alone["general"][0] == pytest.approx(again["general"][6], abs=1e-5)  # tolerance of the optimiser
    scores = fit.scores("expected", se=True)
    p, right = fit.predict(), fit.options.set_index(["domain", "item", "option"])["right"]
    np.testing.assert_allclose(scores["general"], p.loc[:, right.to_numpy()].mean(axis=1), rtol=1e-9)
    assert np.isfinite(scores["se:general"]).all()


def test_absent_components_stay_absent_in_scoring(golden):
    """A fit with positions only gives new models no sharpness of their own."""
    fit = mtlirt.fit_llm_nrm(golden, channel="hard")
    assert fit.settings["components"] == ["position"]
    fleet = _Fleet.of(llm_parameters(fit), llm_objective(fit))
    K = llm_parameters(fit).delta.shape[1]
    assert (fleet.sd[2 : 2 + K] > 0).all()
    assert (fleet.sd[[1, *range(2 + K, 2 + 2 * K)]] == 0).all()
    assert "on the box" not in str(fit.summary())
    assert "sharpness=False, position=True, fallback=False" in str(fit.summary())
    assert np.isfinite(mtlirt.score_nrm(fit, golden)["se"]).all()


def test_traits_beyond_the_box_of_other_fits_are_scored(golden):
    """Without a box the fitted traits may lie anywhere, and new ones up to one more than the largest."""
    fit = mtlirt.fit_nrm(golden, channel="hard", scale="prior")
    far = replace(fit, general=fit.general * 3, theta=fit.theta * 3)
    far.options["a"] /= 3
    top = far.general.idxmax()
    assert far.general[top] > 5
    for scores in (
        far.score(golden).set_index("model")["general"],
        mtlirt.score_nrm(far, golden).set_index("model")["theta"],
    ):
        assert scores[top] > 4.1


@pytest.mark.parametrize(
    "arguments",
    [{"solver": mtlirt.Block()}, {"solver": "llm"}, {"sharpness": "yes"}, {"ridge": 1e-6}, {"scale": "big"}],
)
def test_bad_arguments(golden, arguments):
    with pytest.raises(InputError):
        mtlirt.fit_llm_nrm(golden, **arguments)


def test_bad_use(golden):
    with pytest.raises(InputError, match="needs a NominalFit"):
        mtlirt.score_nrm(mtlirt.fit_mtl(golden, 0.0), golden)
    nrm = mtlirt.fit_nrm(golden, channel="hard")
    for theta in ([], [np.nan], "high", [[0.0]]):
        with pytest.raises(InputError, match="theta must be"):
            nrm.information(theta)
    assert nrm.information(0.0).shape == (60, 5)
    with pytest.raises(InputError, match="low must be below high"):
        nrm.informative_distractors(2, -2)
    with pytest.raises(InputError, match='go with scale="unit"'):
        mtlirt.fit_nrm(golden, scale="prior", C=2.0)
    with pytest.raises(InputError, match="at least one of"):
        mtlirt.compare_channels(golden, models=())
    with pytest.raises(InputError, match="seed must"):
        mtlirt.simulate_llm_nrm(LLMNRMDesign(), -1)
    many = mtlirt.simulate_llm_nrm(LLMNRMDesign(N=8, J=8, options=(30, 30)), 1).responses
    assert mtlirt.fit_nrm(many).options["option"].iloc[29] == "29"
