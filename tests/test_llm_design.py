"""Answers drawn from the LLM Nominal Response Model, and how well a fit finds their parameters again."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from test_llm_nrm import NRM, problem_of

from mtlirt import InputError
from mtlirt.core.llm_nrm import LLMObjective, loss_and_gradient, probabilities
from mtlirt.simulation.llm_nrm import LLMNRMDesign, draw
from mtlirt.solvers.llm_nrm import LLMSolver, standard_start


class TestSimulation:
    def test_recovery(self):
        truth, groups = draw(LLMNRMDesign(N=60, J=400), np.random.default_rng(1))
        problem = problem_of(groups)
        solution = LLMSolver().solve(problem, LLMObjective(), standard_start(problem))
        got = solution.parameters
        assert solution.loss < loss_and_gradient(truth, problem, LLMObjective())[0]
        # over twelve seeds of this design: Spearman .989 to .997, log s .89 to .97, delta .61 to .70, rho .91 to .93,
        # root mean square error of probabilities .023 to .025; bounds a fair bit looser
        assert spearmanr(got.theta, truth.theta)[0] > 0.98
        assert np.corrcoef(got.log_s, truth.log_s)[0, 1] > 0.8
        assert np.corrcoef(got.delta.ravel(), truth.delta.ravel())[0, 1] > 0.5
        assert np.corrcoef(got.rho.ravel(), truth.rho.ravel())[0, 1] > 0.85
        items = np.arange(0, 400, 5)
        p, q = (probabilities(x, problem, LLMObjective(), items) for x in (got, truth))
        assert np.sqrt(np.mean((p - q) ** 2)) < 0.03

    @pytest.mark.parametrize("channel", ["soft", "hard"])
    def test_answers_follow_the_model(self, channel):
        design = LLMNRMDesign(N=200, J=60, options=(3, 5), channel=channel, missing=0.25)
        truth, groups = draw(design, np.random.default_rng(4))
        problem = problem_of(groups)
        assert {group.target.dtype for group in groups} == {np.dtype("float32" if channel == "soft" else "uint8")}
        observed = problem.domains[0].observed
        # 12000 cells: the share missing has standard error .004
        assert abs(1 - observed.mean() - 0.25) < 0.02
        p = probabilities(truth, problem, design.objective, np.arange(60))
        for group in groups:
            seen = group.target.any(axis=1)
            total = group.target.sum(axis=1)
            np.testing.assert_allclose(total[seen], 1, atol=1e-5)  # float32
            want = p[:, group.items, : group.target.shape[1]].transpose(1, 2, 0)
            # sums over some 150 answers each of shares with variance below 1 / 4: standard error below 6.2
            assert np.abs(((group.target - want) * seen[:, None]).sum(axis=2)).max() < 25

    def test_components_can_be_left_out(self):
        design = LLMNRMDesign(N=10, J=20, sharpness=0, position=0, fallback=0)
        truth, _ = draw(design, np.random.default_rng(0))
        assert not truth.log_s.any()
        assert not truth.delta.any()
        assert not truth.rho.any()
        assert design.objective == LLMObjective(**NRM)

    def test_same_seed_same_answers(self):
        one, other = (draw(LLMNRMDesign(N=8, J=30), np.random.default_rng(9))[1] for _ in range(2))
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x.target, y.target)

    @pytest.mark.parametrize(
        "bad", [{"N": 2}, {"J": 0}, {"options": (1, 4)}, {"channel": "loud"}, {"missing": 1.0}, {"sharpness": -1.0}]
    )
    def test_refuses(self, bad):
        with pytest.raises(InputError):
            LLMNRMDesign(**bad)
