"""Box plots of simulation studies: figures 5 and 6 of the R-MTL paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.style import COLOURS, legend_above, need, new_axes, short
from mtlirt.simulation.study import GENERAL
from mtlirt.simulation.summary import check_measure, varying_fields

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ("design", "estimator", "domain")
_GROUP_WIDTH = 0.8  # of the distance between two designs on the horizontal axis


def study_general(study: pd.DataFrame, *, measure: str = "error", ax: Axes | None = None) -> Axes:
    """Box plots of the general trait's error over replications, a box for each design and estimator (figure 5).

    Parameters
    ----------
    study : frame of `run_study`, or its study.parquet.
    measure : "error", "sine_error", "spearman" or "kendall".
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if this is no frame of a study, or the measure is not in it.

    >>> import matplotlib, tempfile
    >>> matplotlib.use("agg")
    >>> from mtlirt import HeterogeneityDesign, run_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     designs = [HeterogeneityDesign(h0=h0, N=20, sizes=(10,)) for h0 in (0.1, 0.5)]
    ...     study = run_study(designs, out=folder, reps=3, estimators=["pooled", "mean_score"])
    >>> study_general(study).get_xlabel()
    'h0'
    """
    check_measure(need("study_general", study, _COLUMNS), measure)
    return _boxes(study[study["domain"] == GENERAL], study, measure, "general trait", ax)


def study_domains(study: pd.DataFrame, *, measure: str = "error", ax: Axes | None = None) -> Axes:
    """Box plots over domains of each domain's error, averaged over replications, a box for each design and estimator
    (figure 6). Arguments, result and errors as for `study_general`.

    >>> import matplotlib, tempfile
    >>> matplotlib.use("agg")
    >>> from mtlirt import HeterogeneityDesign, run_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     designs = [HeterogeneityDesign(h0=0.1, N=20, sizes=(10,))]
    ...     study = run_study(designs, out=folder, reps=2, estimators=["pooled"])
    >>> study_domains(study).get_ylabel()
    'error, domain traits'
    """
    check_measure(need("study_domains", study, _COLUMNS), measure)
    rows = study[study["domain"].notna() & (study["domain"] != GENERAL)]
    means = rows.groupby(["design", "estimator", "domain"], sort=False)[measure].mean().reset_index()
    return _boxes(means, study, measure, "domain traits", ax)


def _boxes(rows: pd.DataFrame, study: pd.DataFrame, measure: str, traits: str, ax: Axes | None) -> Axes:
    if rows.empty:
        raise InputError("the study holds no estimate to draw")
    ax = new_axes(ax)
    fields = varying_fields(study) or ["design"]
    designs = study.drop_duplicates("design").set_index("design", drop=False)[fields]
    estimators = list(rows["estimator"].unique())
    width = _GROUP_WIDTH / len(estimators)
    for k, estimator in enumerate(estimators):
        own = rows[rows["estimator"] == estimator]
        colour = COLOURS[k % len(COLOURS)]
        ax.boxplot(
            [own.loc[own["design"] == number, measure].dropna() for number in designs.index],
            positions=np.arange(len(designs)) + (k - (len(estimators) - 1) / 2) * width,
            widths=0.85 * width,
            label=short(estimator),
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colour, "alpha": 0.6, "edgecolor": colour},
            medianprops={"color": "black"},
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
    ax.set_xticks(np.arange(len(designs)), designs.astype(str).agg(", ".join, axis=1))
    ax.set_xlabel(", ".join(fields))
    ax.set_ylabel(f"{measure.replace('_', ' ')}, {traits}")
    legend_above(ax, 4)
    return ax
