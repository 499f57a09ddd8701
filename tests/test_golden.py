"""Exact optima found by other means, reproduced."""

import math

import numpy as np
import pytest
from conftest import shared

import mtlirt
from mtlirt.core.angle import sines
from mtlirt.core.likelihood import cell_sums
from mtlirt.core.problem import make_problem
from mtlirt.core.start import cold_start

LAMS = ["0", "1.0", "2.0", "4.0", "inf"]
LEADERBOARD_LAMS = ["0", "10", "30", "60", "100", "200", "inf"]


@pytest.mark.parametrize("which", ["complete", "missing20"])
@pytest.mark.parametrize("lam", LAMS)
def test_block_reaches_the_golden_objective_of_the_paper_design(h03, h03_golden, which, lam):
    fit = mtlirt.fit_mtl(h03[which], float(lam))
    golden = h03_golden[which][lam]
    # golden/README: within 1e-6 relative, never more than 1e-9 relative below
    assert -1e-9 < fit.objective / golden["objective"] - 1 < 1e-6
    assert fit.converged
    assert len(fit.trace) <= 60  # the limit
    # the golden's value to the precision that an objective within 1e-9 leaves to a single trait
    assert fit.theta.abs().to_numpy().max() == pytest.approx(golden["max_abs_theta"], abs=5e-3)


@pytest.mark.parametrize("lam", LAMS[1:4])
def test_penalty_of_the_paper_design(h03, h03_golden, lam):
    fit = mtlirt.fit_mtl(h03["complete"], float(lam))
    golden = h03_golden["complete"][lam]
    # at a minimum the sines move by the square root of the objective's error, here 1e-9 or less
    assert fit.penalty / fit.lam == pytest.approx(golden["penalty_sines"], rel=1e-4)
    assert fit.heterogeneity()["sine"].min() == pytest.approx(golden["min_sine"], abs=1e-3)


@pytest.mark.parametrize("which", ["complete", "missing20"])
def test_fusion_thresholds_of_the_paper_design(h03, h03_golden, which):
    thresholds = mtlirt.fusion_thresholds(h03[which])
    np.testing.assert_allclose(thresholds, h03_golden[which]["lam_max_t"], rtol=1e-6)  # the bound


@pytest.mark.parametrize("which", ["complete", "missing20"])
@pytest.mark.parametrize("lam", ["0", "2.0", "inf"])
def test_errors_against_the_truth_of_the_paper_design(h03, h03_golden, which, lam):
    fit = mtlirt.fit_mtl(h03[which], float(lam))
    with np.load(shared("golden", "rmtl_h03.npz")) as z:
        theta, general = z["theta"], z["general"]
    N = len(general)
    domain_error = np.linalg.norm(fit.theta.to_numpy().T - theta, axis=1).mean() / math.sqrt(N)
    general_error = np.linalg.norm(fit.general.to_numpy() - general) / math.sqrt(N)
    # the same minimum gives the same errors; 1e-3 for the flat directions at an objective within 1e-9
    assert [domain_error, general_error] == pytest.approx(h03_golden[which][lam]["errors"], abs=1e-3)


@pytest.mark.parametrize("which", ["complete", "missing20"])
@pytest.mark.parametrize("lam", ["0", "2.0", "inf"])
def test_adam_reaches_the_golden_objective_of_the_paper_design(h03, h03_golden, which, lam):
    fit = mtlirt.fit_mtl(h03[which], float(lam), solver=mtlirt.Adam())
    # the issue asks Adam for 1e-4
    assert -1e-9 < fit.objective / h03_golden[which][lam]["objective"] - 1 < 1e-4


@pytest.fixture(scope="module")
def ends(leaderboard):
    """The two ends of the path: starts for the fits between."""
    return {lam: mtlirt.fit_mtl(leaderboard, lam) for lam in (0.0, math.inf)}


def check_leaderboard(fit, golden, lam):
    best = golden["best_known"][lam]["objective"]
    assert fit.converged
    assert fit.objective / best - 1 < 1e-6  # the bound; below is welcome
    objective = fit.trace["objective"].to_numpy()
    assert (np.diff(objective) <= 1e-10 * objective[1:]).all()  # the bound on a rise
    adam = golden["adam_1500_steps"].get(lam)
    assert adam is None or fit.objective < adam


@pytest.mark.parametrize("lam", LEADERBOARD_LAMS)
def test_block_on_the_leaderboard(leaderboard, leaderboard_golden, lam):
    fit = mtlirt.fit_mtl(leaderboard, float(lam))
    check_leaderboard(fit, leaderboard_golden, lam)
    best = leaderboard_golden["best_known"][lam]
    if best["sines"]:
        sines = fit.heterogeneity().set_index("domain")["sine"]
        for domain, sine in best["sines"].items():
            # golden sines have 4 digits and their objective is within 1e-5: flat directions move them by .02 at lam = 0
            assert sines[domain] == pytest.approx(sine, abs=0.03 if lam == "0" else 0.005)


@pytest.mark.parametrize("lam", LEADERBOARD_LAMS[1:-1])
@pytest.mark.parametrize("start", [0.0, math.inf])
def test_block_on_the_leaderboard_from_the_ends(leaderboard, leaderboard_golden, ends, lam, start):
    fit = mtlirt.fit_mtl(leaderboard, float(lam), init=ends[start])
    check_leaderboard(fit, leaderboard_golden, lam)


@pytest.mark.parametrize("lam", LEADERBOARD_LAMS[1:-1])
def test_block_on_the_leaderboard_from_a_cold_start(leaderboard, leaderboard_golden, lam):
    blocks = [leaderboard.block(domain) for domain in leaderboard.domains]
    ones = np.ones(len(blocks))
    problem = make_problem(blocks, 1 / leaderboard.sizes.to_numpy(), ones, C=4.0)
    solution = mtlirt.Block().solve(problem, float(lam), cold_start(problem, borrow=True))
    loss = problem.weights @ cell_sums(problem, solution.theta, solution.a, solution.d).nll
    sine = sines(solution.general, solution.theta)[~solution.fused].sum()
    best = leaderboard_golden["best_known"][lam]["objective"]
    assert (loss + float(lam) * sine) / best - 1 < 1e-6  # the bound
    objective = np.array([row["objective"] for row in solution.trace])
    assert (np.diff(objective) <= 1e-10 * objective[1:]).all()  # the bound on a rise


def test_leaderboard_thresholds(leaderboard, leaderboard_golden):
    # the golden pooled fit lies 3e-8 above ours, which moves a gradient by about its square root, 2e-4
    thresholds = mtlirt.fusion_thresholds(leaderboard)
    for domain, value in leaderboard_golden["lam_max_t"].items():
        assert thresholds[domain] == pytest.approx(value, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [30.0, 200.0])
def test_block_is_not_above_our_adam_with_1500_steps(leaderboard, lam):
    adam = mtlirt.fit_mtl(leaderboard, lam, solver=mtlirt.Adam(steps=1500, window=1499), on_fail="ignore")
    block = mtlirt.fit_mtl(leaderboard, lam)
    # one minimum: Block's tolerance is 1e-10
    assert block.objective <= adam.objective * (1 + 1e-9)
