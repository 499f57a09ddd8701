"""A design for the LLM Nominal Response Model: parameters and answers by option, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mtlirt._arguments import number, one_of, require, whole
from mtlirt.core.llm_nrm import LLMObjective, LLMParameters, model_side, option_shares
from mtlirt.core.options import OptionGroup, centred

_CHUNK_CELLS = 1_000_000
_KEY_SLOPE = (0.4, 1.6)
_DISTRACTOR_SLOPE = 0.4
_SPREAD_OF_INTERCEPTS = 1.0
_LARGEST = 1e6


@dataclass(frozen=True, kw_only=True)
class LLMNRMDesign:
    """Models with ability, sharpness, positional bias and a fallback, on items with mixed numbers of options.

    theta standard normal, then standardised; log s normal, then centred; delta and rho normal, centred over positions.
    Before centring, slopes are U(.4, 1.6) for the key and N(0, .4**2) for distractors, intercepts N(0, 1); the key sits
    anywhere with the same probability.

    Parameters
    ----------
    N, J : numbers of models (at least 3) and items.
    options : smallest and largest number of options of an item, each number equally likely; at least 2. The first item
        has the largest.
    channel : "soft", answers are probabilities drawn from a Dirichlet distribution around the model's own;
        "hard", one option is drawn.
    concentration : of the Dirichlet distribution; the larger, the closer to the model's own probabilities.
    sharpness, position : standard deviations of log s and delta; 0 leaves the component out.
    fallback : standard deviation of rho; 0 leaves out rho and the gate.
    w0, kappa : intercept and slope of the gate.
    missing : share of the cells left out, completely at random, in [0, 1).

    Raises
    ------
    InputError for values outside these ranges.

    >>> LLMNRMDesign(N=20, J=15).options
    (2, 10)
    """

    N: int = 100
    J: int = 2000
    options: tuple[int, int] = (2, 10)
    channel: Literal["soft", "hard"] = "soft"
    concentration: float = 5.0
    sharpness: float = 0.4
    position: float = 0.3
    fallback: float = 0.7
    w0: float = -2.0
    kappa: float = 1.5
    missing: float = 0.0

    def __post_init__(self) -> None:
        pair = isinstance(self.options, tuple) and len(self.options) == 2
        require("LLMNRMDesign", [(pair, f"options must be a pair of numbers, not {self.options!r}")])
        low, high = self.options
        whole("N", self.N, 3)
        whole("J", self.J, 1)
        whole("largest number of options", high, whole("smallest number of options", low, 2))
        one_of("channel", self.channel, ("soft", "hard"))
        for name in ("sharpness", "position", "fallback"):
            number(name, getattr(self, name), 0, _LARGEST)
        for name in ("concentration", "kappa"):
            number(name, getattr(self, name), 1 / _LARGEST, _LARGEST)
        number("w0", self.w0, -_LARGEST, _LARGEST)
        require("LLMNRMDesign", [(0 <= self.missing < 1, f"missing must lie in [0, 1), not {self.missing!r}")])

    @property
    def objective(self) -> LLMObjective:
        """An objective with this design's components."""
        return LLMObjective(sharpness=self.sharpness > 0, position=self.position > 0, fallback=self.fallback > 0)


def draw(design: LLMNRMDesign, rng: np.random.Generator) -> tuple[LLMParameters, list[OptionGroup]]:
    """Draw parameters, gauged as in `LLMObjective(unit=True)`, and answers: float32 shares for the soft channel, uint8
    for the hard one. Memory beyond the answers is a few chunks of a million cells."""
    truth, n_options, key = _truth(design, rng)
    models = model_side(truth, design.objective)
    groups = []
    for K in np.unique(n_options):
        items = np.flatnonzero(n_options == K)
        target = np.empty((len(items), K, design.N), dtype=np.float32 if design.channel == "soft" else np.uint8)
        for some in _pieces(len(items), K * design.N):
            a, c = truth.a[items[some], :K], truth.c[items[some], :K]
            q = option_shares(models, a, c, key[items[some]], design.objective).transpose(1, 0, 2)
            target[some] = _answers(design, q, rng)
            if design.missing:
                target[some] *= rng.random((len(a), 1, design.N)) >= design.missing
        groups.append(OptionGroup(items, key[items], target))
    return truth, groups


def _truth(design: LLMNRMDesign, rng: np.random.Generator) -> tuple[LLMParameters, np.ndarray, np.ndarray]:
    """Gauged parameters, numbers of options (J,) and keys (J,)."""
    low, high = design.options
    n_options = rng.integers(low, high + 1, design.J)
    n_options[0] = high
    key = rng.integers(0, n_options)
    options = np.arange(high) < n_options[:, None]
    theta = rng.normal(size=design.N)
    log_s = design.sharpness * rng.normal(size=design.N)
    delta, rho = (sd * rng.normal(size=(design.N, high)) for sd in (design.position, design.fallback))
    a = _DISTRACTOR_SLOPE * rng.normal(size=options.shape)
    a[np.arange(design.J), key] = rng.uniform(*_KEY_SLOPE, design.J)
    c = _SPREAD_OF_INTERCEPTS * rng.normal(size=options.shape)
    truth = LLMParameters(
        theta=(theta - theta.mean()) / theta.std(),
        log_s=log_s - log_s.mean(),
        delta=delta - delta.mean(axis=1, keepdims=True),
        rho=rho - rho.mean(axis=1, keepdims=True),
        w0=design.w0,
        log_kappa=float(np.log(design.kappa)),
        a=centred(a, options),
        c=centred(c, options),
    )
    return truth, n_options, key


def _pieces(n_items: int, cells: int) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // cells)
    return (slice(start, start + step) for start in range(0, n_items, step))


def _answers(design: LLMNRMDesign, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(I, K, N) shares around the probabilities q, or one option drawn from them."""
    if design.channel == "hard":
        reached = q.cumsum(axis=1) > rng.random((len(q), 1, q.shape[2]))
        reached[:, -1] = True
        return np.diff(reached, axis=1, prepend=False)
    share = rng.standard_gamma(np.maximum(design.concentration * q, 1e-6).astype(np.float32), dtype=np.float32)
    total = share.sum(axis=1, keepdims=True)
    return np.where(total > 0, share, q) / np.where(total > 0, total, 1.0)
