"""`lambda_path`: fits from complete pooling to separate domains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from mtlirt._arguments import one_of, penalty_weight
from mtlirt._parallel import one_blas_thread
from mtlirt._progress import count
from mtlirt.core.problem import Problem
from mtlirt.core.start import Start, cold_start, warm_start
from mtlirt.data import Responses
from mtlirt.data.options import Channel
from mtlirt.data.store import WorkStore
from mtlirt.errors import InputError
from mtlirt.models.assemble import thresholds
from mtlirt.models.mtl import fit_start, pooled_solution
from mtlirt.models.nrm import RIDGE, Model, settings_of
from mtlirt.models.settings import BLOCK, AnyFit, MissingWeight, PenaltyWeights, Settings, Solver
from mtlirt.results.store import load
from mtlirt.selection.lams import paper_scale, threshold_grid, values_of, with_ends
from mtlirt.solvers.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIE = 1e-9  # share of the objective within which two starts count as equal: ten times the solver's tolerance


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Fits of the same answers at many lam, from infinity down to 0.

    fits : tuple of `Fit`, in the order of the table.
    seconds : what each took.
    starts : "pooled" or "separate" for each, the end from which it was reached.

    >>> from mtlirt import HeterogeneityDesign, lambda_path, simulate
    >>> answers = simulate(HeterogeneityDesign(h0=0.2, N=30, sizes=(10,), per_size=2), seed=1).responses
    >>> lambda_path(answers, lams=[1.0]).sines.shape
    (3, 2)
    """

    fits: tuple[AnyFit, ...]
    seconds: tuple[float, ...]
    starts: tuple[str, ...]

    @property
    def lams(self) -> np.ndarray:
        """(L,) values of lam, in the order of the fits."""
        return np.array([fit.lam for fit in self.fits])

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per lam.

        Columns lam, lam_ratio (lam / largest lam_max), C_lambda (lam in the paper's scaling), loss, penalty,
        objective, n_fused (domains equal to the general trait), max_abs_theta, status, sweeps, seconds, start.
        """
        sizes = self.fits[0].items.groupby("domain", sort=False).size()
        scale = paper_scale(len(self.fits[0].models), sizes.to_numpy())
        rows = [
            {
                "lam": fit.lam,
                "lam_ratio": fit.lam_ratio,
                "C_lambda": fit.lam / scale,
                "loss": fit.loss,
                "penalty": fit.penalty,
                "objective": fit.objective,
                "n_fused": int(fit.fused.sum()),
                "max_abs_theta": float(np.nanmax(np.abs(fit.theta.to_numpy()))),
                "status": fit.status.name,
                "sweeps": len(fit.trace),
                "seconds": seconds,
                "start": start,
            }
            for fit, seconds, start in zip(self.fits, self.seconds, self.starts, strict=True)
        ]
        return pd.DataFrame(rows)

    @cached_property
    def sines(self) -> pd.DataFrame:
        """Sine of the angle between each domain's trait and the general trait: frame lam x domains."""
        rows = [fit.heterogeneity().set_index("domain")["sine"].reindex(list(fit.domains)) for fit in self.fits]
        return pd.DataFrame(
            np.array(rows), index=pd.Index(self.lams, name="lam"), columns=pd.Index(self.fits[0].domains, name="domain")
        )

    @property
    def leaves(self) -> pd.Series:
        """By domain, the largest lam at which its trait is not the general trait; those that leave first come first."""
        apart = self.sines > 0
        return apart.idxmax().where(apart.any()).rename("lam").sort_values(ascending=False, kind="stable")

    def at(self, lam: float) -> AnyFit:
        """The fit at a lam of the path; InputError for any other."""
        lam = penalty_weight(lam)
        for fit in self.fits:
            if math.isclose(fit.lam, lam, rel_tol=1e-12) or fit.lam == lam:
                return fit
        near = min(self.fits, key=lambda fit: abs(fit.lam - lam))
        raise InputError(f"lam = {lam!r} is not on the path; the nearest is {near.lam!r}")

    def plot(self, type: str = "path", ax: Axes | None = None, **how: Any) -> Axes:
        """The picture "path": which domain leaves the general trait at which lam (lam: a value to mark).

        Fits draw themselves: `path.at(lam).plot()`. InputError for any other word or option.
        """
        from mtlirt.plots.words import draw

        return draw(self, type, ax, how)

    def __repr__(self) -> str:
        return self.table.to_string(index=False, float_format="{:.6g}".format)


def lambda_path(
    responses: Responses,
    n: int = 15,
    ratio: float = 0.03,
    *,
    lams: Sequence[float] | None = None,
    start: Literal["pooled", "both"] = "pooled",
    solver: Solver = BLOCK,
    C: float = 4.0,
    missing_weight: MissingWeight = "observed",
    penalty_weights: PenaltyWeights = None,
    model: Model = "2pl",
    channel: Channel = "auto",
    ridge: float = RIDGE,
) -> Path:
    """Fit the multi-domain 2PL at many lam, each fit started from the one before.

    The path runs from complete pooling (lam = infinity) through lam_max * (1 ... ratio), in `n` equal steps of log lam,
    to separate domains (lam = 0). lam_max is the largest fusion threshold of the pooled fit, from which upward nothing
    changes: R-MTL penalises by the length of each trait's part across the general trait, as the group lasso does, so
    domains leave the general trait one after another as lam falls, exactly.

    Parameters
    ----------
    responses : as for `fit_mtl`, with 2 domains or more.
    n, ratio : number of finite values above 0, and the smallest of them as a share of lam_max.
    lams : your own values instead; infinity and 0 are always added.
    start : "both" also runs upward from the separate fits and keeps the lower objective at each lam: the problem is not
        convex, and a difference is a trap found.
    solver, C, missing_weight, penalty_weights : as for `fit_mtl`.
    model, channel, ridge : "nrm" for the path of `fit_mtl_nrm`, with its channel and ridge.

    Returns
    -------
    Path: `table`, `sines`, `leaves`, `fits`. A fit that did not converge says so in the table's status.

    Raises
    ------
    InputError for a single domain, or arguments that cannot be used.

    >>> import mtlirt
    >>> path = mtlirt.lambda_path(mtlirt.datasets.demo(), n=5, ratio=0.5)
    >>> path.leaves.index[0]
    'chess'
    """
    one_of("start", start, ("pooled", "both"))
    own = None if lams is None else values_of(lams)
    settings = settings_of(model, solver, C, missing_weight, penalty_weights, channel, ridge)
    responses = settings.prepare(responses)
    problem = settings.problem(responses)
    check_several(responses)
    pooled = pooled_solution(problem)
    lam_max = thresholds(problem, pooled)
    values = with_ends(threshold_grid(float(lam_max.max()), n, ratio) if own is None else own)
    with count("lambda path", len(values) * (2 if start == "both" else 1)) as advance, one_blas_thread():
        tick = (lambda: None) if advance is None else (lambda: advance(1))
        down = PathTask(responses, settings, lam_max, values, pooled.start).run(tick)
        if start == "pooled":
            return path_of(down)
        up = PathTask(responses, settings, lam_max, values[::-1], None).run(tick)[::-1]
    lower = [u[0].objective < d[0].objective * (1 - _TIE) for d, u in zip(down, up, strict=True)]
    best = [u if low else d for d, u, low in zip(down, up, lower, strict=True)]
    starts = tuple("separate" if low else "pooled" for low in lower)
    return Path(tuple(f for f, _ in best), tuple(s for _, s in best), starts)


def path_of(fits: list[tuple[AnyFit, float]]) -> Path:
    """A path run down from the pooled end."""
    return Path(tuple(f for f, _ in fits), tuple(s for _, s in fits), ("pooled",) * len(fits))


def check_several(responses: Responses) -> None:
    """Raise InputError if there is just one domain."""
    if len(responses.domains) == 1:
        raise InputError("there is one domain, so nothing to pool: every lam gives the same fit; fit it at lam = 0")


def solve_next(problem: Problem, lam: float, solver: Solver, before: Start | None) -> Solution:
    """The solution at lam from the start `before`, or from the answers alone."""
    start = cold_start(problem, borrow=lam > 0) if before is None else warm_start(problem, before, lam)
    return solver.solve(problem, lam, start)


@dataclass(frozen=True)
class PathTask:
    """Fits of all answers along `lams`, the first of them started from `before` or from the answers alone.

    lam_max : (T,) fusion thresholds.  store : where finished fits are kept, or None.
    """

    responses: Responses
    settings: Settings
    lam_max: np.ndarray
    lams: np.ndarray
    before: Start | None
    store: WorkStore | None = None

    def run(self, tick: Callable[[], None]) -> list[tuple[AnyFit, float]]:
        """A fit and its seconds for each lam in turn, each started from the one before."""
        problem, before = self.settings.problem(self.responses), self.before
        out = []
        for number, lam in enumerate(map(float, self.lams)):
            kept = self._kept(number)
            if kept is None:
                began = time.perf_counter()
                solution = solve_next(problem, lam, self.settings.solver, before)
                kept = (
                    self.settings.assemble(self.responses, problem, lam, self.lam_max, solution),
                    time.perf_counter() - began,
                )
                self._keep(number, *kept)
            before = fit_start(kept[0])
            out.append(kept)
            tick()
        return out

    def _kept(self, number: int) -> tuple[AnyFit, float] | None:
        if self.store is None or not (self.store.folder / _name(number)).exists():
            return None
        folder = self.store.folder / _name(number)
        try:
            fit = load(folder)
        except InputError as error:
            raise InputError(f"{error}; delete it to do its work again") from error
        if (
            type(fit) is not self.settings.kind
            or fit.lam != self.lams[number]
            or fit.data.fingerprint != self.responses.fingerprint
        ):
            raise InputError(f"{folder}: is not the fit at lam = {self.lams[number]:g}; delete it to do its work again")
        seconds = self.store.get(f"{_name(number)}-seconds", ("seconds",))
        return fit, np.nan if seconds is None else float(seconds["seconds"])

    def _keep(self, number: int, fit: AnyFit, seconds: float) -> None:
        if self.store is None:
            return
        self.store.put(f"{_name(number)}-seconds", {"seconds": np.array(seconds)})
        folder = self.store.folder / _name(number)
        try:
            fit.save(folder)
        except InputError:
            if not folder.exists():  # where it does, another process has kept the same fit in the meantime
                raise


def _name(number: int) -> str:
    return f"path-{number:02d}"
