"""The paper's heterogeneity design: domain traits at controlled angles from a centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import expit

from mtlirt.core.angle import line_median
from mtlirt.core.projection import project
from mtlirt.data import Responses
from mtlirt.errors import InputError

_BOX = 4.0


@dataclass(frozen=True, kw_only=True)
class HeterogeneityDesign:
    """Section 5.1 of the R-MTL paper.

    theta_t = sqrt(1 - alpha_t**2) * centre + sqrt(N) * alpha_t * v_t with v_t orthonormal, orthogonal to the centre
    and to ones; alpha_1 = h0, the others h0 * U(-1, 1). Slopes U(.5, 1.5), intercepts U(-1, 1).

    Parameters
    ----------
    h0 : heterogeneity, the largest sine between a domain trait and the centre, in [0, 1); the paper uses .1 to .5.
    N : number of models, more than the number of domains + 2.
    sizes, per_size : the domains have these numbers of items, `per_size` domains of each.
    center : "grid" is an equally spaced grid in random order (largest |theta| about 1.7); "normal" a normal sample,
        whose extreme models reach the box.
    missing : share of the cells that are left out, completely at random, in [0, 1).

    Raises
    ------
    InputError for values outside these ranges.

    >>> HeterogeneityDesign(h0=0.3).n_domains
    18
    """

    h0: float
    N: int = 100
    sizes: tuple[int, ...] = (50, 60, 70, 80, 90, 100)
    per_size: int = 3
    center: Literal["grid", "normal"] = "grid"
    missing: float = 0.0

    def __post_init__(self) -> None:
        checks = (
            (0 <= self.h0 < 1, f"h0 must lie in [0, 1), not {self.h0}"),
            (min(self.sizes, default=0) >= 2, "sizes must hold numbers of items, 2 or more"),
            (self.per_size >= 1, f"per_size must be 1 or more, not {self.per_size}"),
            (self.n_domains + 2 <= self.N, f"N must be at least {self.n_domains + 2}, the number of domains + 2"),
            (self.center in ("grid", "normal"), f"center must be 'grid' or 'normal', not {self.center!r}"),
            (0 <= self.missing < 1, f"missing must lie in [0, 1), not {self.missing}"),
        )
        for good, message in checks:
            if not good:
                raise InputError(f"HeterogeneityDesign: {message}")

    @property
    def n_domains(self) -> int:
        """Number of domains T."""
        return len(self.sizes) * self.per_size


@dataclass(frozen=True, eq=False)
class Truth:
    """theta : frame models x domains.  general : Series, their line median.  items : frame domain, item, a, d."""

    theta: pd.DataFrame
    general: pd.Series
    items: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Simulation:
    """responses : the answers.  truth : what they were drawn from."""

    responses: Responses
    truth: Truth


def simulate(design: HeterogeneityDesign, seed: int | np.random.Generator) -> Simulation:
    """Draw answers from a design.

    Models are named "m001", ..., domains "d01", ..., items "d01.i001", .... The same seed gives the same answers.

    >>> simulate(HeterogeneityDesign(h0=0.2, N=30, per_size=1), seed=1).responses.n_items
    450
    """
    rng = np.random.default_rng(seed)
    sizes = np.repeat(design.sizes, design.per_size)
    theta = _traits(design, rng)
    models = pd.Index([f"m{i:0{len(str(design.N))}d}" for i in range(1, design.N + 1)], name="model")
    width = len(str(len(sizes)))
    names = [f"d{t:0{max(2, width)}d}" for t in range(1, len(sizes) + 1)]
    domains = np.repeat(names, sizes)
    numbers = np.concatenate([np.arange(1, n + 1) for n in sizes])
    items = pd.DataFrame(
        {
            "domain": domains,
            "item": [f"{d}.i{j:03d}" for d, j in zip(domains, numbers, strict=True)],
            "a": rng.uniform(0.5, 1.5, len(domains)),
            "d": rng.uniform(-1, 1, len(domains)),
        }
    )
    z = theta[np.repeat(np.arange(len(sizes)), sizes)].T * items["a"].to_numpy() + items["d"].to_numpy()
    scores = (rng.random(z.shape) < expit(z)).astype(float)
    if design.missing:
        scores[rng.random(z.shape) < design.missing] = np.nan
    wide = pd.DataFrame(scores, index=models, columns=items["item"])
    responses = Responses.from_wide(wide, domains=dict(zip(items["item"], domains, strict=True)))
    truth = Truth(
        pd.DataFrame(theta.T, index=models, columns=pd.Index(names, name="domain")),
        pd.Series(line_median(theta).line, index=models, name="general"),
        items,
    )
    return Simulation(responses, truth)


def _traits(design: HeterogeneityDesign, rng: np.random.Generator) -> np.ndarray:
    """(T, N) domain traits."""
    N, T = design.N, design.n_domains
    raw = rng.permutation(np.linspace(-1, 1, N)) if design.center == "grid" else rng.normal(size=N)
    centre = project(raw, _BOX)
    basis = np.column_stack([np.ones(N), centre, rng.normal(size=(N, T))])
    tangents = np.linalg.qr(basis)[0][:, 2:].T
    alpha = design.h0 * np.concatenate([[1.0], rng.uniform(-1, 1, T - 1)])
    return np.sqrt(1 - alpha**2)[:, None] * centre + np.sqrt(N) * alpha[:, None] * tangents
