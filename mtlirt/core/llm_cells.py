"""The cells of the LLM Nominal Response Model: logits, losses and their derivatives for a chunk of items with the same
number of options. All arrays of cells are (K, I, N): option by option, items, models, so that sums over options and
products with what belongs to an item and a model run over contiguous memory.

    u_k = s (a_k theta + c_k + delta_k),  G = sigma(w0 - kappa (theta - b)),  z_k = u_k + G (rho_k - u_k)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SHUT = 60.0  # logits of the gate beyond it are cut off: exp(-60) is nothing, and exp must not overflow


@dataclass(frozen=True)
class ModelSide:
    """What the logits need of the models.

    theta, s : (N,).  utility : (Kmax, 3, N) with u_k = [a_k, c_k, 1] @ utility[k].  gap : the same for rho_k - u_k, or
    None without fallback.  w0, kappa : the gate's intercept and slope.
    """

    theta: np.ndarray
    s: np.ndarray
    utility: np.ndarray
    gap: np.ndarray | None
    w0: float
    kappa: float


@dataclass(frozen=True)
class Cells:
    """A chunk at given parameters.

    q : (K, I, N) probabilities.  gap : (K, I, N) rho_k - u_k.  gate : (I, N) G.  loss : (I,) sums over models.
    `gap` and `gate` are None without fallback.
    """

    q: np.ndarray
    gap: np.ndarray | None
    gate: np.ndarray | None
    loss: np.ndarray

    def take(self, items: np.ndarray) -> Cells:
        """The same for some of the items."""
        if self.gap is None or self.gate is None:
            return Cells(self.q[:, items], None, None, self.loss[items])
        return Cells(self.q[:, items], self.gap[:, items], self.gate[items], self.loss[items])

    @classmethod
    def joined(cls, parts: list[Cells]) -> Cells:
        """Chunks of items with the same number of options, one after the other."""
        gap, gate = ([x for part in parts if (x := getattr(part, name)) is not None] for name in ("gap", "gate"))
        return cls(
            np.concatenate([part.q for part in parts], axis=1),
            np.concatenate(gap, axis=1) if gap else None,
            np.concatenate(gate) if gate else None,
            np.concatenate([part.loss for part in parts]),
        )

    def put(self, items: np.ndarray, other: Cells) -> None:
        """Overwrite some of the items with what `other` holds for them."""
        self.q[:, items], self.loss[items] = other.q, other.loss
        if self.gap is not None and self.gate is not None and other.gap is not None and other.gate is not None:
            self.gap[:, items], self.gate[items] = other.gap, other.gate

    def weight(self, models: ModelSide) -> np.ndarray:
        """(I, N) or (N,) what multiplies a_k theta + c_k in the logit: s (1 - G)."""
        return models.s if self.gate is None else (1.0 - self.gate) * models.s

    def slope(self, models: ModelSide) -> np.ndarray | None:
        """(I, N) derivative of the gate by the difficulty, kappa G (1 - G)."""
        return None if self.gate is None else models.kappa * self.gate * (1.0 - self.gate)


@dataclass(frozen=True)
class Residuals:
    """Derivatives of a chunk's losses by its logits.

    weighted : (K, I, N) probability less target, times s (1 - G).  total : (K, N) their sums over items, unweighted.
    by_gate : (I, N) derivative of the loss by G; `total` and it are None without fallback.
    """

    weighted: np.ndarray
    total: np.ndarray | None
    by_gate: np.ndarray | None


@dataclass(frozen=True)
class ModelGradient:
    """Derivatives by what belongs to models.  theta, log_s : (N,).  delta, rho : (K, N).  gate : (2,) by w0 and
    log kappa."""

    theta: np.ndarray
    log_s: np.ndarray
    delta: np.ndarray
    rho: np.ndarray
    gate: np.ndarray

    @classmethod
    def zero(cls, n_models: int, n_positions: int) -> ModelGradient:
        """Nothing yet."""
        theta, log_s = np.zeros((2, n_models))
        delta, rho = np.zeros((2, n_positions, n_models))
        return cls(theta, log_s, delta, rho, np.zeros(2))

    def add(self, other: ModelGradient, times: float = 1.0) -> None:
        """Add what some items with as many or fewer options say, in place."""
        K = len(other.delta)
        self.theta[:] += times * other.theta
        self.log_s[:] += times * other.log_s
        self.delta[:K] += times * other.delta
        self.rho[:K] += times * other.rho
        self.gate[:] += times * other.gate


def evaluate(
    models: ModelSide, a: np.ndarray, c: np.ndarray, b: np.ndarray, target: np.ndarray, observed: np.ndarray | None
) -> Cells:
    """Probabilities and losses log sum_k exp(z_k) - sum_k p_k z_k of a chunk.

    a, c : (I, K).  b : (I,) difficulty indices.  target : (K, I, N) shares p, which add up to 1 in answered cells.
    observed : (I, N) 1 where answered, or None.
    """
    K = len(target)
    left = np.stack([a.T, c.T, np.ones_like(a.T)], axis=2)
    z = left @ models.utility[:K]
    gap = gate = None
    if models.gap is not None:
        gap = left @ models.gap[:K]
        gate = _gate(models, b)
        z += gate * gap
    z -= z.max(axis=0)
    cell = -(target * z).sum(axis=0)
    np.exp(z, out=z)
    total = z.sum(axis=0)
    z /= total
    np.log(total, out=total)
    if observed is not None:
        total *= observed
    cell += total
    return Cells(z, gap, gate, cell.sum(axis=1))


def _gate(models: ModelSide, b: np.ndarray) -> np.ndarray:
    """(I, N) sigma(w0 - kappa (theta - b))."""
    x = np.subtract(models.theta, b[:, None])
    x *= models.kappa
    x -= models.w0
    np.clip(x, -_SHUT, _SHUT, out=x)
    np.exp(x, out=x)
    x += 1.0
    return np.reciprocal(x, out=x)


def residuals(models: ModelSide, cells: Cells, target: np.ndarray, observed: np.ndarray | None) -> Residuals:
    """Derivatives of the losses by the logits and by the gate."""
    r = cells.q - target if observed is None else cells.q * observed - target
    return carried(models, cells, r)


def carried(models: ModelSide, cells: Cells, r: np.ndarray) -> Residuals:
    """What derivatives r (K, I, N) by the logits, which are overwritten, carry to the parameters."""
    total = by_gate = None
    if cells.gap is not None:
        total, by_gate = r.sum(axis=1), (r * cells.gap).sum(axis=0)
    r *= cells.weight(models)
    return Residuals(r, total, by_gate)


def item_gradient(models: ModelSide, cells: Cells, residual: Residuals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives by a and c at fixed difficulty, each (I, K), and by the difficulty, (I,)."""
    by = residual.weighted @ np.stack([models.theta, np.ones_like(models.theta)], axis=1)
    by_b = np.zeros(by.shape[1])
    slope = cells.slope(models)
    if slope is not None and residual.by_gate is not None:
        by_b = (slope * residual.by_gate).sum(axis=1)
    return by[:, :, 0].T, by[:, :, 1].T, by_b


def model_gradient(
    models: ModelSide, cells: Cells, residual: Residuals, a: np.ndarray, c: np.ndarray, b: np.ndarray
) -> ModelGradient:
    """Derivatives by theta, log s, delta, rho, w0 and log kappa, items held fixed.  a, c : (I, K).  b : (I,)."""
    K, _, N = residual.weighted.shape
    left = np.stack([a.T, c.T, np.ones_like(a.T)], axis=1)
    by = left @ residual.weighted
    theta, delta = by[:, 0].sum(axis=0), by[:, 2]
    own = models.utility[:K, 2] / models.s
    log_s = models.theta * theta + by[:, 1].sum(axis=0) + (own * delta).sum(axis=0)
    rho, gate = np.zeros((K, N)), np.zeros(2)
    if cells.gate is not None and residual.by_gate is not None and residual.total is not None:
        rho = residual.total - delta / models.s
        flow = cells.gate * (1.0 - cells.gate) * residual.by_gate
        per_model = flow.sum(axis=0)
        far = per_model * models.theta - b @ flow
        theta = theta - models.kappa * per_model
        gate = np.array([per_model.sum(), -models.kappa * far.sum()])
    return ModelGradient(theta, log_s, delta, rho, gate)
