"""The paper's heterogeneity design: domain traits at controlled angles from a centre."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from mtlirt._arguments import number, require, whole
from mtlirt.core.angle import line_median
from mtlirt.core.projection import project
from mtlirt.simulation.draw import Truth

_BOX = 4.0
_CLUSTERS, _WITHIN = 4, 0.2


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
    center : "grid", the paper's, is an equally spaced grid in random order (largest |theta| about 1.7); "normal" a
        normal sample, whose extreme models come near the box; "clustered" four equal groups of models, standard
        deviation .2 of the distance between them; "skewed" an exponential sample: few models far ahead, on the box.
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
    center: Literal["grid", "normal", "clustered", "skewed"] = "grid"
    missing: float = 0.0

    def __post_init__(self) -> None:
        number("h0", self.h0, 0, 1)
        whole("N", self.N, 1)
        whole("per_size", self.per_size, 1)
        for size in self.sizes if isinstance(self.sizes, tuple | list) else (self.sizes,):
            whole("an entry of sizes", size, 2)
        checks = (
            (0 <= self.h0 < 1, f"h0 must lie in [0, 1), not {self.h0}"),
            (isinstance(self.sizes, tuple) and len(self.sizes) > 0, "sizes must be a tuple of numbers of items"),
            (self.n_domains + 2 <= self.N, f"N must be at least {self.n_domains + 2}, the number of domains + 2"),
            (self.center in _CENTRES, f"center must be one of {', '.join(_CENTRES)}, not {self.center!r}"),
            (0 <= self.missing < 1, f"missing must lie in [0, 1), not {self.missing}"),
        )
        require("HeterogeneityDesign", checks)

    @property
    def n_domains(self) -> int:
        """Number of domains T."""
        return len(self.sizes) * self.per_size

    def truth(self, rng: np.random.Generator) -> Truth:
        """Traits and items. Models are named "m001", ..., domains "d01", ..., items "d01.i001", ...."""
        sizes = np.repeat(self.sizes, self.per_size)
        theta = _traits(self, rng)
        models = pd.Index([f"m{i:0{len(str(self.N))}d}" for i in range(1, self.N + 1)], name="model")
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
        return Truth(
            pd.DataFrame(theta.T, index=models, columns=pd.Index(names, name="domain")),
            pd.Series(line_median(theta).line, index=models, name="general"),
            items,
        )


def _grid(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.permutation(np.linspace(-1, 1, n))


def _clustered(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.permutation(np.arange(n) % _CLUSTERS) + _WITHIN * rng.normal(size=n)


_CENTRES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "grid": _grid,
    "normal": lambda rng, n: rng.normal(size=n),
    "clustered": _clustered,
    "skewed": lambda rng, n: rng.exponential(size=n),
}


def _traits(design: HeterogeneityDesign, rng: np.random.Generator) -> np.ndarray:
    """(T, N) domain traits."""
    N, T = design.N, design.n_domains
    centre = project(_CENTRES[design.center](rng, N), _BOX)
    basis = np.column_stack([np.ones(N), centre, rng.normal(size=(N, T))])
    tangents = np.linalg.qr(basis)[0][:, 2:].T
    alpha = design.h0 * np.concatenate([[1.0], rng.uniform(-1, 1, T - 1)])
    return np.sqrt(1 - alpha**2)[:, None] * centre + np.sqrt(N) * alpha[:, None] * tangents
