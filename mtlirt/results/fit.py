"""`Fit`: the result of every 2PL fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd
from scipy.special import expit

from mtlirt.results import tables
from mtlirt.results.base import TraitFit

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.results.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class Fit(TraitFit):
    """A fitted multi-domain 2PL: logit P(right) = a * theta + d.

    Attributes
    ----------
    theta : frame models x domains; each column has mean 0, mean square 1 and values within [-C, C]. Missing only at
        lam = 0, where a model has no answer in a domain (see `gaps`).
    general : Series over models, the general trait: mean 0, mean square 1, no bound.
    items : frame with domain, item, a, d, b (difficulty -d/a, missing where a = 0), at_bound, n_answers, mean_score and
        flag ("all right", "all wrong", "slope 0", "slope at C" or empty).
    objective, loss, penalty : recomputed cell by cell at these parameters; objective = loss + penalty, with
        loss = sum_t weight_t NLL_t.
    lam : penalty weight.  lam_max : Series over domains, the weight from which each domain is fused at the pooled fit.
    fused : Series over domains, True where the domain's trait is the general trait exactly.
    general_unique : False for two domains that are not fused: the penalty is then the one sine between their traits,
        and the general trait is their normalised mean by convention.
    general_at : the domain whose trait is the general trait though others are not fused (a vertex), or None.
    status, trace : how the solver ended, and one row per step.
    settings : C, solver, missing_weight, penalty_weights and the like.
    log_likelihood : sum over all answers, unweighted.
    trait_information : frame models x domains, sum of a**2 P (1 - P) over the answered items at theta.
    general_information : Series over models, the same over all answered items at the general trait.
    weights, penalty_weights : Series over domains.
    coupling : how a model's traits hang together, for `score`.
    data : DataSummary.

    >>> from mtlirt import HeterogeneityDesign, fit_mtl, simulate
    >>> fit = fit_mtl(simulate(HeterogeneityDesign(h0=0.2, N=30, sizes=(10,), per_size=2), seed=1).responses, lam=1.0)
    >>> fit.theta.shape, list(fit.scores().columns[:4])
    ((30, 2), ['model', 'general', 'general_rank', 'mean_score'])
    >>> fit.converged
    True
    """

    @property
    def n_params(self) -> int:
        """Free parameters: slopes, intercepts, and N - 2 for each distinct trait (mean and norm are fixed)."""
        return 2 * len(self.items) + self.n_free_traits

    def scores(self, scale: Literal["trait", "expected"] = "trait", se: bool = False) -> pd.DataFrame:
        """One row per model: model, general, general_rank, mean_score, mean_score_rank, then one column per domain.

        A domain's column is prefixed "domain:" if its name is one of the other columns'.

        Parameters
        ----------
        scale : "trait" gives theta and the general trait. "expected" gives the expected share right on all items of
            each domain, mean_j P_j(theta), comparable between models that answered different items; general is then
            the mean over domains of the expected share right at the general trait.
        se : add columns "se:general" and "se:<domain>", the conditional standard error 1 / sqrt(information) (times
            the slope of the expected share on that scale). It takes the items as known, and it ignores what the penalty
            borrows from other domains, so it is too large for fused domains and too small for small item samples;
            missing where the answered items carry no information.

        mean_score is the mean over domains of a model's mean score, what a leaderboard shows. Ranks start at 1; ties
        share the smallest rank. Where models have gaps, a last column `borrowed` names the domains that were not
        answered.
        """
        return tables.scores(self, scale, se)

    def summary(self) -> Summary:
        """An object that prints itself, in text and in a notebook."""
        from mtlirt.results.summary import Summary

        return Summary.of(self)

    def coef(self, irt: bool = False) -> pd.DataFrame:
        """Item parameters: columns domain, item, a, d, b, at_bound; with irt=True domain, item, a, b, at_bound.

        As R mirt's coef(): slope-intercept form, or discrimination and difficulty. b is missing where a = 0.
        """
        return self.items[["domain", "item", "a", "b", "at_bound"] if irt else tables.COEF_COLUMNS].copy()

    def expected(self, traits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Expected share right per domain at `traits` (models x domains), and its derivative."""
        return tables.expected(self, traits)

    def predict(self, responses: Responses | None = None) -> pd.DataFrame:
        """Probabilities of a right answer: frame models x (domain, item); missing where theta is.

        Parameters
        ----------
        responses : optional; gives the models and items wanted, all of which must be in the fit.

        Raises
        ------
        InputError if `responses` has a model or item that was not fitted; `score` takes new models.
        """
        theta, items = self.theta, self.items
        if responses is not None:
            theta, items = tables.matching(self, responses)
        z = theta[items["domain"]].to_numpy() * items["a"].to_numpy() + items["d"].to_numpy()
        columns = pd.MultiIndex.from_frame(items[["domain", "item"]])
        return pd.DataFrame(expit(z), index=theta.index, columns=columns)

    def score(self, responses: Responses) -> pd.DataFrame:
        """Traits of new models, the items held fixed.

        Each model's traits minimise its weighted loss plus the fit's penalty and constraints, expanded to second order
        about the fit: fused domains stay fused, others are drawn to the general trait as strongly as the fitted models'
        were, and a fitted model gets its own traits back.

        Parameters
        ----------
        responses : answers of the new models to (some of) the fitted items.

        Returns
        -------
        Frame with model, general, one column per domain, n_answers, and `borrowed` where a domain was not answered.
        Values lie in [-C, C]; at lam = 0 a domain without answers is missing.

        Raises
        ------
        InputError for items that were not fitted, or a model without any answer.
        """
        from mtlirt.results.scoring import score

        return score(self, responses)
