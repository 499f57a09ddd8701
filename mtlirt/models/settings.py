"""`Settings`: what every fit of the multi-domain 2PL is told, apart from lam; and the `Problem` it makes of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from mtlirt._arguments import number, one_of
from mtlirt.core.problem import Problem, make_problem
from mtlirt.core.projection import check_box
from mtlirt.data import Responses
from mtlirt.data.checks import check_estimable
from mtlirt.errors import InputError
from mtlirt.models.assemble import assemble
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.solvers.adam import Adam
from mtlirt.solvers.block import Block
from mtlirt.solvers.solution import Solution

AnyFit = Fit | NominalFit
Solver = Block | Adam
BLOCK = Block()
MissingWeight = Literal["observed", "paper"]
PenaltyWeights = Mapping[str, float] | None
_LARGEST_C = 20.0  # the grid grows with its square
_FOLD_TOL = 100.0  # times the solver's: held-out losses change by less than a hundredth of their standard errors
_PENALTY_WEIGHTS = (1e-6, 1e6)


@dataclass(frozen=True)
class Settings:
    """solver, C, missing_weight and penalty_weights as in `fit_mtl`, checked at birth."""

    solver: Solver = BLOCK
    C: float = 4.0
    missing_weight: MissingWeight = "observed"
    penalty_weights: PenaltyWeights = None

    kind: ClassVar[type] = Fit

    def __post_init__(self) -> None:
        one_of("missing_weight", self.missing_weight, ("observed", "paper"))
        number("C", self.C, 1.0, _LARGEST_C)
        if not isinstance(self.solver, Block | Adam):
            raise InputError(f"solver must be Block(...) or Adam(...), not {self.solver!r}")

    @property
    def fold_solver(self) -> Solver:
        """The solver for fits that only predict held-out answers: their losses need two digits fewer than traits."""
        solver = self.solver
        return replace(solver, tol=min(_FOLD_TOL * solver.tol, 0.1)) if isinstance(solver, Block) else solver

    def record(self) -> dict[str, Any]:
        """The settings as plain values, for a manifest."""
        weights = self.penalty_weights
        return {
            "solver": {"name": type(self.solver).__name__, **asdict(self.solver)},
            "C": float(self.C),
            "missing_weight": self.missing_weight,
            "penalty_weights": None if weights is None else {k: float(v) for k, v in weights.items()},
        }

    def prepare(self, responses: Responses) -> Responses:
        """The answers that this kind of model can use."""
        if not isinstance(responses, Responses):
            raise InputError(f"responses must be Responses, as read_responses gives, not {type(responses).__name__}")
        return responses

    def problem(self, responses: Responses) -> Problem:
        """The estimation problem of prepared answers; InputError if they cannot be fitted."""
        check_estimable(responses)
        blocks = [responses.block(domain) for domain in responses.domains]
        problem = make_problem(blocks, np.ones(len(blocks)), self._penalty_weights(responses), float(self.C))
        for domain, present in zip(responses.domains, problem.answers_per_model > 0, strict=True):
            try:
                check_box(float(self.C), int(present.sum()))
            except ValueError as error:
                raise InputError(f"domain {domain!r}: {error}") from error
        return self.weighted(problem)

    def assemble(
        self, responses: Responses, problem: Problem, lam: float, lam_max: np.ndarray, solution: Solution
    ) -> AnyFit:
        """The fit that a solution for prepared answers makes."""
        return assemble(responses, problem, lam, lam_max, solution, self.record())

    def weighted(self, problem: Problem) -> Problem:
        """The same answers with the weight of each domain as `missing_weight` says."""
        share = np.ones(len(problem.domains))
        if self.missing_weight == "observed":
            share = problem.answers_per_model.sum(axis=1) / (problem.sizes * problem.n_models)
        return replace(problem, weights=1 / (problem.sizes * share))

    def _penalty_weights(self, responses: Responses) -> np.ndarray:
        given = self.penalty_weights
        if given is None:
            return np.ones(len(responses.domains))
        if not isinstance(given, Mapping):
            raise InputError(f"penalty_weights must map domains to weights, not {given!r}")
        missing = [d for d in responses.domains if d not in given]
        if missing:
            raise InputError(f"penalty_weights: no weight for domain {missing[0]!r}")
        return np.array([number(f"penalty_weights[{d!r}]", given[d], *_PENALTY_WEIGHTS) for d in responses.domains])
