"""`cv_mtl`: the penalty weight by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np

from mtlirt._arguments import one_of
from mtlirt._parallel import check_jobs, run_tasks
from mtlirt._progress import count
from mtlirt._version import __version__
from mtlirt.core.problem import Problem
from mtlirt.core.start import Start
from mtlirt.data import Responses
from mtlirt.data.options import Channel
from mtlirt.data.splits import Scheme, Split, check_folds, make_split
from mtlirt.data.store import WorkStore
from mtlirt.errors import ConvergenceWarning, FitError
from mtlirt.models.assemble import thresholds
from mtlirt.models.mtl import pooled_solution
from mtlirt.models.nrm import RIDGE, Model, settings_of
from mtlirt.models.settings import BLOCK, AnyFit, MissingWeight, PenaltyWeights, Settings, Solver
from mtlirt.selection.cv_result import CVResult, FoldLosses, no_losses, result_of
from mtlirt.selection.folds import make_fold
from mtlirt.selection.lams import paper_grid, threshold_grid, values_of, with_ends
from mtlirt.selection.path import PathTask, check_several, path_of, solve_next

_POINTS, _RATIO = 15, 0.03
_POINT = ("theta", "general", "a", "d")


def cv_mtl(
    responses: Responses,
    *,
    lams: Sequence[float] | None = None,
    grid: Literal["threshold", "paper"] = "threshold",
    folds: int = 5,
    seed: int = 0,
    scheme: Scheme = "cells",
    lam_in_folds: Literal["scaled", "same"] = "scaled",
    n_jobs: int = 1,
    resume: str | FilePath | None = None,
    solver: Solver = BLOCK,
    C: float = 4.0,
    missing_weight: MissingWeight = "observed",
    penalty_weights: PenaltyWeights = None,
    model: Model = "2pl",
    channel: Channel = "auto",
    ridge: float = RIDGE,
) -> CVResult:
    """Choose the penalty weight of the multi-domain 2PL by cross-validation.

    For each fold the path from complete pooling to separate domains is fitted to the other answers, and each fit
    predicts the answers held out. The loss of a fold is the negative log-likelihood per held-out answer, averaged
    within domains and then over domains, so that long domains do not outvote short ones (R-MTL, section 5 and the
    authors' programs). The path is also fitted to all answers: `fit` is its fit at the chosen lam.

    The question it answers is how well a missing answer of a known model to a known item is filled in. It says nothing
    about new models.

    Parameters
    ----------
    responses : as for `fit_mtl`, with 2 domains or more.
    lams : values to compare. Infinity (complete pooling) and 0 (separate domains) are always among them.
    grid : values where `lams` is not given. "threshold": 15 values from the largest fusion threshold of the pooled fit
        down to .03 times it, in equal steps of log lam. "paper": C_lambda = .1, .2, ..., 2, in units of
        max_t N / sqrt(min(N, J_t)).
    folds : number of folds, 2 to 100; 5 is usual.
    seed : of the folds.
    scheme : "cells" holds out answers, stratified within each model and domain. "items" holds out items; a fit is
        judged by their likelihood at its traits, with their slopes and intercepts fitted to it.
    lam_in_folds : with missing_weight="paper" the loss shrinks with the answers left, and lam is "scaled" by the
        share of them; "same" leaves it, as the authors' MMLU program does. With "observed" lam needs no scaling.
    n_jobs : processes, -1 for one per core. The numbers do not depend on it.
    resume : folder that keeps finished work. The same call goes on from there if it was interrupted.
    solver, C, missing_weight, penalty_weights : as for `fit_mtl`. In the folds `Block` stops at 100 times its `tol`.
    model, channel, ridge : "nrm" cross-validates `fit_mtl_nrm`, with its channel and ridge, over cells; the loss of a
        held-out answer is then that of its option.

    Returns
    -------
    CVResult: `lam_min`, `lam_1se`, `fit`, `table`, `per_domain`, `folds`, `path`.

    A lam at which the fit of some fold did not converge takes no part in the choice, with a ConvergenceWarning.
    Held-out answers that no lam can predict, because the model has no other answer in the domain or the item no other
    answer, are left out at every lam and counted in `notes`.

    Raises
    ------
    InputError for a single domain, arguments that cannot be used, or a `resume` folder with other work in it; FitError
    if no lam converged in all folds.

    >>> import mtlirt
    >>> cv = mtlirt.cv_mtl(mtlirt.datasets.demo(), lams=[11.0], folds=3)
    >>> cv.lam_min
    11.0
    >>> cv.fit.fused.sum(), cv.fit.heterogeneity()["domain"][0]
    (np.int64(4), 'chess')
    """
    one_of("grid", grid, ("threshold", "paper"))
    one_of("scheme", scheme, ("cells", "items"))
    one_of("lam_in_folds", lam_in_folds, ("scaled", "same"))
    folds, seed = check_folds(folds, seed)
    n_jobs = check_jobs(n_jobs)
    own = None if lams is None else values_of(lams)
    settings = settings_of(model, solver, C, missing_weight, penalty_weights, channel, ridge)
    responses = settings.prepare(responses)
    problem = settings.problem(responses)
    check_several(responses)
    split = make_split(responses, scheme, folds, seed)
    for number in range(folds):
        make_fold(problem, split, number, settings)  # folds that cannot be used are told before the first is fitted
    record: dict[str, Any] = {
        **settings.record(),
        "grid": grid if own is None else [str(lam) for lam in own],
        "folds": folds,
        "seed": seed,
        "scheme": scheme,
        "lam_in_folds": lam_in_folds,
    }
    store = None if resume is None else WorkStore(resume, _key(responses, record))
    pooled = pooled_solution(problem)
    lam_max = thresholds(problem, pooled)
    values = _values(problem, own, grid, float(lam_max.max()), store)
    scaled = missing_weight == "paper" and scheme == "cells" and lam_in_folds == "scaled"
    tasks: list[PathTask | FoldTask] = [
        FoldTask(problem, split, k, settings, values, scaled, store) for k in range(folds)
    ]
    tasks.append(PathTask(responses, settings, lam_max, values, pooled.start, store))
    with count("cross-validation", len(tasks) * len(values)) as advance:
        *losses, fits = run_tasks(_run, tasks, n_jobs, advance)
    result = result_of(path_of(fits), losses, record)
    _report(result)
    return result


def _run(task: PathTask | FoldTask, tick: Callable[[], None]) -> list[tuple[AnyFit, float]] | FoldLosses:
    return task.run(tick)


def _key(responses: Responses, record: dict[str, Any]) -> dict[str, Any]:
    return {"work": "cv_mtl", "mtlirt": __version__, "answers": responses.fingerprint, **record}


def _values(
    problem: Problem, own: list[float] | None, grid: str, lam_max: float, store: WorkStore | None
) -> np.ndarray:
    """The values of lam in descending order; those of interrupted work if there are any."""
    kept = None if store is None else store.get("lams", ("lams",))
    if kept is not None:
        return kept["lams"]
    if own is None:
        values = with_ends(paper_grid(problem) if grid == "paper" else threshold_grid(lam_max, _POINTS, _RATIO))
    else:
        values = with_ends(own)
    if store is not None:
        store.put("lams", {"lams": values})
    return values


@dataclass(frozen=True)
class FoldTask:
    """Fits of one fold's training answers along `lams`, and their held-out losses.

    number : of the fold, from 0.  scaled : True if lam shrinks with the answers.  store : keeps finished lams, or None.
    """

    problem: Problem
    split: Split
    number: int
    settings: Settings
    lams: np.ndarray
    scaled: bool
    store: WorkStore | None

    def run(self, tick: Callable[[], None]) -> FoldLosses:
        """Go down the path, from where interrupted work stopped."""
        fold = make_fold(self.problem, self.split, self.number, self.settings)
        scale = _share(fold.train, self.problem) if self.scaled else 1.0
        name = f"fold-{self.number + 1}"
        kept = None if self.store is None else self.store.get(name, (*FoldLosses.__dataclass_fields__, *_POINT))
        before = None if kept is None else Start(*(kept.pop(k) for k in _POINT))
        done = FoldLosses(**kept) if kept is not None else no_losses(fold)
        for _ in range(len(done.status)):
            tick()
        for lam in self.lams[len(done.status) :]:
            began = time.perf_counter()
            solution = solve_next(fold.train, float(lam) * scale, self.settings.fold_solver, before)
            before = solution.start
            done = done.add(fold.nll(solution), solution, time.perf_counter() - began)
            if self.store is not None:
                self.store.put(name, {**vars(done), **{k: getattr(before, k) for k in _POINT}})
            tick()
        return done


def _share(train: Problem, everything: Problem) -> float:
    """Training answers as a share of all, every domain's weighted by 1 / J_t."""
    parts = [(p.answers_per_model.sum(axis=1) / everything.sizes).sum() for p in (train, everything)]
    return float(parts[0] / parts[1])


def _report(result: CVResult) -> None:
    if not result.converged.all(axis=0).any():
        counts = ", ".join(f"{n} {name}" for name, n in result.folds["status"].value_counts().items())
        raise FitError(
            f"cross-validation: at no lam did the fits of all folds converge ({counts}); raise the solver's limit, "
            "loosen `tol`, or use fewer folds"
        )
    failed = result.table[result.table["n_converged"] < result.settings["folds"]]
    if len(failed):
        shown = ", ".join(f"{lam:.4g}" for lam in failed["lam"])
        warnings.warn(
            f"cross-validation: in some folds the fit did not converge at lam = {shown}; these take no part in the "
            "choice (see .folds)",
            ConvergenceWarning,
            stacklevel=3,
        )
