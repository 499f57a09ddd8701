"""Sentences of the report: the verdict, what is sure and what is not, the method."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mtlirt.report.evidence import Evidence
from mtlirt.results import summary
from mtlirt.results.base import TraitFit
from mtlirt.results.fit import Fit

_CLEAR = 2.0  # standard errors from which a difference is called clear
_SHOWN = 5
_RMTL = (
    "Y. Xie, Y. Xu, Y. Feng and Y. Chen (2026). LLM Benchmarking via Representation Multi-task Learning. "
    "arXiv 2610.05613."
)
_JOINT = (
    "Y. Chen, X. Li and S. Zhang (2019). Joint maximum likelihood estimation for high-dimensional exploratory item "
    "factor analysis. Psychometrika 84, 124-146."
)
_BIRNBAUM = (
    "A. Birnbaum (1968). Some latent trait models and their use in inferring an examinee's ability. In F. M. Lord and "
    "M. R. Novick, Statistical Theories of Mental Test Scores."
)
_BOCK = (
    "R. D. Bock (1972). Estimating item parameters and latent ability when responses are scored in two or more nominal "
    "categories. Psychometrika 37, 29-51."
)
_LLM_NRM = (
    "Every Wrong Answer Counts: Option-Level Psychometrics for LLM Multiple-Choice Benchmarks (2026). arXiv 2608.02966."
)


def verdict(fit: TraitFit, scores: pd.DataFrame, evidence: Evidence, flags: dict[str, int]) -> list[dict[str, str]]:
    """What is sure and what is not: sentences, each with what it is about.

    scores : `fit.scores(se=True)`.  flags : number of items by flag.
    """
    said = {
        "Who leads": leader(scores),
        "Domains": _domains(fit),
        "Pooling": pooling(fit, evidence),
        "How sure": certainty(scores),
        "Items": _items(len(fit.items), flags, evidence.checks is not None),
        "The fit": f"{fit.status.value}",
    }
    return [{"about": about, "text": text} for about, text in said.items()]


def leader(scores: pd.DataFrame) -> str:
    """Who has the highest general trait, and who cannot be told apart from it."""
    ranked = scores.dropna(subset=["general"]).sort_values("general_rank", kind="stable")
    if ranked.empty:
        return "No model has a general trait."
    first, others = ranked.iloc[0], ranked.iloc[1:]
    text = (
        f"{first['model']} has the highest general trait, {first['general']:.2f}, on a scale where the {len(scores):,} "
        "models here have mean 0 and standard deviation 1."
    )
    if np.isnan(first["se:general"]):
        return f"{text} It has no standard error: the items say nothing about a trait that far out."
    behind = first["general"] - others["general"]
    near = others[behind < _CLEAR * np.hypot(first["se:general"], others["se:general"])]
    if near.empty:
        return f"{text} It is ahead of every other model by more than two standard errors of the difference."
    names = ", ".join(near["model"].iloc[:_SHOWN])
    more = f" and {len(near) - _SHOWN:,} others" if len(near) > _SHOWN else ""
    these = "another is" if len(near) == 1 else f"{len(near):,} others are"
    return f"{text} By these items {these} not clearly behind it, within two standard errors: {names}{more}."


def _domains(fit: TraitFit) -> str:
    text = summary.verdict(fit, fit.heterogeneity())
    fused, T = int(fit.fused.sum()), len(fit.domains)
    if T == 1 or fused == T:
        return text
    if fused == 0:
        return f"{text} None has the general trait exactly."
    return f"{text} Fused, so that their trait is the general trait exactly: {fused} of {T}."


def pooling(fit: TraitFit, evidence: Evidence) -> str:
    """How lam was chosen, and what the other regimes would cost."""
    if len(fit.domains) == 1:
        return "There is one domain, so nothing to pool."
    if evidence.cv is None:
        return (
            f"lam = {fit.lam:g} was given, not chosen by cross-validation: whether the domains should borrow more or "
            "less from each other was not tested."
        )
    table = evidence.cv.dropna(subset=["mean"])
    at = table[table["lam"] == fit.lam]
    if at.empty:
        return f"There is a cross-validation, but lam = {fit.lam:g} is not on its path."
    row = at.iloc[0]
    costs = [
        _cost(name, table[table["lam"] == lam].iloc[0])
        for name, lam in (("complete pooling", np.inf), ("separate domains", 0.0))
        if lam != fit.lam and (table["lam"] == lam).any()
    ]
    chosen = {0.0: "Separate domains predict", np.inf: "Complete pooling predicts"}.get(
        fit.lam, f"lam = {fit.lam:.4g} predicts"
    )
    best = "best" if row["excess"] <= 0 else f"with an excess of {row['excess']:.5f} over the best"
    return f"{chosen} held-out answers {best}: log-loss {row['mean']:.4f} (se {row['se']:.4f}). {' '.join(costs)}"


def _cost(name: str, end: pd.Series) -> str:
    excess, se = end["excess"], end["excess_se"]
    clear = "clearly worse" if excess > _CLEAR * se else "not clearly worse"
    return f"{name.capitalize()}: {clear}, by {excess:.5f} (se {se:.5f}, paired over folds)."


def certainty(scores: pd.DataFrame) -> str:
    """The conditional standard errors, and what they leave out."""
    se = scores["se:general"].dropna()
    without = len(scores) - len(se)
    known = "There are no standard errors of the general trait."
    if len(se):
        low, middle, high = se.quantile([0.05, 0.5, 0.95])
        known = (
            f"The general trait has a standard error of {middle:.3f} for the median model; nine in ten lie between "
            f"{low:.3f} and {high:.3f}."
        )
        known += f" {without:,} have none." if without else ""
    return (
        f"{known} These are conditional standard errors: they take the items as known and leave out what the items' "
        "own estimates add, what a domain borrows from the others, and that the items are a sample of those that could "
        "have been asked."
    )


def _items(J: int, flags: dict[str, int], checked: bool) -> str:
    told = [f"{n:,} {flag}" for flag, n in flags.items() if n]
    text = f"Of {J:,} items {', '.join(told)}." if told else f"None of the {J:,} items is flagged."
    return text if checked else f"{text} Inverted and repeated items are not known: that takes the answers themselves."


def method(fit: TraitFit) -> list[str]:
    """The method in four sentences."""
    C = fit.settings["C"]
    if isinstance(fit, Fit):
        model = (
            "A model with trait theta in an item's domain answers the item right with probability "
            "1 / (1 + exp(-(a theta + d))); the traits, the slopes a between 0 and "
            f"{C:g} and the intercepts d between -{C:g} and {C:g} are estimated together, by joint maximum likelihood."
        )
    else:
        model = (
            "A model with trait theta chooses option k of an item with probability proportional to "
            "exp(a_k theta + c_k), where the slopes a_k and the intercepts c_k of an item sum to 0; traits and options "
            "are estimated together, by joint maximum likelihood with a ridge on a and c."
        )
        if "components" in fit.settings:
            model = model.replace("; traits", ", and with terms for each model's sharpness and habits; traits")
    scale = (
        "Traits have mean 0 and mean square 1 over the models of this table: a trait of 1 is one standard deviation "
        "above their average, not an amount of its own."
    )
    if "mtl" in fit.settings.get("verb", "fit_mtl"):
        borrowing = (
            "Domains borrow from each other through a penalty, lam times the sine of the angle between a domain's "
            "trait and the general trait, summed over domains: at infinity there is one trait for all, at 0 each "
            "domain stands alone, and in between domains that differ little are fused with the general trait exactly."
        )
    else:
        borrowing = "All domains share one trait, which is the general trait."
    errors = (
        "Standard errors are 1 / sqrt(Fisher information) of the items that a model answered, at its trait and with "
        "the items taken as known."
    )
    return [model, scale, borrowing, errors]


def references(fit: TraitFit) -> list[str]:
    """What the method rests on."""
    if isinstance(fit, Fit):
        return [_RMTL, _BIRNBAUM, _JOINT]
    if "components" in fit.settings:
        return [_LLM_NRM, _BOCK]
    return [_RMTL, _BOCK, _JOINT] if "mtl" in fit.settings["verb"] else [_BOCK]
