"""What a fold trains on, and how it is judged by the answers that were held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mtlirt.core.likelihood import held_out_nll
from mtlirt.core.option_likelihood import held_out_option_nll
from mtlirt.core.options import OptionProblem
from mtlirt.core.problem import DomainAnswers, Problem
from mtlirt.data.checks import FEWEST_ITEMS, FEWEST_MODELS
from mtlirt.data.splits import Split
from mtlirt.errors import InputError
from mtlirt.models.settings import Settings
from mtlirt.solvers.items import item_step
from mtlirt.solvers.solution import Solution

_ITEM_PASSES = 100


@dataclass(frozen=True)
class Fold:
    """A training set and the cells that judge fits of it.

    train : the training answers, weighted as the settings say.
    right : T blocks (N, n_t) of scores, for the items that are judged.
    test : T boolean blocks of the same shapes, the held-out answers that a fit can predict: the model has training
        answers in the domain, and the item has some (unless its parameters are refitted).
    unseen : number of held-out answers that it cannot.
    refit_items : True if the judged items are not in training: their a and d are fitted given the traits first.
    """

    train: Problem
    right: tuple[np.ndarray, ...]
    test: tuple[np.ndarray, ...]
    unseen: int
    refit_items: bool

    @cached_property
    def cells(self) -> np.ndarray:
        """(T,) number of cells judged."""
        return np.array([test.sum() for test in self.test])

    def nll(self, solution: Solution) -> np.ndarray:
        """(T,) held-out negative log-likelihood of a fit of `train`."""
        items = self.train.item_slices
        return np.array(
            [
                held_out_nll(right, test, theta, *self._items(t, theta, solution.a[items[t]], solution.d[items[t]]))
                for t, (right, test, theta) in enumerate(zip(self.right, self.test, solution.theta, strict=True))
            ]
        )

    def mean_score_nll(self) -> np.ndarray:
        """(T,) the same for the prediction that an average makes, for every item alike: the model's share right in the
        domain's training answers, (right + 1/2) / (answers + 1)."""
        share = (self.train.right_per_model + 0.5) / (self.train.answers_per_model + 1)
        out = []
        for right, test, p in zip(self.right, self.test, share, strict=True):
            k, n = np.where(test, right, 0).sum(axis=1), test.sum(axis=1)
            out.append(-(k @ np.log(p) + (n - k) @ np.log1p(-p)))
        return np.array(out)

    def _items(self, t: int, theta: np.ndarray, a: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.refit_items:
            return a, d
        C, test = self.train.C, self.test[t].astype(np.float64)
        right = test * self.right[t]
        k, n = right.sum(axis=0), test.sum(axis=0)
        d = np.clip(np.log((k + 0.5) / (n - k + 0.5)), -C, C)
        step = item_step(theta, test, theta @ right, k, np.full(len(d), min(1.0, C)), d, C, _ITEM_PASSES)
        return step.a, step.d


@dataclass(frozen=True)
class OptionFold(Fold):
    """everything : the problem of all answers."""

    everything: OptionProblem

    def nll(self, solution: Solution) -> np.ndarray:
        """(T,) held-out negative log-likelihood of the options."""
        return held_out_option_nll(
            self.everything, np.concatenate(self.test, axis=1), solution.theta, solution.a, solution.d
        )

    def mean_score_nll(self) -> np.ndarray:
        """(T,) the same for an average that spreads what is not right evenly over an item's wrong options."""
        spread = np.split(np.log(self.everything.n_options - 1), np.cumsum(self.train.sizes)[:-1])
        wrong = [
            (np.where(test, 1 - right, 0.0) @ logs).sum()
            for right, test, logs in zip(self.right, self.test, spread, strict=True)
        ]
        return super().mean_score_nll() + np.array(wrong)


def held_cells(problem: Problem, split: Split, number: int) -> tuple[np.ndarray, ...]:
    """T boolean blocks (N, J_t), the answers of the problem that fold `number` of a split over cells holds out."""
    return tuple(
        of == number if x.observed is None else (of == number) & (x.observed > 0)
        for x, of in zip(problem.domains, split.blocks, strict=True)
    )


def make_fold(problem: Problem, split: Split, number: int, settings: Settings) -> Fold:
    """The fold that holds out what `split` gives this number."""
    if split.scheme == "items":
        if isinstance(problem, OptionProblem):
            raise InputError('scheme="items" is for the 2PL; option models are cross-validated over cells')
        parts = [_without_items(x, of != number) for x, of in zip(problem.domains, split.blocks, strict=True)]
        train = replace(problem, domains=tuple(p.train for p in parts))
        right, held = tuple(p.right for p in parts), tuple(p.held for p in parts)
    else:
        held = held_cells(problem, split, number)
        train, right = problem.without(held), tuple(x.right for x in problem.domains)
    items = np.split(train.answers_per_item > 0, np.cumsum(train.sizes)[:-1])
    models = train.answers_per_model > 0
    for domain, item, model in zip(split.domains, items, models, strict=True):
        _check(domain, number, "items", int(item.sum()), FEWEST_ITEMS)
        _check(domain, number, "models", int(model.sum()), FEWEST_MODELS)
    test, unseen = [], 0
    for cells, item, model in zip(held, items, models, strict=True):
        known = cells & model[:, None]
        test.append(known if split.scheme == "items" else known & item)
        unseen += int(cells.sum() - test[-1].sum())
    if not any(cells.any() for cells in test):
        raise InputError(f"fold {number + 1} holds out no answer that the others could predict; use fewer folds")
    train = settings.weighted(train)
    if isinstance(problem, OptionProblem):
        return OptionFold(train, right, tuple(test), unseen, False, problem)
    return Fold(train, right, tuple(test), unseen, split.scheme == "items")


def _check(domain: str, number: int, what: str, n: int, fewest: int) -> None:
    if n < fewest:
        raise InputError(
            f"domain {domain!r} has training answers of only {n} {what} in fold {number + 1}, and needs {fewest}: drop "
            "or merge the domain, try another number of folds or another seed, or fit at a given lam"
        )


@dataclass(frozen=True)
class _Part:
    """Training answers of a domain; scores and held-out cells of its judged items."""

    train: DomainAnswers
    right: np.ndarray
    held: np.ndarray


def _without_items(answers: DomainAnswers, seen: np.ndarray) -> _Part:
    right, observed = answers.right, answers.observed
    if observed is None:
        return _Part(
            DomainAnswers(np.ascontiguousarray(right[:, seen]), None),
            right[:, ~seen],
            np.full((len(right), (~seen).sum()), True),
        )
    train = DomainAnswers(np.ascontiguousarray(right[:, seen]), np.ascontiguousarray(observed[:, seen]))
    return _Part(train, right[:, ~seen], observed[:, ~seen] > 0)
