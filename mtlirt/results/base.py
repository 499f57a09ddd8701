"""What every fit has: traits, the general trait, how far the domains agree, and how the fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt.results import tables
from mtlirt.solvers.ability import Coupling
from mtlirt.solvers.solution import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mtlirt.data import Responses
    from mtlirt.readers.read_log import ReadLog
    from mtlirt.selection.cv_result import CVResult


@dataclass(frozen=True)
class DataSummary:
    """What a fit keeps of its answers.

    answers : frame models x domains, number of answers.  mean_score : same shape, NaN where there is no answer.
    fingerprint : of the Responses.  notes : what was dropped or recoded when they were read.
    """

    answers: pd.DataFrame
    mean_score: pd.DataFrame
    fingerprint: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class TraitFit:
    """Attributes that all kinds of fit share.

    theta : frame models x domains; each column has mean 0, mean square 1 and values within [-C, C].
    general : Series over models, the general trait: mean 0, mean square 1, no bound.
    items : frame with domain, item, n_answers, mean_score, flag and what belongs to the kind of fit.
    objective, loss, penalty : recomputed cell by cell at these parameters; objective = loss + penalty.
    lam : penalty weight.  lam_max : Series over domains, the weight from which each domain is fused at the pooled fit.
    fused : Series over domains, True where the domain's trait is the general trait exactly.
    general_unique : False for two domains that are not fused: the penalty is then the one sine between their traits,
        and the general trait is their normalised mean by convention.
    general_at : the domain whose trait is the general trait though others are not fused (a vertex), or None.
    status, trace : how the solver ended, and one row per step.
    settings : C, solver and the like.
    log_likelihood : sum over all answers, unweighted.
    trait_information : frame models x domains, Fisher information of the answered items at theta.
    general_information : Series over models, the same over all answered items at the general trait.
    weights, penalty_weights : Series over domains.
    coupling : how a model's traits hang together, for `score`.
    data : DataSummary.
    """

    theta: pd.DataFrame
    general: pd.Series
    items: pd.DataFrame
    loss: float
    penalty: float
    lam: float
    lam_max: pd.Series
    fused: pd.Series
    general_unique: bool
    general_at: str | None
    status: Status
    trace: pd.DataFrame
    settings: dict[str, Any]
    log_likelihood: float
    trait_information: pd.DataFrame
    general_information: pd.Series
    weights: pd.Series
    penalty_weights: pd.Series
    coupling: Coupling
    data: DataSummary

    @property
    def objective(self) -> float:
        """Loss plus penalty."""
        return self.loss + self.penalty

    @property
    def converged(self) -> bool:
        """True if the solver's stopping rule held."""
        return self.status is Status.CONVERGED

    @property
    def lam_ratio(self) -> float:
        """lam as a share of the largest lam_max: 1 and more means complete pooling. NaN for a single domain."""
        top = float(self.lam_max.max())
        return self.lam / top if top > 0 else float("nan")

    @property
    def models(self) -> pd.Index:
        """Names of the models."""
        return self.theta.index

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains."""
        return tuple(self.theta.columns)

    @property
    def n_answers(self) -> int:
        """Number of answers fitted."""
        return int(self.data.answers.to_numpy().sum())

    @property
    def n_free_traits(self) -> int:
        """N - 2 for each distinct trait: mean and norm are fixed."""
        present = self.theta.notna().sum()
        apart = int((present[~self.fused] - 2).sum())
        return apart + (len(self.theta) - 2 if self.fused.any() else 0)

    @property
    def gaps(self) -> pd.DataFrame:
        """Models without any answer in a domain: columns model, domain, kind, reason.

        kind is "borrowed" where the penalty carried a trait over from the other domains, and "missing" where lam = 0
        left none.
        """
        return tables.gaps(self)

    def heterogeneity(self) -> pd.DataFrame:
        """How far each domain departs from the general trait, most odd first (R-MTL, table 1).

        Columns domain, sine (of the angle between the two), rho (Spearman correlation of the two rankings), fused,
        n_items.
        """
        return tables.heterogeneity(self)

    def plot(self, type: str = "heterogeneity", ax: Axes | None = None, **how: Any) -> Axes:
        """A picture of the fit, by the name of its function in `mtlirt.plots`, where its options are described.

        Parameters
        ----------
        type : "heterogeneity" (sine and rank correlation with the general trait by domain), "item_counts",
            "item_accuracy", "correlation" (of domain traits, which the penalty pulls toward 1; `plots.correlation` of
            `data.mean_score` shows those of the answers), "pca" (groups: Series by domain), "profile" (model: one or up
            to six, by default the one with the highest general trait; traits that rest on no answers in the domain, or
            lie on the bound C, have hollow markers), "size" (size: Series by model), "trace" (domain, items; by default
            the 6 steepest items that are not on a bound, taken from the domains by turns, or the one item whose options
            tell most), "information" (domain, items, by), and for the 2PL "item_map".
        ax : Axes to draw on; a new figure if none are given.
        how : options of the picture.

        Returns
        -------
        The Axes.

        Raises
        ------
        InputError for another word, saying where that picture is drawn, or an option that the picture does not have.
        """
        from mtlirt.plots.words import draw

        return draw(self, type, ax, how)

    def save(self, folder: str | Path) -> None:
        """Write the fit into a new folder (arrays.safetensors and manifest.json); `mtlirt.load` reads it back."""
        from mtlirt.results.store import save

        save(self, Path(folder))

    def report(
        self,
        path: str | Path = "report.html",
        *,
        cv: CVResult | None = None,
        responses: Responses | None = None,
        log: ReadLog | None = None,
    ) -> Path:
        """Write one html page about the fit, which needs no network: verdict, leaderboard, domains, models, items.

        Parameters
        ----------
        path : file to write; one that is there is replaced.
        cv : a cross-validation of the same answers by the same kind of model, for the path, the curve and the ranks
            under other regimes.
        responses : the answers, for items that run against the general trait or repeat another.
        log : the record of the import that made the answers.

        Returns
        -------
        The path.

        Raises
        ------
        InputError if `cv` is of other answers or another kind of model, `responses` are other answers, `log` is no
        record of an import, or the file cannot be written.

        >>> import mtlirt, tempfile
        >>> demo = mtlirt.datasets.demo()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = mtlirt.fit_mtl(demo, 11.0).report(f"{folder}/demo.html", responses=demo)
        ...     path.stat().st_size < 1_000_000
        True
        """
        from mtlirt.report.page import write_report

        return write_report(self, path, cv=cv, responses=responses, log=log)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}: {len(self.theta):,} models x {len(self.items):,} items in {len(self.domains)} "
            f"domains, lam = {self.lam:g}, objective {self.objective:.6g}, "
            f"{self.status.name.lower().replace('_', ' ')}"
        )


def as_array(frame: pd.DataFrame | pd.Series) -> np.ndarray:
    """Float64 values of a frame or series."""
    return frame.to_numpy(dtype=np.float64)
