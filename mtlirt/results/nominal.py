"""`NominalFit`: the result of every fit of option models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from mtlirt.core.distractors import information_split, on_top
from mtlirt.errors import InputError
from mtlirt.results import tables
from mtlirt.results.base import TraitFit

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.results.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class NominalFit(TraitFit):
    """A fitted nominal response model: P(option k) proportional to exp(a_k theta + c_k), a and c summing to 0.

    Attributes
    ----------
    theta, general, loss, penalty, lam, lam_max, fused, status, trace, settings, log_likelihood, data : as of `Fit`. A
        model with one trait has it in every domain's column; with scale="prior" it is not standardised, and in the
        LLM-NRM no box holds it. The loss includes the ridge on a and c.
    items : frame with domain, item, key, n_options, n_answers, mean_score (share of the key) and flag ("all right",
        "all wrong" or empty).
    options : frame, one row per option: domain, item, option, a, c, right (is it the key), share (mean share chosen).
    trait_information, general_information : variance of the slopes under the options' probabilities, summed over the
        answered items: the information of one drawn option, not of a whole vector of probabilities.
    model_parameters : frame with model, theta, s, and delta and rho by position, of the LLM-NRM, else None.
    gate : its "w0" and "kappa", or None.

    >>> from mtlirt import LLMNRMDesign, fit_nrm, simulate_llm_nrm
    >>> fit = fit_nrm(simulate_llm_nrm(LLMNRMDesign(N=20, J=15), seed=1).responses)
    >>> item = fit.items.iloc[0]
    >>> curves = fit.curves(item["domain"], item["item"])
    >>> bool((abs(curves.sum(axis=1) - 1) < 1e-9).all())
    True
    """

    options: pd.DataFrame
    model_parameters: pd.DataFrame | None
    gate: dict[str, float] | None

    @property
    def n_params(self) -> int:
        """Free parameters: 2 (K - 1) for an item with K options, N - 2 for each trait, and the LLM-NRM's own."""
        own, components = 0, self.settings.get("components", ())
        per_position = len(self.models) * (self._own.shape[1] - 1)
        own += (len(self.models) - 1) * ("sharpness" in components)
        own += per_position * ("position" in components) + (per_position + 2) * ("fallback" in components)
        return int(2 * (self.items["n_options"] - 1).sum()) + self.n_free_traits + own

    def scores(self, scale: Literal["trait", "expected"] = "trait", se: bool = False) -> pd.DataFrame:
        """One row per model, as `Fit.scores`; expected shares are those of the key."""
        return tables.scores(self, scale, se)

    def summary(self) -> Summary:
        """An object that prints itself, in text and in a notebook."""
        from mtlirt.results.summary import Summary

        return Summary.of(self)

    def coef(self) -> pd.DataFrame:
        """Option parameters: columns domain, item, option, a, c, right."""
        return self.options[["domain", "item", "option", "a", "c", "right"]].copy()

    def expected(self, traits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Expected share right per domain at `traits` (models x domains), and its derivative."""
        if self.model_parameters is not None:
            return self._expected_llm(traits)
        share: dict[Any, np.ndarray] = {}
        slope: dict[Any, np.ndarray] = {}
        for domain, rows in self.items.groupby("domain", sort=False):
            theta = traits[domain].to_numpy()
            p, a = self._curves(rows.index.to_numpy(), theta)
            right = p[np.arange(len(rows)), self._key[rows.index]]
            mean = np.einsum("jk,jkn->jn", a, p)
            share[domain] = right.mean(axis=0)
            slope[domain] = (right * (a[np.arange(len(rows)), self._key[rows.index]][:, None] - mean)).mean(axis=0)
        return pd.DataFrame(share, index=traits.index), pd.DataFrame(slope, index=traits.index)

    def _expected_llm(self, traits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The same at each model's sharpness, positions and fallback; derivatives by central differences."""
        from mtlirt.results.llm import llm_probabilities

        models, h = self.models.get_indexer(traits.index), 1e-4
        parts: dict[float, dict[Any, np.ndarray]] = {-h: {}, 0.0: {}, h: {}}
        for domain, rows in self.items.groupby("domain", sort=False):
            j = rows.index.to_numpy()
            for step, shares in parts.items():
                p = llm_probabilities(self, j, models, traits[domain].to_numpy() + step)
                shares[domain] = p[np.arange(len(j)), self._key[j]].mean(axis=0)
        low, here, high = (pd.DataFrame(shares, index=traits.index) for shares in parts.values())
        return here, (high - low) / (2 * h)

    def predict(self, responses: Responses | None = None) -> pd.DataFrame:
        """Probabilities of all options: frame models x (domain, item, option); missing where theta is.

        Parameters
        ----------
        responses : optional; gives the models and items wanted, all of which must be in the fit.
        """
        theta, rows = self.theta, np.arange(len(self.items))
        if responses is not None:
            theta, items = tables.matching(self, responses)
            rows = items.index.to_numpy()
        if self.model_parameters is None:
            p = self._curves(rows, theta[self.items["domain"].iloc[rows]].to_numpy().T)[0]
        else:
            from mtlirt.results.llm import llm_probabilities

            p = llm_probabilities(self, rows, self.models.get_indexer(theta.index))
        wanted = np.concatenate([np.arange(*self._bounds[[j, j + 1]]) for j in rows])
        columns = pd.MultiIndex.from_frame(self.options.loc[wanted, ["domain", "item", "option"]])
        return pd.DataFrame(p[self._own[rows]].T, index=theta.index, columns=columns)

    def curves(self, domain: str, item: str, theta: np.ndarray | None = None) -> pd.DataFrame:
        """Trace curves of an item: frame theta x options, the probability of each option at each trait.

        theta : values of the trait; 101 from -C to C if they are not given. InputError for an unknown item.
        """
        found = self.items.index[(self.items["domain"] == domain) & (self.items["item"] == item)]
        if not len(found):
            raise InputError(f"there is no item {item!r} in domain {domain!r}")
        C = self.settings["C"]
        at = np.linspace(-C, C, 101) if theta is None else _traits(theta)
        p, _ = self._curves(found.to_numpy(), at)
        names = self.options["option"].iloc[slice(*self._bounds[[found[0], found[0] + 1]])]
        return pd.DataFrame(
            p[0, : len(names)].T, index=pd.Index(at, name="theta"), columns=pd.Index(names, name="option")
        )

    def information(self, theta: np.ndarray | None = None) -> pd.DataFrame:
        """Fisher information of each item, averaged over traits, and how much of it wrong options add.

        Parameters
        ----------
        theta : values of the trait; by default the fitted traits of the item's domain.

        Returns
        -------
        Frame with domain, item, nominal (of the chosen option), binary (of right or wrong), wrong (of which wrong
        option), nominal = binary + wrong exactly (the law of total variance).
        """
        binary, wrong = np.empty(len(self.items)), np.empty(len(self.items))
        for domain, rows in self.items.groupby("domain", sort=False):
            at = self.theta[domain].dropna().to_numpy() if theta is None else _traits(theta)
            j = rows.index.to_numpy()
            split = information_split(at, self._a[j], self._c[j], self._own[j], self._key[j])
            binary[j], wrong[j] = split.binary.mean(axis=1), split.wrong.mean(axis=1)
        frame = self.items[["domain", "item"]].copy()
        return frame.assign(nominal=binary + wrong, binary=binary, wrong=wrong)

    def information_gain(self, theta: np.ndarray | None = None) -> pd.DataFrame:
        """What the choice among wrong options adds to right or wrong: frame domain, binary, wrong, gain.

        Means over the items of each domain; gain = wrong / binary, a ratio of means. The last two rows are "all items"
        (the ratio of the means over all items) and "mean of domains" (the mean of the domains' gains, which has no
        information of its own).
        """
        items = self.information(theta)
        table = items.groupby("domain", sort=False)[["binary", "wrong"]].mean().reset_index()
        table["gain"] = table["wrong"] / table["binary"]
        everything = items[["binary", "wrong"]].mean()
        total = {"domain": "all items", **everything, "gain": everything["wrong"] / everything["binary"]}
        mean = {"domain": "mean of domains", "gain": table["gain"].mean()}
        return pd.concat([table, pd.DataFrame([total, mean])], ignore_index=True)

    def positional_bias(self) -> pd.DataFrame:
        """What models prefer whatever the options say: frame model, position, delta, rho; of the LLM-NRM.

        delta is added to the utility of the option at that position on every item, rho is the logit of the position
        where the model falls back. Both sum to 0 over positions. InputError for other models.
        """
        long = self._own_parameters().drop(columns=["theta", "s"]).melt("model", var_name="what", value_name="value")
        long[["what", "position"]] = long["what"].str.split(":", n=1, expand=True)
        wide = long.pivot_table(index=["model", "position"], columns="what", values="value", sort=False)
        return wide.reset_index().rename_axis(columns=None)[["model", "position", "delta", "rho"]]

    def calibration(self, responses: Responses) -> pd.DataFrame:
        """Sharpness beside what the answers' probabilities promise and keep.

        Frame with model, s, confidence (mean of the largest probability), accuracy (share of answers whose most
        probable option is the key) and overconfidence, their difference; of the LLM-NRM, for answers in the soft
        channel, those that were fitted.
        """
        from mtlirt.results.llm import confidence_and_accuracy

        table = self._own_parameters()[["model", "s"]].copy()
        table["confidence"], table["accuracy"] = confidence_and_accuracy(self, responses)
        return table.assign(overconfidence=table["confidence"] - table["accuracy"])

    def _own_parameters(self) -> pd.DataFrame:
        if self.model_parameters is None:
            raise InputError("this model has no sharpness and no positions: fit it with fit_llm_nrm")
        return self.model_parameters

    def informative_distractors(self, low: float | None = None, high: float | None = None) -> pd.DataFrame:
        """Wrong options that are the most probable one at some trait between `low` and `high`.

        The ends are the smallest and largest fitted traits of the domain if they are not given. On the whole line
        every item would have one, the option with the smallest slope.

        Returns
        -------
        Frame with domain, item, option, start and end of the interval in which the option is on top, and the ends of
        the range searched: low, high.
        """
        parts = []
        for domain, rows in self.items.groupby("domain", sort=False):
            trait, j = self.theta[domain].dropna(), rows.index.to_numpy()
            ends = (trait.min() if low is None else low, trait.max() if high is None else high)
            if not ends[0] < ends[1]:
                raise InputError(f"informative_distractors: low must be below high, not {ends[0]!r} and {ends[1]!r}")
            start, end = on_top(self._a[j], self._c[j], self._own[j], *ends)
            item, option = np.nonzero((start < end) & (np.arange(self._a.shape[1]) != self._key[j][:, None]))
            table = self.options.loc[self._bounds[j[item]] + option, ["domain", "item", "option"]]
            table = table.assign(start=start[item, option], end=end[item, option], low=ends[0], high=ends[1])
            parts.append(table)
        return pd.concat(parts, ignore_index=True)

    def score(self, responses: Responses) -> pd.DataFrame:
        """Traits of new models, the options held fixed: arguments, result and errors as for `Fit.score`.

        Items must have the key and the number of options they had in the fit.
        """
        from mtlirt.results.scoring import score

        return score(self, responses)

    @property
    def bank(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes and intercepts (J, K), 0 beyond an item's options, and keys (J,) as positions among the options."""
        return self._a, self._c, self._key

    @cached_property
    def _bounds(self) -> np.ndarray:
        """(J + 1,) where each item's rows of `options` begin."""
        return np.concatenate([[0], np.cumsum(self.items["n_options"].to_numpy())])

    @cached_property
    def _own(self) -> np.ndarray:
        K = self.items["n_options"].to_numpy()
        return np.arange(K.max()) < K[:, None]

    def _padded(self, column: str) -> np.ndarray:
        out = np.zeros(self._own.shape)
        out[self._own] = self.options[column].to_numpy()
        return out

    @cached_property
    def _a(self) -> np.ndarray:
        return self._padded("a")

    @cached_property
    def _c(self) -> np.ndarray:
        return self._padded("c")

    @cached_property
    def _key(self) -> np.ndarray:
        return self._padded("right").argmax(axis=1)

    def _curves(self, rows: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(J', K, M) probabilities of the options of some items at traits (M,) or (J', M), 0 beyond their own; and the
        slopes."""
        at = np.broadcast_to(theta, (len(rows), np.shape(theta)[-1]))[:, None, :]
        logit = self._a[rows, :, None] * at + np.where(self._own[rows], self._c[rows], -np.inf)[:, :, None]
        p = np.exp(logit - logit.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True), self._a[rows]


def _traits(theta: object) -> np.ndarray:
    """(M,) finite traits; InputError for anything else."""
    try:
        at = np.atleast_1d(np.asarray(theta, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"theta must be numbers ({error})") from error
    if at.ndim != 1 or not len(at) or not np.isfinite(at).all():
        raise InputError("theta must be one or more finite numbers")
    return at
