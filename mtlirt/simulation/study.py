"""`run_study`: many replications of many designs, several estimators on each, one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, spearmanr

from mtlirt._arguments import whole
from mtlirt._parallel import check_jobs, run_tasks
from mtlirt._progress import count
from mtlirt._version import __version__
from mtlirt.core.angle import sines
from mtlirt.core.projection import standardise
from mtlirt.data import Responses
from mtlirt.data.responses import as_float
from mtlirt.data.store import WorkStore, write_frame
from mtlirt.errors import InputError
from mtlirt.models.mtl import fit_mtl
from mtlirt.results.fit import Fit
from mtlirt.selection.cv import cv_mtl
from mtlirt.selection.cv_result import CVResult
from mtlirt.simulation.draw import Truth, simulate
from mtlirt.simulation.heterogeneity import HeterogeneityDesign
from mtlirt.simulation.leaderboard import LeaderboardDesign
from mtlirt.solvers.adam import Adam

Design = HeterogeneityDesign | LeaderboardDesign
Estimator = Callable[[Responses], Fit]
DEFAULT = ("rmtl", "separate", "pooled", "mean_score")
GENERAL = "general"
MEASURED = ("estimator", "domain", "error", "sine_error", "spearman", "kendall", "lam", "status", "seconds")


def run_study(
    designs: Sequence[Design],
    *,
    out: str | Path,
    reps: int = 100,
    estimators: Sequence[str] | Mapping[str, Estimator] = DEFAULT,
    seed: int = 0,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Draw answers again and again, estimate the traits, and compare them with the truth (R-MTL, section 5).

    Parameters
    ----------
    designs : what to draw from.
    out : folder for `study.parquet` and the finished replications. The same call goes on from what is there, and a
        larger `reps` adds to it.
    reps : replications of each design.
    estimators : names, of "rmtl" (lam by cross-validation), "separate" (lam = 0), "pooled" (lam = infinity),
        "mean_score" (standardised share right) and "adam" (the paper's solver at the lam that rmtl chose, from a cold
        start); or a mapping from names to functions Responses -> Fit. None of them sees the truth.
    seed : replication r of design i draws from SeedSequence(seed, spawn_key=(i, r)), whatever else runs.
    n_jobs : processes, -1 for one per core. The numbers do not depend on it.

    Returns
    -------
    Frame, one row per design, replication, estimator and domain; `domain` is "general" for the general trait. Columns:
    design (its position), the fields of the design, replication, estimator, domain, error (root mean square of
    estimate less truth), sine_error (of the angle between them), spearman, kendall (tau-b), lam, status, seconds (of
    the estimator; those of a shared cross-validation count for rmtl alone). A replication in which an estimator failed
    has one row with the reason as its status.

    Raises
    ------
    InputError for unknown estimators, or a folder with other work in it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     design = HeterogeneityDesign(h0=0.2, N=20, sizes=(10,))
    ...     study = run_study([design], out=folder, reps=2, estimators=["pooled", "mean_score"])
    >>> len(study)  # 2 replications, 2 estimators, 3 domains and the general trait
    16
    """
    reps, seed, n_jobs = whole("reps", reps, 1), whole("seed", seed, 0), check_jobs(n_jobs)
    chosen = _estimators(estimators)
    key = {
        "work": "run_study",
        "mtlirt": __version__,
        "designs": [repr(design) for design in designs],
        "estimators": list(chosen),
        "seed": seed,
    }
    store = WorkStore(Path(out) / "replications", key)
    tasks = [_Replication(i, design, r, seed, chosen, store) for i, design in enumerate(designs) for r in range(reps)]
    with count("study", len(tasks)) as advance:
        frames = run_tasks(_Replication.run, tasks, n_jobs, advance)
    study = pd.concat(frames, ignore_index=True)
    write_frame(Path(out) / "study.parquet", study)
    return study


def _estimators(given: Sequence[str] | Mapping[str, Estimator]) -> dict[str, Estimator | None]:
    """Names and functions; None for those that are built in."""
    if isinstance(given, Mapping):
        return dict(given)
    unknown = [name for name in given if name not in (*DEFAULT, "adam")]
    if isinstance(given, str) or unknown:
        raise InputError(
            f"there is no estimator {given if isinstance(given, str) else unknown[0]!r}; there are {DEFAULT}"
        )
    return dict.fromkeys(given)


@dataclass(frozen=True)
class Estimate:
    """theta : (T, N), NaN where there is none.  general : (N,).  lam, status : of the fit."""

    theta: np.ndarray
    general: np.ndarray
    lam: float
    status: str


@dataclass(frozen=True)
class _Replication:
    """One data set and all estimators on it."""

    number: int
    design: Design
    replication: int
    seed: int
    estimators: dict[str, Estimator | None]
    store: WorkStore

    def run(self, tick: Callable[[], None]) -> pd.DataFrame:
        name = f"design-{self.number}-replication-{self.replication}"
        frame = self.store.get_frame(name)
        if frame is None:
            frame = self._estimate()
            self.store.put_frame(name, frame)
        tick()
        return frame

    def _estimate(self) -> pd.DataFrame:
        data, folds = np.random.SeedSequence(self.seed, spawn_key=(self.number, self.replication)).spawn(2)
        simulation = simulate(self.design, np.random.default_rng(data))
        shared = _Shared(simulation.responses, int(folds.generate_state(1)[0]))
        about = {"design": self.number, **_fields(self.design), "replication": self.replication}
        rows: list[dict[str, Any]] = []
        for estimator, own in self.estimators.items():
            began = time.perf_counter()
            try:
                estimate = _of_fit(own(simulation.responses)) if own else getattr(shared, estimator)()
            except Exception as error:  # whatever a replication dies of is a row of the table
                rows.append({**about, "estimator": estimator, "status": f"{type(error).__name__}: {error}"})
                continue
            seconds = time.perf_counter() - began
            rows += [
                {**about, "estimator": estimator, **row, "seconds": seconds}
                for row in _errors(estimate, simulation.truth)
            ]
        return pd.DataFrame(rows).reindex(columns=[*about, *MEASURED])


def _fields(design: Design) -> dict[str, Any]:
    return {name: x if isinstance(x, str | int | float) else str(x) for name, x in asdict(design).items()}


@dataclass
class _Shared:
    """The built-in estimators of one data set; the cross-validation is run once."""

    responses: Responses
    seed: int

    @cached_property
    def cv(self) -> CVResult:
        return cv_mtl(self.responses, seed=self.seed)

    def rmtl(self) -> Estimate:
        return _of_fit(self.cv.fit)

    def separate(self) -> Estimate:
        return self._end(0.0)

    def pooled(self) -> Estimate:
        return self._end(np.inf)

    def adam(self) -> Estimate:
        return _of_fit(fit_mtl(self.responses, self.cv.lam_min, solver=Adam(), on_fail="ignore"))

    def mean_score(self) -> Estimate:
        shares = np.array([np.nanmean(as_float(self.responses.block(d)), axis=1) for d in self.responses.domains])
        return Estimate(standardise(shares), standardise(shares.mean(axis=0)[None])[0], np.nan, "")

    def _end(self, lam: float) -> Estimate:
        known = "cv" in self.__dict__
        return _of_fit(self.cv.path.at(lam) if known else fit_mtl(self.responses, lam, on_fail="ignore"))


def _of_fit(fit: Fit) -> Estimate:
    return Estimate(fit.theta.to_numpy().T, fit.general.to_numpy(), fit.lam, fit.status.name)


def _errors(estimate: Estimate, truth: Truth) -> list[dict[str, Any]]:
    """One row per domain, and one for the general trait."""
    names = [*truth.theta.columns, GENERAL]
    true = np.vstack([truth.theta.to_numpy().T, truth.general.to_numpy()])
    rows: list[dict[str, Any]] = []
    for name, x, y in zip(names, np.vstack([estimate.theta, estimate.general]), true, strict=True):
        there = ~np.isnan(x)
        x, y = x[there], y[there]
        rows.append(
            {
                "domain": name,
                "error": float(np.sqrt(np.square(x - y).mean())),
                "sine_error": float(sines(y, x[None])[0]),
                "spearman": float(spearmanr(x, y).statistic),
                "kendall": float(kendalltau(x, y).statistic),
                "lam": estimate.lam,
                "status": estimate.status,
            }
        )
    return rows
