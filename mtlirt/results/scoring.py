"""Scoring new models against the fitted items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.core.angle import fill_lines, sines
from mtlirt.core.field import tabulate
from mtlirt.core.options import OptionGroup, OptionProblem
from mtlirt.core.problem import Problem, make_problem
from mtlirt.data.options import option_answers
from mtlirt.errors import InputError
from mtlirt.results import tables
from mtlirt.results.base import as_array
from mtlirt.results.fit import Fit
from mtlirt.results.llm import llm_ability
from mtlirt.solvers.ability import abilities

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.results.base import TraitFit
    from mtlirt.results.nominal import NominalFit


def score(fit: Fit | NominalFit, responses: Responses) -> pd.DataFrame:
    """See `Fit.score`."""
    if not isinstance(fit, Fit) and fit.model_parameters is not None:
        return _score_llm(fit, responses)
    problem, a, d = _binary(fit, responses) if isinstance(fit, Fit) else nominal_problem(fit, responses)
    answers = problem.answers_per_model
    silent = responses.models[answers.sum(axis=0) == 0]
    if len(silent):
        raise InputError(f"score: no answer to a fitted item from {len(silent)} of the models, such as {silent[0]!r}")
    field = tabulate(problem, problem.grid, a, d)
    theta, general = abilities(field, fit.coupling, responses.n_models, problem.C)
    if len(fit.domains) == 2 and 0 < fit.lam < np.inf and not fit.fused.all():
        general = theta.sum(axis=0) / np.linalg.norm(as_array(fit.theta).sum(axis=1)) * np.sqrt(len(fit.theta))
    if fit.lam == 0 and len(fit.domains) > 1:
        theta = np.where(answers > 0, theta, np.nan)
        general = _general_of(fit, theta)
    domains = pd.DataFrame(theta.T, columns=[tables.column_of(d) for d in fit.domains])
    head = pd.DataFrame({"model": responses.models, "general": general})
    table = pd.concat([head, domains], axis=1)
    table["n_answers"] = answers.sum(axis=0).astype(np.int64)
    if (answers == 0).any():
        frame = pd.DataFrame(answers.T, index=responses.models, columns=list(fit.domains))
        table["borrowed"] = tables.borrowed(frame).to_numpy()
    return table


def _score_llm(fit: NominalFit, responses: Responses) -> pd.DataFrame:
    """One trait for all domains, each new model's sharpness, positions and fallback estimated with it."""
    problem, _, _ = nominal_problem(fit, responses)
    theta, _ = llm_ability(fit, problem, "all")
    columns = {tables.column_of(domain): theta for domain in fit.domains}
    table = pd.DataFrame({"model": responses.models, "general": theta, **columns})
    return table.assign(n_answers=problem.answers_per_model.sum(axis=0).astype(np.int64))


def _binary(fit: Fit, responses: Responses) -> tuple[Problem, np.ndarray, np.ndarray]:
    """The new answers laid out on all fitted items, missing where not asked; slopes and intercepts."""
    positions = tables.item_positions(fit, responses)
    scores = np.full((responses.n_models, len(fit.items)), np.nan)
    scores[:, positions] = responses.scores
    return _laid_out(fit, scores), as_array(fit.items["a"]), as_array(fit.items["d"])


def nominal_problem(fit: NominalFit, responses: Responses) -> tuple[OptionProblem, np.ndarray, np.ndarray]:
    """The same for options, with slopes and intercepts (J, K)."""
    answers = option_answers(_with_fitted_options(fit, responses), fit.settings["channel"])
    silent = responses.models.difference(answers.responses.models)
    if len(silent):
        raise InputError(f"score: no option from {len(silent)} of the models, such as {silent[0]!r}")
    items = answers.responses.items
    positions = tables.item_positions(fit, answers.responses)
    fitted = fit.items.iloc[positions]
    keys = items["key"].astype(str).to_numpy() != fitted["key"].astype(str).to_numpy()
    differing = items["n_options"].to_numpy(dtype=np.int64) != fitted["n_options"].to_numpy()
    for column, wrong in (("key", keys), ("n_options", differing)):
        differ = np.flatnonzero(wrong)
        if len(differ):
            row = items.iloc[differ[0]]
            raise InputError(
                f"score: item {row['item']!r} of domain {row['domain']!r} has another {column} ({row[column]}) than "
                f"the fitted one ({fitted[column].iloc[differ[0]]})"
            )
    N, number = responses.n_models, fit.items["n_options"].to_numpy()
    scores = np.full((N, len(number)), np.nan)
    scores[:, positions] = np.concatenate(answers.right, axis=1)
    a, c, key = fit.bank
    kind = answers.groups[0].target.dtype
    of_number = {K: np.flatnonzero(number == K) for K in np.unique(number)}
    targets = {K: np.zeros((len(items), K, N), dtype=kind) for K, items in of_number.items()}
    for given in answers.groups:
        for item, target in zip(positions[given.items], given.target, strict=True):
            K = number[item]
            targets[K][np.searchsorted(of_number[K], item)] = target
    groups = tuple(OptionGroup(items, key[items], targets[K]) for K, items in of_number.items())
    return OptionProblem.of(_laid_out(fit, scores), groups, float(fit.settings["ridge"])), a, c


def _with_fitted_options(fit: NominalFit, responses: Responses) -> Responses:
    """Items with the number of options they had in the fit: a table that does not say it shows only those chosen."""
    if responses.blocks.probs is not None:
        return responses
    fitted = fit.items.set_index(["domain", "item"])["n_options"]
    index = pd.MultiIndex.from_frame(responses.items[["domain", "item"]])
    own = responses.items["n_options"].fillna(0).to_numpy(dtype=np.int64)
    known = fitted.reindex(index).fillna(0).to_numpy(dtype=np.int64)
    items = responses.items.assign(n_options=pd.Series(np.maximum(own, known), dtype="Int64"))
    return replace(responses, items=items)


def _laid_out(fit: TraitFit, scores: np.ndarray) -> Problem:
    """The problem of scores (N, J) of all fitted items, NaN where not asked."""
    member = fit.items["domain"].to_numpy()
    blocks = [scores[:, member == domain] for domain in fit.domains]
    reach = float(fit.settings["C"])
    if fit.settings.get("scale") == "prior":  # no box held the fitted traits
        reach = max(reach, float(fit.general.abs().max()) + 1)
    return make_problem(blocks, as_array(fit.weights), as_array(fit.penalty_weights), reach)


def _general_of(fit: TraitFit, theta: np.ndarray) -> np.ndarray:
    """The general trait that goes with separate traits: the line median's weighted mean, over answered domains.

    Lines with unknown coordinates are filled and standardised as the fit did (`line_median_with_gaps`).
    """
    general, fitted = as_array(fit.general), as_array(fit.theta).T
    lines = fill_lines(np.nan_to_num(fitted), np.isfinite(fitted), general)
    middle, spread = lines.mean(axis=1), lines.std(axis=1)
    units = (lines - middle[:, None]) / spread[:, None]
    cosine = units @ general / len(general)
    weight = as_array(fit.penalty_weights) / np.maximum(sines(general, units), 1e-9)
    answered = np.isfinite(theta)
    coordinate = np.where(answered, (theta - middle[:, None]) / spread[:, None], 0.0)
    top = ((weight * cosine)[:, None] * coordinate).sum(axis=0)
    return top / (answered * (weight * cosine**2)[:, None]).sum(axis=0)
