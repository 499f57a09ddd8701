"""The difficulty index of the LLM-NRM's gate, and its derivatives.

Eq. 10 of the paper divides the log-odds margin of the key at theta = 0 by its slope there. The slope may vanish or be
negative, so the quotient is either bent smoothly or clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mtlirt.core.llm_nrm import LLMObjective

_STEEP = 0.05  # the paper's index: denominators closer to 0 than this are moved away from it
_HARDEST = 6.0  # difficulty indices stay within -6 and 6


@dataclass(frozen=True)
class Difficulty:
    """Difficulty indices b (I,) and their derivatives by a and c, (I, K)."""

    b: np.ndarray
    by_a: np.ndarray
    by_c: np.ndarray


@dataclass(frozen=True)
class _Ratio:
    """b as a function of num and den: its value, first derivatives (n, d) and second (nn, nd, dd), each (I,)."""

    b: np.ndarray
    n: np.ndarray
    d: np.ndarray
    nn: np.ndarray
    nd: np.ndarray
    dd: np.ndarray


def difficulty_index(a: np.ndarray, c: np.ndarray, key: np.ndarray, objective: LLMObjective) -> Difficulty:
    """Eq. 10: b = num / den with num = log sum_{k != g} exp(c_k) - c_g and den = a_g - sum_{k != g} w_k a_k, w the
    softmax of the distractors' c, made safe as `objective.difficulty` says.

    a, c : (I, K) of items with K options.  key : (I,).
    """
    w, num, den = _margin(a, c, key)
    ratio = _ratio(num, den, objective)
    return Difficulty(ratio.b, *_chain(ratio, _by_margin(w, a, key)))


def difficulty_curvature(a: np.ndarray, c: np.ndarray, key: np.ndarray, objective: LLMObjective) -> np.ndarray:
    """(I, 2K, 2K) second derivatives of the index by (a, c) of items with K options."""
    K = a.shape[1]
    w, num, den = _margin(a, c, key)
    ratio = _ratio(num, den, objective)
    by_num, by_den = (x.reshape(len(a), 2 * K) for x in _by_margin(w, a, key))
    turned = w[:, :, None] * np.eye(K) - w[:, :, None] * w[:, None, :]
    off = a - (w * a).sum(axis=1, keepdims=True)
    out = np.zeros((len(a), 2 * K, 2 * K))
    out[:, K:, K:] = ratio.n[:, None, None] * turned
    out[:, K:, K:] -= ratio.d[:, None, None] * (turned * off[:, :, None] - w[:, :, None] * (w * off)[:, None, :])
    out[:, K:, :K] -= ratio.d[:, None, None] * turned
    out[:, :K, K:] -= ratio.d[:, None, None] * turned
    steep = ratio.nn[:, None] * by_num + ratio.nd[:, None] * by_den
    out += by_num[:, :, None] * steep[:, None, :]
    steep = ratio.nd[:, None] * by_num + ratio.dd[:, None] * by_den
    out += by_den[:, :, None] * steep[:, None, :]
    return out


def _margin(a: np.ndarray, c: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distractor weights (I, K), num and den (I,)."""
    rows = np.arange(len(a))
    wrong = np.ones(a.shape, dtype=bool)
    wrong[rows, key] = False
    top = np.where(wrong, c, -np.inf).max(axis=1, keepdims=True)
    w = np.exp(np.where(wrong, c - top, -np.inf))
    total = w.sum(axis=1, keepdims=True)
    w /= total
    return w, (np.log(total) + top)[:, 0] - c[rows, key], a[rows, key] - (w * a).sum(axis=1)


def _by_margin(w: np.ndarray, a: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of num and den by a and c, each (I, 2, K)."""
    rows = np.arange(len(a))
    by_num, by_den = np.zeros((2, len(a), 2, a.shape[1]))
    by_num[:, 1] = w
    by_num[rows, 1, key] = -1.0
    by_den[:, 0] = -w
    by_den[rows, 0, key] = 1.0
    by_den[:, 1] = -w * (a - (w * a).sum(axis=1, keepdims=True))
    return by_num, by_den


def _chain(ratio: _Ratio, by: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    both = ratio.n[:, None, None] * by[0] + ratio.d[:, None, None] * by[1]
    return both[:, 0], both[:, 1]


def _ratio(num: np.ndarray, den: np.ndarray, objective: LLMObjective) -> _Ratio:
    return _smooth(num, den, objective.eps) if objective.difficulty == "smooth" else _clamped(num, den)


def _smooth(num: np.ndarray, den: np.ndarray, eps: float) -> _Ratio:
    """6 tanh(num den / (den**2 + eps**2) / 6)."""
    squares = den**2 + eps**2
    share, change = den / squares, (eps**2 - den**2) / squares**2
    bend = 2 * den * (den**2 - 3 * eps**2) / squares**3
    bent = np.tanh(num * share / _HARDEST)
    first = 1.0 - bent**2
    second = -2.0 / _HARDEST * bent * first
    return _Ratio(
        b=_HARDEST * bent,
        n=first * share,
        d=first * num * change,
        nn=second * share**2,
        nd=first * change + second * share * num * change,
        dd=first * num * bend + second * (num * change) ** 2,
    )


def _clamped(num: np.ndarray, den: np.ndarray) -> _Ratio:
    """num / den, |den| kept above .05 with its sign, within -6 and 6; flat where either limit holds."""
    steep = np.abs(den) >= _STEEP
    safe = np.where(steep, den, np.where(den < 0, -_STEEP, _STEEP))
    ratio = num / safe
    inside = (np.abs(ratio) <= _HARDEST).astype(float)
    flat = inside * steep
    return _Ratio(
        b=np.clip(ratio, -_HARDEST, _HARDEST),
        n=inside / safe,
        d=-flat * num / safe**2,
        nn=np.zeros_like(num),
        nd=-flat / safe**2,
        dd=2 * flat * num / safe**3,
    )
