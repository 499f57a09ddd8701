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
from mtlirt._parallel import as_done, check_jobs, check_scheduler
from mtlirt._progress import count
from mtlirt._version import __version__
from mtlirt.core.angle import sines
from mtlirt.core.projection import standardise
from mtlirt.data import Responses
from mtlirt.data.responses import as_float
from mtlirt.data.store import WorkStore, write_frame
from mtlirt.errors import InputError
from mtlirt.models.mtl import fit_mtl
from mtlirt.results.base import TraitFit
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
REFERENCE = "adam"
_REFERENCE_REPS = 2
GENERAL = "general"
MEASURES = ("error", "sine_error", "spearman", "kendall")
MEASURED = ("estimator", "domain", *MEASURES, "lam", "status", "seconds")


def run_study(
    designs: Sequence[Design],
    *,
    out: str | Path,
    reps: int = 100,
    estimators: Sequence[str] | Mapping[str, Estimator] = DEFAULT,
    seed: int = 0,
    n_jobs: int = 1,
    scheduler: str | None = None,
) -> pd.DataFrame:
    """Draw answers again and again, estimate the traits, and compare them with the truth (R-MTL, section 5).

    Parameters
    ----------
    designs : what to draw from.
    out : folder for `study.parquet` and the finished replications. The same call goes on from what is there, and a
        larger `reps` adds to it.
    reps : replications of each design.
    estimators : names, of "rmtl" (lam by cross-validation over cells), "separate" (lam = 0), "pooled" (lam =
        infinity), "mean_score" (standardised share right), "rmtl_items" (lam by cross-validation over items) and "adam"
        (rmtl by the paper's solver, cross-validation and all; it takes so much longer that only the first two
        replications of the first design have it); or a mapping from names to functions Responses -> Fit. None of them
        sees the truth. A function that changes under an old name is not noticed in finished work.
    seed : replication r of design i draws from SeedSequence(seed, spawn_key=(i, r)), whatever else runs.
    n_jobs : processes, -1 for one per core. The numbers do not depend on it.
    scheduler : address of a running dask scheduler, "tcp://host:port", whose workers (with this version of mtlirt) run
        the replications in place of processes here. The numbers stay the same, and a worker that dies is replaced by
        the others. Needs the extra `dask`.

    Returns
    -------
    Frame, one row per design, replication, estimator and domain; `domain` is "general" for the general trait. Columns:
    design (its position), the fields of the design, replication, estimator, domain, error (root mean square of
    estimate less truth), sine_error (of the angle between them), spearman, kendall (tau-b), lam, status, seconds (of
    the estimator; those of a shared cross-validation count for rmtl alone). A replication in which an estimator failed
    has one row with the reason as its status.

    Raises
    ------
    InputError for unknown estimators, a folder with other work in it, or a scheduler that does not answer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     design = HeterogeneityDesign(h0=0.2, N=20, sizes=(10,))
    ...     study = run_study([design], out=folder, reps=2, estimators=["pooled", "mean_score"])
    >>> len(study)  # 2 replications, 2 estimators, 3 domains and the general trait
    16
    """
    reps, seed, n_jobs = whole("reps", reps, 1), whole("seed", seed, 0), check_jobs(n_jobs)
    designs = _designs(designs)
    check_scheduler(scheduler)
    chosen = _estimators(estimators)
    key = {
        "work": "run_study",
        "mtlirt": __version__,
        "designs": [repr(design) for design in designs],
        "estimators": list(chosen),
        "seed": seed,
    }
    tasks = [_Replication(i, design, r, seed, chosen) for i, design in enumerate(designs) for r in range(reps)]
    store = WorkStore(Path(out) / "replications", key)
    frames = {task: store.get_frame(task.name) for task in tasks}
    missing = [task for task, frame in frames.items() if frame is None]
    with count("study", len(tasks)) as advance:
        if advance is not None:
            advance(len(tasks) - len(missing))
        for number, frame in as_done(_Replication.run, missing, n_jobs, scheduler):
            store.put_frame(missing[number].name, frame)
            frames[missing[number]] = frame
            if advance is not None:
                advance(1)
    study = pd.concat(frames.values(), ignore_index=True)
    write_frame(Path(out) / "study.parquet", study)
    return study


def _designs(given: Sequence[Design]) -> list[Design]:
    designs = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not designs or not all(isinstance(x, HeterogeneityDesign | LeaderboardDesign) for x in designs):
        raise InputError("designs must be a list of HeterogeneityDesign(...) or LeaderboardDesign(...)")
    return designs


def _estimators(given: Sequence[str] | Mapping[str, Estimator]) -> dict[str, Estimator | None]:
    """Names and functions; None for those that are built in."""
    if isinstance(given, Mapping):
        return dict(given)
    known = (*DEFAULT, "rmtl_items", REFERENCE)
    given = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(f"there is no estimator {unknown[0]!r}; there are {', '.join(known)}")
    if not given:
        raise InputError(f"name at least one estimator of {', '.join(known)}")
    return dict.fromkeys(given)


@dataclass(frozen=True)
class Estimate:
    """theta : (T, N), NaN where there is none.  general : (N,).  lam, status : of the fit."""

    theta: np.ndarray
    general: np.ndarray
    lam: float
    status: str


@dataclass(frozen=True, eq=False)
class _Replication:
    """One data set and all estimators on it."""

    design_number: int
    design: Design
    number: int
    seed: int
    estimators: dict[str, Estimator | None]

    @property
    def name(self) -> str:
        return f"design-{self.design_number}-replication-{self.number}"

    def run(self) -> pd.DataFrame:
        """Rows of the table."""
        data, folds = np.random.SeedSequence(self.seed, spawn_key=(self.design_number, self.number)).spawn(2)
        simulation = simulate(self.design, np.random.default_rng(data))
        shared = _Shared(simulation.responses, simulation.truth, int(folds.generate_state(1)[0]))
        about = {"design": self.design_number, **_fields(self.design), "replication": self.number}
        rows: list[dict[str, Any]] = []
        for estimator, own in self.estimators.items():
            if estimator == REFERENCE and own is None and (self.design_number > 0 or self.number >= _REFERENCE_REPS):
                continue
            began = time.perf_counter()
            try:
                estimate = _of_fit(own(simulation.responses), simulation.truth) if own else getattr(shared, estimator)()
                seconds = time.perf_counter() - began
                errors = _errors(estimate, simulation.truth)
            except Exception as error:  # whatever a replication dies of is a row of the table
                rows.append({**about, "estimator": estimator, "status": f"{type(error).__name__}: {error}"})
                continue
            rows += [{**about, "estimator": estimator, **row, "seconds": seconds} for row in errors]
        return pd.DataFrame(rows).reindex(columns=[*about, *MEASURED])


def _fields(design: Design) -> dict[str, Any]:
    return {name: x if isinstance(x, str | int | float) else str(x) for name, x in asdict(design).items()}


@dataclass
class _Shared:
    """The built-in estimators of one data set; the cross-validation is run once."""

    responses: Responses
    truth: Truth
    seed: int

    @cached_property
    def cv(self) -> CVResult:
        return cv_mtl(self.responses, seed=self.seed)

    def rmtl(self) -> Estimate:
        return _of_fit(self.cv.fit, self.truth)

    def rmtl_items(self) -> Estimate:
        return _of_fit(cv_mtl(self.responses, scheme="items", seed=self.seed).fit, self.truth)

    def separate(self) -> Estimate:
        return self._end(0.0)

    def pooled(self) -> Estimate:
        return self._end(np.inf)

    def adam(self) -> Estimate:
        return _of_fit(cv_mtl(self.responses, seed=self.seed, solver=Adam()).fit, self.truth)

    def mean_score(self) -> Estimate:
        blocks = [as_float(self.responses.block(d)) for d in self.responses.domains]
        count = np.array([(~np.isnan(block)).sum(axis=1) for block in blocks])
        shares = np.array([np.nansum(block, axis=1) for block in blocks]) / np.maximum(count, 1)
        answered = count > 0
        theta = np.where(answered, standardise(shares, answered), np.nan)
        general = shares.sum(axis=0) / answered.sum(axis=0)
        return Estimate(theta, standardise(general[None])[0], np.nan, "")

    def _end(self, lam: float) -> Estimate:
        known = "cv" in self.__dict__
        fit = self.cv.path.at(lam) if known else fit_mtl(self.responses, lam, on_fail="ignore")
        return _of_fit(fit, self.truth)


def _of_fit(fit: TraitFit, truth: Truth) -> Estimate:
    """The fit's traits in the order of the truth's models and domains."""
    models, domains = truth.theta.index, truth.theta.columns
    theta, general = fit.theta.reindex(index=models, columns=domains), fit.general.reindex(models)
    if set(fit.models) != set(models) or set(fit.domains) != set(domains):
        raise InputError("the estimator's fit has other models or domains than the answers")
    return Estimate(theta.to_numpy().T, general.to_numpy(), fit.lam, fit.status.name)


def _errors(estimate: Estimate, truth: Truth) -> list[dict[str, Any]]:
    """One row per domain, and one for the general trait."""
    names = [*truth.theta.columns, GENERAL]
    true = np.vstack([truth.theta.to_numpy().T, truth.general.to_numpy()])
    rows: list[dict[str, Any]] = []
    for name, x, y in zip(names, np.vstack([estimate.theta, estimate.general]), true, strict=True):
        there = np.isfinite(x)
        x, y = x[there], y[there]
        if len(x) < 2 or not np.ptp(x):
            raise InputError(f"the estimate of {name!r} has fewer than two different values")
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
