"""`compare_pooling`: separate domains, the chosen penalty, complete pooling and plain mean scores side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt._arguments import whole
from mtlirt.data import Responses
from mtlirt.errors import InputError
from mtlirt.results.fit import Fit
from mtlirt.results.tables import rank
from mtlirt.selection.cv import cv_mtl
from mtlirt.selection.cv_result import CVResult, average, mean_and_se

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 10
_FITTED = ("separate", "chosen", "complete")


@dataclass(frozen=True, eq=False, repr=False)
class PoolingComparison:
    """Four ways to score the same models: "separate" (lam = 0), "chosen" (lam_min), "complete" (lam = infinity) and
    "mean_score" (the mean of the domains' shares right).

    cv : the cross-validation it rests on.
    top : how many leading models `top_shared` looks at.

    >>> from mtlirt import HeterogeneityDesign, compare_pooling, simulate
    >>> answers = simulate(HeterogeneityDesign(h0=0.2, N=30, sizes=(10,), per_size=2), seed=1).responses
    >>> compare_pooling(answers, lams=[1.0]).ranks.columns.tolist()
    ['separate', 'chosen', 'complete', 'mean_score']
    """

    cv: CVResult
    top: int

    @property
    def fits(self) -> dict[str, Fit]:
        """The three fits by name."""
        fits = (self.cv.path.fits[-1], self.cv.fit, self.cv.path.fits[0])
        return {name: fit for name, fit in zip(_FITTED, fits, strict=True) if isinstance(fit, Fit)}

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Ranks by the general trait under each regime, and by the mean score, 1 for the best: models x regimes."""
        columns = {name: rank(fit.general) for name, fit in self.fits.items()}
        return pd.DataFrame({**columns, "mean_score": rank(self.cv.fit.data.mean_score.mean(axis=1))})

    @cached_property
    def movers(self) -> pd.DataFrame:
        """Models by how far their rank differs from the chosen regime's, farthest first.

        Columns model, the rank under each regime, against (the regime that differs most) and shift (rank there less
        rank under the chosen regime; positive: placed lower there).
        """
        ranks = self.ranks.astype("float64")
        shifts = ranks.drop(columns="chosen").sub(ranks["chosen"], axis=0).fillna(0.0)
        values = shifts.to_numpy()
        farthest = np.abs(values).argmax(axis=1)
        shift = values[np.arange(len(values)), farthest].astype(np.int64)
        out = self.ranks.assign(against=shifts.columns[farthest], shift=shift)
        order = np.argsort(-np.abs(shift), kind="stable")
        return out.iloc[order].rename_axis("model").reset_index()

    @cached_property
    def rank_correlation(self) -> pd.DataFrame:
        """Spearman correlations of the four rankings; missing for a ranking in which all models are equal."""
        return self.ranks.astype("float64").corr(method="spearman")

    @cached_property
    def top_shared(self) -> pd.DataFrame:
        """How many of the `top` leading models two rankings share."""
        leads = (self.ranks <= self.top).fillna(False).astype(np.int64)
        return leads.T @ leads

    @cached_property
    def flat_items(self) -> pd.DataFrame:
        """Items whose slope is 0 under some regime: they say nothing about the trait there.

        Columns domain, item, mean_score, and separate, chosen, complete: True where the slope is 0.
        """
        items = self.cv.fit.items
        flat = pd.DataFrame({name: fit.items["a"] == 0 for name, fit in self.fits.items()})
        out = pd.concat([items[["domain", "item", "mean_score"]], flat], axis=1)
        return out[flat.any(axis=1)].reset_index(drop=True)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per regime.

        Columns regime, lam, log_loss (held out; the mean score predicts each item of a domain by the model's share
        right there), above_chosen with its paired standard error above_chosen_se, rho (Spearman correlation with the
        chosen ranking), top_shared (leading models in common with it), flat_items and flat_share (slopes of 0),
        flat_mean_score and other_mean_score (mean score of those items and of the others).
        """
        cv = self.cv
        losses = {
            "separate": cv.fold_losses[:, -1],
            "chosen": cv.fold_losses[:, cv.chosen],
            "complete": cv.fold_losses[:, 0],
            "mean_score": average(cv.mean_score_losses, axis=1),
        }
        rows = []
        for regime, loss in losses.items():
            above, se = mean_and_se(loss - losses["chosen"])
            fit = self.fits.get(regime)
            rows.append(
                {
                    "regime": regime,
                    "lam": np.nan if fit is None else fit.lam,
                    "log_loss": loss.mean(),
                    "above_chosen": above,
                    "above_chosen_se": se,
                    "rho": self.rank_correlation.loc[regime, "chosen"],
                    "top_shared": self.top_shared.loc[regime, "chosen"],
                    **_flatness(fit),
                }
            )
        return pd.DataFrame(rows)

    @property
    def per_domain(self) -> pd.DataFrame:
        """`CVResult.per_domain`."""
        return self.cv.per_domain

    def plot(self, type: str = "rank_flow", ax: Axes | None = None, **how: Any) -> Axes:
        """A picture: "rank_flow" (how models move between tenths of the rankings), or any of the cross-validation and
        of its fit (see `CVResult.plot`). InputError for any other word or option."""
        from mtlirt.plots.words import draw

        return draw(self, type, ax, how)

    def __repr__(self) -> str:
        table = self.table.rename(columns={"top_shared": f"top {self.top} shared"})
        domains = self.per_domain[["domain", "n_items", "sine", *_FITTED]]
        return "\n".join(
            [
                "Held-out log-loss and ranking by regime",
                _text(table),
                "",
                "Held-out log-loss by domain",
                _text(domains),
                "",
                "Models whose rank differs most from the chosen regime's",
                _text(self.movers.head(_SHOWN)),
            ]
        )


def compare_pooling(
    responses: Responses, *, cv: CVResult | None = None, top: int = 20, **how: Any
) -> PoolingComparison:
    """Compare separate domains, the cross-validated penalty, complete pooling and plain mean scores.

    Which predicts held-out answers best, how far their rankings agree, which models move, and which items lose their
    slope (R-MTL, section 6.2).

    Parameters
    ----------
    responses : as for `cv_mtl`.
    cv : a cross-validation of these responses; run now if not given.
    top : number of leading models to compare.
    how : arguments of `cv_mtl` (folds, seed, n_jobs, resume, ...) if cv is not given.

    Returns
    -------
    PoolingComparison: `table`, `ranks`, `movers`, `rank_correlation`, `top_shared`, `flat_items`, `per_domain`.

    Raises
    ------
    InputError as `cv_mtl`, or if `cv` is of other answers.

    >>> import mtlirt
    >>> comparison = mtlirt.compare_pooling(mtlirt.datasets.demo(), lams=[11.0], folds=3)
    >>> list(comparison.table["regime"])
    ['separate', 'chosen', 'complete', 'mean_score']
    """
    top = whole("top", top, 1)
    if how.get("model", "2pl") != "2pl" or (isinstance(cv, CVResult) and not isinstance(cv.fit, Fit)):
        raise InputError("compare_pooling compares fits of the 2PL, whose slopes may be 0")
    if cv is None:
        cv = cv_mtl(responses, **how)
    elif how:
        raise InputError(f"{next(iter(how))} is an argument of cv_mtl, and cv is given already")
    elif not isinstance(cv, CVResult):
        raise InputError(f"cv must be a CVResult, as cv_mtl gives, not {type(cv).__name__}")
    elif cv.fit.data.fingerprint != responses.fingerprint:
        raise InputError("cv is a cross-validation of other responses")
    return PoolingComparison(cv, top)


def _flatness(fit: Fit | None) -> dict[str, Any]:
    if fit is None:
        return {"flat_items": pd.NA, "flat_share": np.nan, "flat_mean_score": np.nan, "other_mean_score": np.nan}
    flat, mean = fit.items["a"] == 0, fit.items["mean_score"]
    return {
        "flat_items": int(flat.sum()),
        "flat_share": flat.mean(),
        "flat_mean_score": mean[flat].mean(),
        "other_mean_score": mean[~flat].mean(),
    }


def _text(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format="{:.4g}".format)
