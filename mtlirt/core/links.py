"""Link functions that neither overflow nor lose digits."""

import numpy as np


def softplus(z: np.ndarray) -> np.ndarray:
    """log(1 + exp(z)) without overflow."""
    out = np.abs(z)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(z, 0.0)
    return out


def log_sum_exp(z: np.ndarray, axis: int) -> np.ndarray:
    """log of the sum of exp(z) along an axis, without overflow."""
    top = z.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(z - top).sum(axis=axis))
