"""`CVResult`: held-out losses over lam, folds and domains, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt.models.settings import AnyFit
from mtlirt.selection.folds import Fold
from mtlirt.selection.path import Path
from mtlirt.solvers.solution import Solution, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STATUS = list(Status)
_TIE = 1e-6  # share of the loss within which two lams count as equal: traits are right to 1e-4, losses are flat there


@dataclass(frozen=True)
class FoldLosses:
    """Held-out losses of one fold, for the L lams done so far.

    nll : (L, T) negative log-likelihood of the judged answers.  cells : (T,) their number.  unseen : () number of
    held-out answers that no fit can predict.  mean_score_nll : (T,) nll of the prediction by mean scores.
    status, sweeps, n_fused, max_abs_theta, seconds : (L,) of the fits; status is a position in `Status`.
    """

    nll: np.ndarray
    cells: np.ndarray
    unseen: np.ndarray
    mean_score_nll: np.ndarray
    status: np.ndarray
    sweeps: np.ndarray
    n_fused: np.ndarray
    max_abs_theta: np.ndarray
    seconds: np.ndarray

    def add(self, nll: np.ndarray, solution: Solution, seconds: float) -> FoldLosses:
        """One more lam."""
        return FoldLosses(
            np.vstack([self.nll, nll]),
            self.cells,
            self.unseen,
            self.mean_score_nll,
            np.append(self.status, _STATUS.index(solution.status)),
            np.append(self.sweeps, len(solution.trace)),
            np.append(self.n_fused, int(solution.fused.sum())),
            np.append(self.max_abs_theta, np.abs(solution.theta).max()),
            np.append(self.seconds, seconds),
        )


def no_losses(fold: Fold) -> FoldLosses:
    """Nothing done yet."""
    none, counts = np.empty(0), np.empty(0, dtype=np.int64)
    return FoldLosses(
        nll=np.empty((0, len(fold.cells))),
        cells=fold.cells,
        unseen=np.array(fold.unseen),
        mean_score_nll=fold.mean_score_nll(),
        status=counts,
        sweeps=counts,
        n_fused=counts,
        max_abs_theta=none,
        seconds=none,
    )


@dataclass(frozen=True, eq=False, repr=False)
class CVResult:
    """What cross-validation found.

    Attributes
    ----------
    losses : (K, L, T) held-out log-loss per answer by fold, lam and domain; NaN where a fold holds out nothing.
    mean_score_losses : (K, T) the same for the prediction that a mean score makes: the model's share right in the
        domain's training answers, for every item alike.
    converged : (K, L) True where the fold's fit converged.
    folds : frame with one row per fold and lam: fold, lam, log_loss, status, sweeps, n_fused, max_abs_theta, seconds.
    path : `Path` of all answers at the same lams.
    notes : sentences about answers and fits that were left out.
    settings : how it was done.

    >>> from mtlirt import HeterogeneityDesign, cv_mtl, simulate
    >>> cv = cv_mtl(simulate(HeterogeneityDesign(h0=0.2, N=30, sizes=(10,), per_size=2), seed=1).responses, lams=[1.0])
    >>> cv.lams, cv.fit.lam == cv.lam_min
    (array([inf,  1.,  0.]), True)
    """

    losses: np.ndarray
    mean_score_losses: np.ndarray
    converged: np.ndarray
    folds: pd.DataFrame
    path: Path
    notes: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def lams(self) -> np.ndarray:
        """(L,) values of lam, from infinity down to 0."""
        return self.path.lams

    @cached_property
    def fold_losses(self) -> np.ndarray:
        """(K, L) mean over domains of `losses`; NaN in every fold where one of them did not converge at that lam."""
        out = average(self.losses, axis=2)
        out[:, ~self.converged.all(axis=0)] = np.nan
        return out

    @cached_property
    def chosen(self) -> int:
        """Position of lam_min among `lams`. Ties go to infinity if it is among them, else to the smallest lam."""
        mean = self.fold_losses.mean(axis=0)
        tied = np.flatnonzero(mean <= np.nanmin(mean) * (1 + _TIE))
        return int(tied[0] if tied[0] == 0 else tied[-1])

    @property
    def lam_min(self) -> float:
        """The lam with the smallest mean loss; infinity says: pool completely, 0: keep the domains separate."""
        return float(self.lams[self.chosen])

    @property
    def lam_1se(self) -> float:
        """The largest lam, so the most pooling, whose mean loss is within one standard error of the smallest."""
        mean, se = mean_and_se(self.fold_losses)
        limit = mean[self.chosen] + se[self.chosen]
        return float(self.lams[np.flatnonzero(mean <= limit)[0]])

    @cached_property
    def fit(self) -> AnyFit:
        """The fit of all answers at lam_min; its settings say how that was chosen."""
        fit = self.path.fits[self.chosen]
        return replace(fit, settings={**fit.settings, "seed": self.settings["seed"], "chosen": verdict(self)})

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per lam, from infinity down to 0.

        Columns lam, lam_ratio (lam / largest fusion threshold), C_lambda (lam in the paper's scaling), mean and se of
        the folds' losses (missing where a fit did not converge), excess (mean less the smallest mean) with
        excess_se (of the paired differences), n_fused (of all answers' fit), n_converged (folds), sweeps (mean over
        folds), seconds (sum over folds).
        """
        mean, se = mean_and_se(self.fold_losses)
        excess, excess_se = mean_and_se(self.fold_losses - self.fold_losses[:, [self.chosen]])
        by_lam = self.folds.groupby("lam", sort=False)
        out = self.path.table[["lam", "lam_ratio", "C_lambda"]].copy()
        return out.assign(
            mean=mean,
            se=se,
            excess=excess,
            excess_se=excess_se,
            n_fused=self.path.table["n_fused"],
            n_converged=self.converged.sum(axis=0),
            sweeps=by_lam["sweeps"].mean().to_numpy(),
            seconds=by_lam["seconds"].sum().to_numpy(),
        )

    @cached_property
    def per_domain(self) -> pd.DataFrame:
        """Which domains gain by pooling: one row per domain, in the order of the answers.

        Columns domain, n_items, sine (at lam_min), separate, chosen, complete (held-out log-loss), gain_over_separate
        and gain_over_complete (how much smaller the loss is at lam_min; negative is worse), each with the standard
        error of the paired differences over folds.
        """
        return domain_table(self)

    def plot(self, type: str = "cv", ax: Axes | None = None, **how: Any) -> Axes:
        """A picture: "cv" (held-out loss along lam), "path" with lam_min marked, or any of the fit at lam_min (see
        `TraitFit.plot`). InputError for any other word or option."""
        from mtlirt.plots.words import draw

        return draw(self, type, ax, how)

    def __repr__(self) -> str:
        return describe(self)


def mean_and_se(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error over the first axis, the folds."""
    return x.mean(axis=0), x.std(axis=0, ddof=1) / math.sqrt(len(x))


def average(x: np.ndarray, axis: int) -> np.ndarray:
    """Mean of the numbers that are there; NaN where there is none."""
    there = ~np.isnan(x)
    n = there.sum(axis=axis)
    return np.where(n > 0, np.where(there, x, 0.0).sum(axis=axis) / np.maximum(n, 1), np.nan)


def result_of(path: Path, folds: list[FoldLosses], settings: dict[str, Any]) -> CVResult:
    """Put the folds together."""
    lams = path.lams
    converged = np.array([[_STATUS[s] is Status.CONVERGED for s in fold.status] for fold in folds])
    with np.errstate(invalid="ignore"):
        losses = np.array([fold.nll / fold.cells for fold in folds])
        mean_score = np.array([fold.mean_score_nll / fold.cells for fold in folds])
    rows = pd.concat(
        [
            pd.DataFrame(
                {
                    "fold": k + 1,
                    "lam": lams,
                    "log_loss": average(losses[k], axis=1),
                    "status": [_STATUS[s].name for s in fold.status],
                    "sweeps": fold.sweeps,
                    "n_fused": fold.n_fused,
                    "max_abs_theta": fold.max_abs_theta,
                    "seconds": fold.seconds,
                }
            )
            for k, fold in enumerate(folds)
        ],
        ignore_index=True,
    )
    return CVResult(
        losses, mean_score, converged, rows, path, _notes(folds, converged, lams, path.fits[0].domains), settings
    )


def _notes(
    folds: list[FoldLosses], converged: np.ndarray, lams: np.ndarray, domains: tuple[str, ...]
) -> tuple[str, ...]:
    notes = []
    unseen = sum(int(fold.unseen) for fold in folds)
    if unseen:
        total = unseen + sum(int(fold.cells.sum()) for fold in folds)
        notes.append(
            f"Held-out answers that no lam can predict, as the model has no other answer in the domain or the item no "
            f"other answer: {unseen:,} of {total:,}. They are left out at every lam."
        )
    judged = np.array([fold.cells > 0 for fold in folds]).sum(axis=0)
    for domain, n in zip(domains, judged, strict=True):
        if n < len(folds):
            notes.append(
                f"Domain {domain!r} is judged in {n} of {len(folds)} folds: the others hold out nothing of it."
            )
    for k, lam in zip(*np.nonzero(~converged), strict=True):
        notes.append(f"Fold {k + 1} did not converge at lam = {lams[lam]:.4g}, which takes no part in the choice.")
    return tuple(notes)


def domain_table(cv: CVResult) -> pd.DataFrame:
    """See `CVResult.per_domain`."""
    fit = cv.fit
    chosen, out = cv.losses[:, cv.chosen], {}
    judged = (~np.isnan(chosen)).sum(axis=0)
    for name, position in (("separate", -1), ("complete", 0)):
        out[name] = average(cv.losses[:, position], axis=0)
        gain = cv.losses[:, position] - chosen
        mean = average(gain, axis=0)
        spread = np.where(judged > 1, np.nansum(np.square(gain - mean), axis=0) / np.maximum(judged - 1, 1), np.nan)
        out[f"gain_over_{name}"], out[f"gain_over_{name}_se"] = mean, np.sqrt(spread / np.maximum(judged, 1))
    het = fit.heterogeneity().set_index("domain").loc[list(fit.domains)]
    frame = pd.DataFrame(
        {
            "domain": fit.domains,
            "n_items": het["n_items"].to_numpy(),
            "sine": het["sine"].to_numpy(),
            "chosen": average(chosen, axis=0),
            **out,
        }
    )
    return frame[
        ["domain", "n_items", "sine", "separate", "chosen", "complete"]
        + [f"gain_over_{end}{part}" for end in ("separate", "complete") for part in ("", "_se")]
    ]


def verdict(cv: CVResult) -> str:
    """How lam_min was chosen and what the ends of the path would cost, in one sentence."""
    s, table = cv.settings, cv.table
    row = table.iloc[cv.chosen]
    ends = [("complete pooling", table.iloc[0]), ("separate domains", table.iloc[-1])]
    costs = [
        f"{name} {end['excess']:.5f} worse (se {end['excess_se']:.5f})"
        for name, end in ends
        if end["lam"] != row["lam"]
    ]
    return (
        f"by {s['folds']}-fold cross-validation over {s['scheme']} (seed {s['seed']}): held-out log-loss "
        f"{row['mean']:.5f} (se {row['se']:.5f}); {', '.join(costs)}"
    )


def describe(cv: CVResult) -> str:
    """The choice in sentences, then the curve."""
    table = cv.table
    largest = table[table["lam"] == cv.lam_1se].iloc[0]
    lines = [
        f"lam_min = {_lam(table.iloc[cv.chosen])}, {verdict(cv)}",
        f"lam_1se = {_lam(largest)}, the most pooling within one standard error",
        "",
        table.drop(columns="seconds").to_string(index=False, float_format="{:.5g}".format),
    ]
    if cv.notes:
        lines += ["", "Notes", *(f"* {note}" for note in cv.notes)]
    return "\n".join(lines)


def _lam(row: pd.Series) -> str:
    if row["lam"] == math.inf:
        return "infinity (complete pooling)"
    if row["lam"] == 0:
        return "0 (separate domains)"
    return f"{row['lam']:.4g} = {row['lam_ratio']:.3g} x lam_max"
