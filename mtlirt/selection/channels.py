"""`compare_channels`: do option models predict better, right or wrong and option by option? (LLM-NRM paper, table 1)"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt._arguments import one_of
from mtlirt._parallel import check_jobs, run_tasks
from mtlirt._progress import count
from mtlirt.core.llm_nrm import LLMObjective, probabilities
from mtlirt.core.option_likelihood import option_probabilities
from mtlirt.core.options import OptionProblem
from mtlirt.core.start import cold_start
from mtlirt.data import Responses
from mtlirt.data.options import Channel
from mtlirt.data.splits import check_folds, make_split
from mtlirt.errors import InputError
from mtlirt.models.nrm import RIDGE, NominalSettings
from mtlirt.selection.folds import held_cells
from mtlirt.solvers.block import Block
from mtlirt.solvers.llm_nrm import solve_from_starts

_SMOOTHING = 1.0  # added to the training counts of an item's wrong options, spread over them
_TINY = np.finfo(np.float64).tiny


def compare_channels(
    responses: Responses,
    *,
    models: Sequence[str] = ("2pl", "nrm"),
    channel: Channel = "auto",
    ridge: float = RIDGE,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Hold out cells, fit each model to the others, and judge its predictions in two channels.

    Binary channel: the probability of the key, against right or wrong. Option channel: the probabilities of all
    options, against the chosen one (the most probable one where answers are probabilities). The 2PL becomes an option
    model by spreading 1 - P(right) over an item's wrong options as the training answers did:
    q_k proportional to 1 / (K - 1) + number of training answers with option k. All models have one trait for all items.

    Parameters
    ----------
    responses : as for `fit_nrm`.
    models : of "2pl", "nrm" and "llm-nrm", the last with the components that `fit_llm_nrm` gives it in the channel.
    channel, ridge : what option models are trained on and their ridge, as for `fit_nrm`.
    folds, seed, n_jobs : as for `cv_mtl`; folds hold out cells, stratified within each model and domain.

    Returns
    -------
    Frame, one row per model: model, and for each of binary_accuracy, binary_log_loss, brier, option_accuracy and
    option_log_loss its mean over folds and, in a column with the suffix _sd, its standard deviation over folds.

    Raises
    ------
    InputError for answers that an option model cannot use.

    >>> rng = np.random.default_rng(1)
    >>> rows = [(f"m{i}", "math", f"q{j}", "ABC"[rng.integers(3)], "A") for i in range(20) for j in range(15)]
    >>> table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key"])
    >>> answers = Responses.from_long(table, score=None, option="option", key="key")
    >>> list(compare_channels(answers, folds=3)["model"])
    ['2pl', 'nrm']
    """
    models = [models] if isinstance(models, str) else list(models)
    for name in models:
        one_of("models", name, tuple(_FITTERS))
    if not models:
        raise InputError(f"models must name at least one of {', '.join(_FITTERS)}")
    folds, seed = check_folds(folds, seed)
    n_jobs = check_jobs(n_jobs)
    settings = NominalSettings(channel=channel, ridge=ridge, one_trait=True)
    prepared = settings.prepare(responses)
    problem = settings.problem(prepared)
    split = make_split(prepared, "cells", folds, seed)
    tasks = [_Task(problem, held_cells(problem, split, k), name) for k in range(folds) for name in models]
    with count("channels", len(tasks)) as advance:
        judged = run_tasks(_Task.run, tasks, n_jobs, advance)
    table = pd.DataFrame(judged)
    mean, sd = (getattr(table.groupby("model", sort=False), how)() for how in ("mean", "std"))
    measures = list(mean.columns)
    out = pd.concat([mean, sd.add_suffix("_sd")], axis=1)
    return out[[c for m in measures for c in (m, f"{m}_sd")]].reset_index()


@dataclass(frozen=True)
class _Task:
    """One model on one fold."""

    problem: OptionProblem
    held: tuple[np.ndarray, ...]
    model: str

    def run(self, tick: Callable[[], None]) -> dict[str, float | str]:
        """Fit and judge."""
        train = self.problem.without(self.held)
        predicted = _FITTERS[self.model](train)
        tick()
        return {"model": self.model, **_judge(self.problem, np.concatenate(self.held, axis=1), predicted)}


def _fit_2pl(train: OptionProblem) -> list[np.ndarray]:
    """(I, K, N) predicted probabilities by group."""
    solution = Block().solve(train.scores, math.inf, cold_start(train.scores, borrow=True))
    out = []
    for group in train.groups:
        items, key, K = group.items, group.key, group.target.shape[1]
        rows = np.arange(len(items))
        right = 1 / (1 + np.exp(-(np.multiply.outer(solution.a[items], solution.general) + solution.d[items, None])))
        counts = _chosen_counts(group.target) + _SMOOTHING / (K - 1)
        counts[rows, key] = 0.0
        p = (counts / counts.sum(axis=1, keepdims=True))[:, :, None] * (1 - right)[:, None, :]
        p[rows, key] = right
        out.append(p)
    return out


def _chosen_counts(target: np.ndarray) -> np.ndarray:
    """(I, K) number of answers whose option, or most probable option, is k."""
    chosen, answered = target.argmax(axis=1), target.any(axis=1)
    return np.stack([((chosen == k) & answered).sum(axis=1) for k in range(target.shape[1])], axis=1).astype(float)


def _fit_nrm(train: OptionProblem) -> list[np.ndarray]:
    solution = Block().solve(train, math.inf, cold_start(train, borrow=True))
    out = []
    for group in train.groups:
        items, K = group.items, group.target.shape[1]
        trait = np.broadcast_to(solution.general, (len(items), train.n_models))
        out.append(option_probabilities(trait, solution.a[items, :K], solution.d[items, :K]))
    return out


def _fit_llm_nrm(train: OptionProblem) -> list[np.ndarray]:
    soft = train.channel == "soft"
    goal = LLMObjective(ridge=train.ridge, sharpness=soft, fallback=soft)
    at = solve_from_starts(train, goal)[0].parameters
    return [
        probabilities(at, train, goal, group.items)[:, :, : group.target.shape[1]].transpose(1, 2, 0)
        for group in train.groups
    ]


_FITTERS = {"2pl": _fit_2pl, "nrm": _fit_nrm, "llm-nrm": _fit_llm_nrm}


def _judge(problem: OptionProblem, held: np.ndarray, predicted: list[np.ndarray]) -> dict[str, float]:
    """Means over the held-out cells (N, J)."""
    sums, cells = np.zeros(5), 0
    for group, p in zip(problem.groups, predicted, strict=True):
        rows = np.arange(len(group.items))
        use = held[:, group.items].T
        chosen = group.target.argmax(axis=1)
        right = (chosen == group.key[:, None])[use]
        p_key = p[rows, group.key][use]
        p_chosen = np.take_along_axis(p, chosen[:, None, :], axis=1)[:, 0][use]
        sums += [
            ((p_key >= 0.5) == right).sum(),
            -np.log(np.maximum(np.where(right, p_key, 1 - p_key), _TINY)).sum(),
            np.square(p_key - right).sum(),
            (p.argmax(axis=1) == chosen)[use].sum(),
            -np.log(np.maximum(p_chosen, _TINY)).sum(),
        ]
        cells += int(use.sum())
    names = ("binary_accuracy", "binary_log_loss", "brier", "option_accuracy", "option_log_loss")
    return dict(zip(names, sums / cells, strict=True))
