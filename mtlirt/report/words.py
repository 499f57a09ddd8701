"""Sentences of the report: the verdict, what is sure and what is not, the method."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mtlirt.report.evidence import Evidence
from mtlirt.results import summary
from mtlirt.results.base import TraitFit
from mtlirt.results.fit import Fit
from mtlirt.results.summary import one_trait

_CLEAR = 2.0  # standard errors from which a difference is called clear
_DEGREES = 4  # of freedom, below which two standard errors are no clear difference
_SHOWN = 5
NO_CHECKS = "Inverted and repeated items are not known: that takes the answers themselves."
_BIDI = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
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
        "The fit": fit.status.value,
    }
    return [{"about": about, "text": text} for about, text in said.items()]


def plain(text: str) -> str:
    """A text without the characters that turn its direction."""
    return text.translate(_BIDI)


def isolated(name: str) -> str:
    """A name for the middle of a sentence, which keeps its own direction and leaves the sentence its own.

    >>> isolated("\u202ename") == "\u2068name\u2069"
    True
    """
    return f"\u2068{plain(name)}\u2069"


def leader(scores: pd.DataFrame) -> str:
    """Who has the highest general trait, and who cannot be told apart from it."""
    ranked = scores.dropna(subset=["general"]).sort_values("general_rank", kind="stable")
    if ranked.empty:
        return "No model has a general trait."
    first, others = ranked.iloc[0], ranked.iloc[1:]
    text = (
        f"{isolated(first['model'])} has the highest general trait, {first['general']:.2f}, on a scale where the "
        f"{len(scores):,} models here have mean 0 and standard deviation 1."
    )
    if np.isnan(first["se:general"]):
        return f"{text} It has no standard error: the items say nothing about a trait that far out."
    behind = first["general"] - others["general"]
    near = others[~(behind >= _CLEAR * np.hypot(first["se:general"], others["se:general"]))]  # also those without se
    if near.empty:
        return f"{text} It is ahead of every other model by more than two standard errors of the difference."
    names = ", ".join(map(isolated, near["model"].iloc[:_SHOWN]))
    more = f" and {len(near) - _SHOWN:,} others" if len(near) > _SHOWN else ""
    these = "another is" if len(near) == 1 else f"{len(near):,} others are"
    return f"{text} By these items {these} not clearly behind it, within two standard errors: {names}{more}."


def _domains(fit: TraitFit) -> str:
    table = fit.heterogeneity()
    text = summary.verdict(fit, table.assign(domain=[isolated(name) for name in table["domain"]]))
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
    if one_trait(fit):
        return "This model has one trait for all domains, so there is no pooling to choose."
    if evidence.cv is None:
        chosen = fit.settings.get("chosen")
        if chosen:
            return f"lam = {fit.lam:.4g} was chosen {chosen}. Its curve does not lie beside this fit."
        return (
            f"lam = {fit.lam:g} was given, not chosen by cross-validation: whether the domains should borrow more or "
            "less from each other was not tested."
        )
    table = evidence.cv.dropna(subset=["mean"])
    at = table[table["lam"] == fit.lam]
    if at.empty:
        return f"There is a cross-validation, but lam = {fit.lam:g} is not on its path."
    row = at.iloc[0]
    loss = f"log-loss {row['mean']:.4f} (se {row['se']:.4f})"
    if row["excess"] <= 0:
        said = [f"{_predicts(fit.lam)} held-out answers best: {loss}."]
    else:
        said = [f"{_predicts(fit.lam)} held-out answers with {loss}, {_worse(row)}."]
        if evidence.chosen is not None:
            said.append(f"{_predicts(evidence.chosen)} them best.")
    for lam in (np.inf, 0.0):
        end = table[table["lam"] == lam]
        if lam in (fit.lam, evidence.chosen) or end.empty:
            continue
        best = end["excess"].iloc[0] <= 0
        said.append(f"{_predicts(lam)} them {'as well' if best else _worse(end.iloc[0])}.")
    return " ".join(said)


def _predicts(lam: float) -> str:
    name = {0.0: "Separate domains predict", np.inf: "Complete pooling predicts"}
    return name.get(lam, f"lam = {lam:.4g} predicts")


def _worse(row: pd.Series) -> str:
    """How much worse than the best; clearly only where the standard error rests on enough folds."""
    excess, se = row["excess"], row["excess_se"]
    apart, known = excess > _CLEAR * se, row["n_converged"] > _DEGREES
    kind = ("clearly worse" if apart else "not clearly worse") if known else "worse"
    return f"{kind}, by {excess:.5f} over the best (se {se:.5f}, paired over folds)"


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
    text = f"None of the {J:,} items is flagged."
    if told:
        text = f"Of {J:,} items {', '.join(told)}." + (" An item may have several flags." if len(told) > 1 else "")
    return text if checked else f"{text} {NO_CHECKS}"


def flag_legend(fit: TraitFit) -> list[list[str]]:
    """What each flag of an item means: pairs of its name and a sentence."""
    slopes = isinstance(fit, Fit)
    alike = "Every model answered alike: the item says nothing about traits."
    wrong = "No model chose the key. Which wrong option a model chose may still tell about its trait."
    ends = [["all right, all wrong", alike]] if slopes else [["all right", alike], ["all wrong", wrong]]
    lines = [
        ["flat", "The slope is 0: better models answer it no better. Often an ambiguous question or a wrong key."],
        ["at bound", "The slope or the intercept lies on its bound: a steeper or more extreme curve would fit better."],
    ]
    return [
        *ends,
        *(lines if slopes else []),
        [
            "inverted",
            "Its scores correlate with the general trait by more than two standard errors below 0: better models "
            "answer it worse. Look at its key.",
        ],
        [
            "duplicate",
            "All models answered it as they answered an earlier item, and chance is unlikely to have made the two "
            "alike. Items that nearly all models answer alike are not compared: among many of them some coincide.",
        ],
    ]


def method(fit: TraitFit) -> list[str]:
    """The method in four sentences: model, scale and errors, weights, borrowing."""
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
        "above their average, not an amount of its own; standard errors are 1 / sqrt(Fisher information) of the items "
        "that a model answered, at its trait and with the items taken as known."
    )
    return [model, scale, _weighing(fit), _borrowing(fit)]


def _weighing(fit: TraitFit) -> str:
    if len(fit.domains) == 1 or one_trait(fit):
        return "All answers weigh alike."
    return "Each domain's loss is its mean over items, so domains weigh alike, whatever their number of items."


def _borrowing(fit: TraitFit) -> str:
    if len(fit.domains) == 1:
        return "There is one domain, whose trait is the general trait: nothing is borrowed."
    if one_trait(fit):
        return "All domains share one trait, which is the general trait."
    if fit.lam == 0:
        return (
            "The domains borrow nothing from each other (lam = 0): each has a trait of its own, estimated from its own "
            "answers, and a sine of 0 to the general trait would mean the same trait."
        )
    text = (
        "Domains borrow from each other through a penalty, lam times the sine of the angle between a domain's "
        "trait and the general trait, summed over domains: a sine of 0 means the same trait. At infinity there is one "
        "trait for all, at 0 each domain stands alone, and in between domains that differ little are fused with the "
        "general trait exactly."
    )
    weights = fit.penalty_weights
    if (weights == weights.iloc[0]).all():
        return text
    told = ", ".join(f"{isolated(str(name))} {weight:g}" for name, weight in list(weights.items())[:_SHOWN])
    more = f" and {len(weights) - _SHOWN} more" if len(weights) > _SHOWN else ""
    return f"{text} Each sine has a weight of its own in the sum: {told}{more}."


def references(fit: TraitFit) -> list[str]:
    """What the method rests on."""
    if isinstance(fit, Fit):
        return [_RMTL, _BIRNBAUM, _JOINT]
    if "components" in fit.settings:
        return [_LLM_NRM, _BOCK]
    return [_RMTL, _BOCK, _JOINT] if not one_trait(fit) else [_BOCK]
