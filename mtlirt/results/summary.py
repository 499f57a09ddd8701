"""`Summary`: what a fit says about itself, computed into lines and a table, then printed as text or html."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.results import tables
from mtlirt.results.fit import Fit

if TYPE_CHECKING:
    from mtlirt.results.base import TraitFit
    from mtlirt.results.nominal import NominalFit

_SMALL_N = 500  # below it one trait on the box carries 16/N > 3 % of its domain's squared norm
_SHOWN_DOMAINS = 12
_COMPONENTS = ("sharpness", "position", "fallback")
_SHOWN_MODELS = 5
_AGREE, _ODD = 0.1, 0.3  # sines; their squares, 1 % and 9 %, are the shares of a trait's variance off the general trait


@dataclass(frozen=True, repr=False)
class Summary:
    """facts : pairs of a name and a sentence.  domains, top : frames shown below them.  notes : further sentences."""

    facts: tuple[tuple[str, str], ...]
    domains: pd.DataFrame
    top: pd.DataFrame
    notes: tuple[str, ...]

    @classmethod
    def of(cls, fit: Fit | NominalFit) -> Summary:
        """Collect the summary of `fit`."""
        table = fit.heterogeneity()
        top = fit.scores().sort_values("general_rank", kind="stable").head(_SHOWN_MODELS)
        return cls(_facts(fit, table), table, top[tables.SCORE_COLUMNS].reset_index(drop=True), _notes(fit))

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts)
        lines = [f"{name:<{width}}  {text}" for name, text in self.facts]
        shown = self.domains.head(_SHOWN_DOMAINS)
        lines += ["", "Domains, most odd first", _text(shown)]
        if len(self.domains) > len(shown):
            lines.append(f"... and {len(self.domains) - len(shown)} more: fit.heterogeneity()")
        lines += ["", "Highest general trait", _text(self.top)]
        if self.notes:
            lines += ["", "Notes", *(f"* {note}" for note in self.notes)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self.facts)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        frames = "".join(
            f"<h4>{title}</h4>{frame.to_html(index=False, float_format='{:.3f}'.format)}"
            for title, frame in (("Domains, most odd first", self.domains), ("Highest general trait", self.top))
        )
        return f"<table>{facts}</table>{frames}" + (f"<h4>Notes</h4><ul>{notes}</ul>" if notes else "")


def _text(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format="{:.3f}".format)


def one_trait(fit: TraitFit) -> bool:
    """True for a model with one trait for all domains, whatever the penalty weight."""
    return "mtl" not in fit.settings.get("verb", "fit_mtl")


def counted(n: int, what: str) -> str:
    """A number of things: "1 domain", "1,000 domains".

    >>> counted(1, "domain"), counted(1000, "domain")
    ('1 domain', '1,000 domains')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def verdict(fit: TraitFit, table: pd.DataFrame) -> str:
    """One sentence on how far the domains agree."""
    T = len(table)
    if T == 1:
        return "One domain: its trait is the general trait."
    if one_trait(fit):
        return "This model has one trait for all domains."
    if fit.fused.all():
        return f"All {T} domains share one trait at this lam."
    near = int((table["sine"] < _AGREE).sum())
    odd = table[table["sine"] >= _ODD]
    lie = "lies" if near == 1 else "lie"
    text = f"{near} of {T} domains {lie} close to the general trait (sine below {_AGREE:g})"
    if odd.empty:
        return f"{text}; none is odd (sine {_ODD:g} or more)."
    names = ", ".join(f"{d} ({s:.2f})" for d, s in zip(odd["domain"][:5], odd["sine"][:5], strict=True))
    return f"{text}; odd, with sine {_ODD:g} or more: {names}{' and others' if len(odd) > 5 else ''}."


def _facts(fit: Fit | NominalFit, table: pd.DataFrame) -> tuple[tuple[str, str], ...]:
    N, J, T = len(fit.theta), len(fit.items), len(fit.domains)
    pooling = {0.0: ", separate domains", np.inf: ", complete pooling"}.get(fit.lam, ", sine penalty")
    pooled = one_trait(fit)
    ratio = "" if np.isnan(fit.lam_ratio) else f" = {fit.lam_ratio:.3g} x lam_max ({fit.lam_max.max():.4g})"
    missing = 1 - fit.n_answers / (N * J)
    C = fit.settings["C"]
    on_box = int((fit.theta.abs() >= C * (1 - 1e-9)).sum().sum())
    agreement = fit.general.corr(fit.data.mean_score.mean(axis=1), method="spearman")
    chosen = fit.settings.get("chosen")
    return (
        ("Call", _call(fit)),
        ("Model", f"{_model(fit)}{'' if pooled else pooling}"),
        ("Ended", f"{fit.status.value} ({len(fit.trace)} steps)"),
        (
            "Data",
            f"{N:,} models x {J:,} items in {counted(T, 'domain')}, {fit.n_answers:,} answers ({missing:.1%} missing)",
        ),
        *([] if pooled else [("Penalty", f"lam = {fit.lam:g}{ratio}")]),
        *([] if chosen is None else [("Chosen", chosen)]),
        ("Objective", f"{fit.objective:.8g} = loss {fit.loss:.8g} + penalty {fit.penalty:.6g}"),
        ("Likelihood", f"log-likelihood {fit.log_likelihood:,.2f}, {fit.n_params:,} parameters"),
        *(
            []
            if pooled or T == 1
            else [("Fused", f"{int(fit.fused.sum())} of {T} domains equal the general trait exactly")]
        ),
        _items(fit),
        *_behaviour(fit),
        *([] if "scale" in fit.settings else [("Traits", f"{on_box:,} of {N * T:,} on the box |theta| = {C:g}")]),
        ("Ranking", f"Spearman {agreement:.3f} between general trait and mean score"),
        ("Verdict", verdict(fit, table)),
    )


def _call(fit: TraitFit) -> str:
    settings = fit.settings
    solver = dict(settings["solver"])
    name = solver.pop("name")
    verb = "fit_llm_nrm" if "components" in settings else settings.get("verb", "fit_mtl")
    parts = [] if one_trait(fit) else [f"lam={fit.lam:g}"]
    parts += [f"{k}={settings[k]!r}" for k in ("channel", "ridge", "scale", "objective") if k in settings]
    parts.append(f"solver={name}({', '.join(f'{k}={v!r}' for k, v in solver.items())})")
    parts += [f"{name}={name in settings['components']}" for name in _COMPONENTS if "components" in settings]
    if "scale" not in settings:
        parts.append(f"C={settings['C']:g}")
    if not one_trait(fit):
        parts.append(f"missing_weight={settings['missing_weight']!r}")
    return f"{verb}({', '.join(parts)})"


def _model(fit: Fit | NominalFit) -> str:
    if isinstance(fit, Fit):
        return "two-parameter logistic, joint maximum likelihood, one trait per domain"
    traits = "one trait" if one_trait(fit) else "one trait per domain"
    components = fit.settings.get("components")
    return f"nominal response{', with ' + ', '.join(components) if components else ''}, {traits}"


def _items(fit: TraitFit) -> tuple[str, str]:
    """What there is to know about all slopes, or all options."""
    if isinstance(fit, Fit):
        a, C = fit.items["a"], fit.settings["C"]
        return "Slopes", f"{int((a == 0).sum()):,} at 0 ({(a == 0).mean():.1%}), {int((a == C).sum()):,} at C = {C:g}"
    K = fit.items["n_options"]
    return "Options", f"{K.sum():,}, {K.min()} to {K.max()} an item, {K.mean():.2f} on average"


def _behaviour(fit: Fit | NominalFit) -> tuple[tuple[str, str], ...]:
    """What the LLM-NRM adds."""
    if isinstance(fit, Fit) or fit.model_parameters is None:
        return ()
    s = fit.model_parameters["s"]
    facts = [("Sharpness", f"s from {s.min():.2f} to {s.max():.2f}, median {s.median():.2f}")]
    if fit.gate is not None:
        facts.append(("Gate", f"w0 = {fit.gate['w0']:.3g}, kappa = {fit.gate['kappa']:.3g}"))
    starts = fit.settings["starts"]
    if len(starts) > 1:
        facts.append(("Starts", f"objectives reached: {', '.join(f'{x:.8g}' for x in starts)}"))
    return tuple(facts)


def _notes(fit: TraitFit) -> tuple[str, ...]:
    notes = []
    N, C = len(fit.theta), fit.settings["C"]
    on_box = int((fit.theta.abs() >= C * (1 - 1e-9)).any(axis=1).sum())
    if on_box and N < _SMALL_N and not one_trait(fit):
        notes.append(
            f"Models on the box: {on_box}, and there are fewer than {_SMALL_N} models: a few extreme models steer "
            "the angles between domains. Compare with lam = 0 and infinity, and consider dropping all-right and "
            "all-wrong models."
        )
    if not fit.general_unique:
        notes.append(
            "With two domains the penalty is the one sine between their traits; the general trait shown is their "
            "normalised mean, by convention, and equally far from both."
        )
    if fit.general_at is not None:
        notes.append(f"The general trait is that of domain {fit.general_at!r} exactly: the median line is its line.")
    for flag, meaning in (
        ("all right", "answered right by every model"),
        ("all wrong", "answered wrong by every model"),
    ):
        count = int((fit.items["flag"] == flag).sum())
        if count:
            silent = isinstance(fit, Fit) or flag == "all right"  # which wrong option was chosen may say something
            notes.append(f"Items {meaning}: {count:,}.{' They say nothing about the traits.' if silent else ''}")
    constant = int(fit.data.mean_score.isin([0.0, 1.0]).all(axis=1).sum())
    if constant:
        notes.append(f"Models with all answers right, or all wrong, in every domain: {constant:,}.")
    gaps = fit.gaps
    for kind, meaning in (
        ("borrowed", "the traits there are borrowed from the other domains"),
        ("missing", "there is no trait there at lam = 0"),
    ):
        rows = gaps[gaps["kind"] == kind]
        if len(rows):
            notes.append(
                f"Models without any answer in some domain: {rows['model'].nunique():,} (model and domain pairs: "
                f"{len(rows):,}); {meaning}."
            )
    return (*notes, *fit.data.notes)
