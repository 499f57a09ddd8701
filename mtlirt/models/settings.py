"""`Settings`: what every fit of the multi-domain 2PL is told, apart from lam; and the `Problem` it makes of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from mtlirt.core.problem import Problem, make_problem
from mtlirt.core.projection import check_box
from mtlirt.data import Responses
from mtlirt.data.checks import check_estimable
from mtlirt.errors import InputError
from mtlirt.solvers.adam import Adam
from mtlirt.solvers.block import Block

Solver = Block | Adam
BLOCK = Block()
MissingWeight = Literal["observed", "paper"]
PenaltyWeights = Mapping[str, float] | None


@dataclass(frozen=True)
class Settings:
    """solver, C, missing_weight and penalty_weights as in `fit_mtl`, checked at birth."""

    solver: Solver = BLOCK
    C: float = 4.0
    missing_weight: MissingWeight = "observed"
    penalty_weights: PenaltyWeights = None

    def __post_init__(self) -> None:
        check_choice("missing_weight", self.missing_weight, ("observed", "paper"))
        if not isinstance(self.solver, Block | Adam):
            raise InputError(f"solver must be Block(...) or Adam(...), not {self.solver!r}")

    def record(self) -> dict[str, Any]:
        """The settings as plain values, for a manifest."""
        weights = self.penalty_weights
        return {
            "solver": {"name": type(self.solver).__name__, **asdict(self.solver)},
            "C": float(self.C),
            "missing_weight": self.missing_weight,
            "penalty_weights": None if weights is None else {k: float(v) for k, v in weights.items()},
        }

    def problem(self, responses: Responses) -> Problem:
        """The estimation problem of all answers; InputError if they cannot be fitted."""
        check_estimable(responses)
        try:
            check_box(float(self.C), responses.n_models)
        except ValueError as error:
            raise InputError(str(error)) from error
        blocks = [responses.block(domain) for domain in responses.domains]
        return self.weighted(
            make_problem(blocks, np.ones(len(blocks)), self._penalty_weights(responses), float(self.C))
        )

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
        missing = [d for d in responses.domains if d not in given]
        if missing:
            raise InputError(f"penalty_weights: no weight for domain {missing[0]!r}")
        weights = np.array([float(given[d]) for d in responses.domains])
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise InputError("penalty_weights must be positive and finite")
        return weights


def check_choice(name: str, given: object, allowed: tuple[str, ...]) -> None:
    """Raise InputError unless `given` is one of the `allowed` words."""
    if given not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {given!r}")


def check_lam(lam: object) -> float:
    """`lam` as a float from 0 to infinity, or InputError."""
    try:
        value = float(lam)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"lam must be a number from 0 to infinity, or 'cv', not {lam!r}") from None
    if not value >= 0:
        raise InputError(f"lam must be a number from 0 to infinity, not {lam!r}")
    return value
