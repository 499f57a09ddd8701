"""The paper's solver of the LLM-NRM and our reference: Adam on all parameters by torch's automatic differentiation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mtlirt.core.llm_nrm import LLMObjective, LLMParameters, gauged, loss_and_gradient
from mtlirt.core.options import OptionProblem
from mtlirt.solvers.llm_nrm import LLMSolution
from mtlirt.solvers.solution import OnStep, Status

if TYPE_CHECKING:
    import torch

_CHUNK_CELLS = 2_000_000
_NAMES = ("theta", "log_s", "delta", "rho", "w0", "log_kappa", "a", "c")
_NEVER = -1e30  # logit of an option that an item does not have
_STEEP, _HARDEST = 0.05, 6.0


@dataclass(frozen=True)
class AdamOptions:
    """Adam on the objective of the LLM-NRM (LLM-NRM paper, eq. 15 and its learning rate and steps), full batch, all
    items padded to the largest number of options, gradients accumulated over blocks of items.

    Centring and the other gauges are part of the loss. The best iterate is returned.

    Parameters
    ----------
    lr, steps : learning rate and number of steps; there is no stopping rule, as in the paper.
    device : a torch device such as "cpu" or "cuda".
    dtype : "float64", or "float32" for devices that are slow in double precision.

    >>> AdamOptions(steps=100).lr
    0.05
    """

    lr: float = 0.05
    steps: int = 2500
    device: str = "cpu"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if not 0 < self.lr < np.inf:
            raise ValueError(f"AdamOptions: lr must be positive, not {self.lr!r}")
        if not (isinstance(self.steps, int) and self.steps >= 1):
            raise ValueError(f"AdamOptions: steps must be a positive integer, not {self.steps!r}")
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"AdamOptions: dtype must be 'float64' or 'float32', not {self.dtype!r}")

    def solve(
        self, problem: OptionProblem, objective: LLMObjective, start: LLMParameters, on_step: OnStep | None = None
    ) -> LLMSolution:
        """Take `steps` steps from `start`; the trace holds `step` and `objective` of each."""
        import torch

        at = gauged(start, problem.options, objective)
        dtype, device = getattr(torch, self.dtype), torch.device(self.device)
        values = {
            name: torch.tensor(getattr(at, name), dtype=dtype, device=device, requires_grad=True) for name in _NAMES
        }
        blocks = list(_blocks(problem, dtype, device))
        optimiser = torch.optim.Adam(values.values(), lr=self.lr)
        trace: list[dict[str, float]] = []
        best, best_at = np.inf, at
        for step in range(self.steps + 1):
            optimiser.zero_grad()
            loss = _backward(values, blocks, objective)
            if loss < best:
                best, best_at = loss, _parameters(values, at)
            trace.append({"step": step, "objective": loss})
            if on_step is not None:
                on_step(trace[-1])
            if step < self.steps:
                optimiser.step()
        best_at = gauged(best_at, problem.options, objective)
        return LLMSolution(best_at, loss_and_gradient(best_at, problem, objective)[0], Status.MAX_STEPS, trace)


@dataclass(frozen=True)
class _Block:
    """Some items, padded: their positions, options (I, K) bool, keys (I,), target (N, I, K), answered cells (N, I)."""

    items: torch.Tensor
    options: torch.Tensor
    key: torch.Tensor
    target: torch.Tensor
    observed: torch.Tensor


def _blocks(problem: OptionProblem, dtype: torch.dtype, device: torch.device) -> Iterator[_Block]:
    import torch

    N, Kmax = problem.n_models, problem.options.shape[1]
    step = max(1, _CHUNK_CELLS // (N * Kmax))
    for group in problem.groups:
        for start in range(0, len(group.items), step):
            some = slice(start, start + step)
            items = group.items[some]
            target = np.zeros((N, len(items), Kmax), dtype=group.target.dtype)
            target[:, :, : group.target.shape[1]] = group.target[some].transpose(2, 0, 1)
            padded = torch.tensor(target, dtype=dtype, device=device)
            yield _Block(
                torch.tensor(items, device=device),
                torch.tensor(problem.options[items], device=device),
                torch.tensor(group.key[some], device=device),
                padded,
                (padded.sum(dim=2) > 0).to(dtype),
            )


def _parameters(values: dict[str, torch.Tensor], like: LLMParameters) -> LLMParameters:
    arrays = {name: value.detach().cpu().numpy().astype(np.float64) for name, value in values.items()}
    w0, log_kappa = float(arrays.pop("w0")), float(arrays.pop("log_kappa"))
    return replace(like, w0=w0, log_kappa=log_kappa, **arrays)


def _backward(values: dict[str, torch.Tensor], blocks: list[_Block], objective: LLMObjective) -> float:
    """The loss; gradients accumulate block by block."""
    loss = _penalty(values, blocks, objective)
    loss.backward()
    total = float(loss.detach())
    for block in blocks:
        loss = _block_loss(values, block, objective)
        loss.backward()
        total += float(loss.detach())
    return total


def _models(values: dict[str, torch.Tensor], objective: LLMObjective) -> tuple[torch.Tensor, ...]:
    """theta, log s, delta, rho at which the loss is taken."""
    import torch

    theta, log_s = values["theta"], values["log_s"]
    delta, rho = (values[name] - values[name].mean(dim=1, keepdim=True) for name in ("delta", "rho"))
    if objective.unit:
        theta = (theta - theta.mean()) / theta.std(correction=0)
        log_s = log_s - log_s.mean()
    present = (True, objective.sharpness, objective.position, objective.fallback)
    parts = (theta, log_s, delta, rho)
    return tuple(x if on else torch.zeros_like(x) for x, on in zip(parts, present, strict=True))


def _items(values: dict[str, torch.Tensor], block: _Block) -> tuple[torch.Tensor, ...]:
    """a and c (I, K), centred over the items' own options."""
    own = block.options
    out = []
    for name in ("a", "c"):
        x = values[name][block.items] * own
        out.append((x - x.sum(dim=1, keepdim=True) / own.sum(dim=1, keepdim=True)) * own)
    return tuple(out)


def _penalty(values: dict[str, torch.Tensor], blocks: list[_Block], objective: LLMObjective) -> torch.Tensor:
    theta, log_s, delta, rho = _models(values, objective)
    out = 0.0 if objective.unit else objective.prior_theta * theta.square().sum()
    out = out + objective.ridge_s * log_s.square().sum()
    out = out + objective.ridge_position * (delta.square().sum() + rho.square().sum())
    for block in blocks:
        out = out + objective.ridge * sum(x.square().sum() for x in _items(values, block))
    if objective.fallback:
        for name, (mean, sd) in (("w0", objective.w0_prior), ("log_kappa", objective.log_kappa_prior)):
            out = out + ((values[name] - mean) / sd).square()
    return out / 2


def _block_loss(values: dict[str, torch.Tensor], block: _Block, objective: LLMObjective) -> torch.Tensor:
    """Eqs. 6, 7, 13 and the cross-entropy of eq. 15."""
    import torch

    theta, log_s, delta, rho = _models(values, objective)
    a, c = _items(values, block)
    z = log_s.exp()[:, None, None] * (theta[:, None, None] * a + c + delta[:, None, :])
    if objective.fallback:
        b = _difficulty(a, c, block, objective)
        gate = torch.sigmoid(values["w0"] - values["log_kappa"].exp() * (theta[:, None] - b))[:, :, None]
        z = (1 - gate) * z + gate * rho[:, None, :]
    z = torch.where(block.options, z, _NEVER)
    cell = torch.logsumexp(z, dim=2) - (block.target * torch.where(block.options, z, 0.0)).sum(dim=2)
    return (cell * block.observed).sum()


def _difficulty(a: torch.Tensor, c: torch.Tensor, block: _Block, objective: LLMObjective) -> torch.Tensor:
    """Eq. 10, made safe as the objective says."""
    import torch

    wrong = block.options.scatter(1, block.key[:, None], False)
    blocked = torch.where(wrong, c, _NEVER)
    weight = torch.softmax(blocked, dim=1)
    num = torch.logsumexp(blocked, dim=1) - c.gather(1, block.key[:, None])[:, 0]
    den = a.gather(1, block.key[:, None])[:, 0] - (weight * a).sum(dim=1)
    if objective.difficulty == "smooth":
        return _HARDEST * torch.tanh(num * den / (den.square() + objective.eps**2) / _HARDEST)
    away = torch.where(den < 0, -_STEEP, _STEEP)
    return (num / torch.where(den.abs() >= _STEEP, den, away)).clamp(-_HARDEST, _HARDEST)
