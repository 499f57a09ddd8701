"""The rates study: does the error fall and grow as the theorems say?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from mtlirt._arguments import number
from mtlirt.errors import InputError
from mtlirt.simulation.heterogeneity import HeterogeneityDesign
from mtlirt.simulation.study import GENERAL
from mtlirt.simulation.summary import study_table, varying_fields

_FEWEST_POINTS = 3


def rates_designs(
    *,
    sizes: Sequence[int] = (50, 100, 200, 400),
    h0: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5),
    size: int = 100,
    fixed_h0: Sequence[float] = (0.0, 0.3),
    n_domains: int = 6,
) -> list[HeterogeneityDesign]:
    """Designs for `run_study` whose results `rates_table` reads.

    Parameters
    ----------
    sizes : values of N = J_t, models and items of each domain, each with every `fixed_h0`.
    h0 : values of the heterogeneity at N = J_t = `size`; 0 is the one that the others are compared with.
    n_domains : number of domains.

    Returns
    -------
    List of `HeterogeneityDesign`, none of them twice.

    >>> len(rates_designs())
    14
    """
    wanted = [(n, h) for h in fixed_h0 for n in sizes] + [(size, h) for h in h0]
    return [HeterogeneityDesign(h0=h, N=n, sizes=(n,), per_size=n_domains) for n, h in dict.fromkeys(wanted)]


def rates_table(study: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Slopes of the mean error on log-log scales, beside those of the theory (R-MTL, theorems 1 and 2, proposition 1).

    The theory bounds the error of a domain trait by sqrt(1/N) at lam = 0, by sqrt(1/N) + h at lam = infinity, and by
    the smaller of the two, up to constants, at the best lam; N = J_t here. Two kinds of rows follow from it.

    "N": log error on log N at fixed h0. Theory: -1/2 for separate domains and for R-MTL's domain traits; at h0 > 0 the
    pooled fit, and the bound of the general trait, end on the floor h: 0.

    "h0": log excess on log h0 at fixed N, the excess being sqrt(error**2 - error_0**2) with error_0 that at h0 = 0.
    Theory: 1 for pooled and R-MTL, until the separate fit is as good; so only those h0 > 0 count at which the pooled
    fit's domain traits have a smaller error than the separate fit's.

    Parameters
    ----------
    study : `run_study` of `rates_designs`, with estimators "separate" and "pooled" at least.
    level : of the intervals, which hold the Monte-Carlo error of the means (delta method). Means are weighted by one
        over the variances of their logarithms.

    Returns
    -------
    Frame with columns varied ("N" or "h0"), fixed, estimator, trait ("domains" or "general"), slope, low, high, theory,
    points (designs in the slope), smallest and largest value of what is varied.

    Raises
    ------
    InputError if the study has no three designs to lay a slope through, or lacks an estimator.

    >>> import tempfile
    >>> from mtlirt import rates_designs, run_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     designs = rates_designs(sizes=(20, 30, 40), h0=(0.0,), size=20, n_domains=2)
    ...     study = run_study(designs, out=folder, reps=2, estimators=["separate", "pooled"])
    >>> rates_table(study).groupby("estimator")["theory"].first()["separate"]
    np.float64(-0.5)
    """
    number("level", level, 0.01, 0.9999)
    other = set(varying_fields(study)) - {"N", "h0", "sizes"} if len(study) else set()
    if other:
        raise InputError(f"designs of a rates study differ in N = J_t and h0 alone, not in {', '.join(sorted(other))}")
    if "N" not in study or not {"separate", "pooled"} <= set(study["estimator"]):
        raise InputError("a rates study has HeterogeneityDesigns, and the estimators separate and pooled")
    fields = study.drop_duplicates("design").set_index("design")[["h0", "N"]]
    means = study_table(study, against="pooled").drop(columns=["h0", "N"], errors="ignore").join(fields, on="design")
    means = means[means["mean"].notna() & (means["estimator"] != "mean_score")]
    rows = [
        {**row, **_with_interval(slope, errors, norm.ppf((1 + level) / 2))}
        for row, slope, errors in (*_over_sizes(means), *_over_h0(means))
    ]
    if not rows:
        raise InputError("the study has no three designs that differ in N alone, or in h0 alone")
    return pd.DataFrame(rows)


Slope = Callable[[np.ndarray], float]


def _over_sizes(means: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Slope, pd.DataFrame]]:
    for (h0, estimator, trait), points in means.groupby(["h0", "estimator", "trait"], sort=False):
        points = points.sort_values("N")
        if points["N"].nunique() < _FEWEST_POINTS:
            continue
        log_n = np.log(points["N"].to_numpy())
        floor = points["h0"].iloc[0] > 0 and estimator != "separate" and (estimator == "pooled" or trait == GENERAL)
        about = {
            "varied": "N",
            "fixed": f"h0 = {h0:g}",
            "estimator": estimator,
            "trait": trait,
            "theory": 0.0 if floor else -0.5,
            **_range(points["N"]),
        }
        weights = np.square((points["mean"] / points["se"]).to_numpy())
        yield about, partial(_slope_of_errors, log_n, weights), points


def _over_h0(means: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Slope, pd.DataFrame]]:
    domains = means[means["trait"] != GENERAL].pivot_table(index=["N", "h0"], columns="estimator", values="mean")
    early = domains.index[domains["pooled"] < domains["separate"]]
    for (n, estimator, trait), points in means.groupby(["N", "estimator", "trait"], sort=False):
        points = points.sort_values("h0")
        points = points[[(n, h) in early for h in points["h0"]]]
        if (points["h0"] > 0).sum() < _FEWEST_POINTS or points["h0"].iloc[0] > 0 or estimator == "separate":
            continue
        log_h = np.log(points["h0"].to_numpy()[1:])
        about = {
            "varied": "h0",
            "fixed": f"N = {n}",
            "estimator": estimator,
            "trait": trait,
            "theory": 1.0,
            **_range(points["h0"][1:]),
        }
        yield about, partial(_slope_of_excess, log_h, _weights(points)), points


def _range(values: pd.Series) -> dict[str, Any]:
    return {"points": len(values), "smallest": values.min(), "largest": values.max()}


def _slope_of_errors(x: np.ndarray, weights: np.ndarray, errors: np.ndarray) -> float:
    return _slope(x, np.log(errors), weights)


def _slope_of_excess(x: np.ndarray, weights: np.ndarray, errors: np.ndarray) -> float:
    """Of what the errors have over and above the first of them, in quadrature, where they have anything."""
    with np.errstate(invalid="ignore"):
        return _slope(x, np.log(np.sqrt(errors[1:] ** 2 - errors[0] ** 2)), weights)


def _weights(points: pd.DataFrame) -> np.ndarray:
    """One over the variances of the logarithms of the excesses: small ones are hardly known."""
    mean, noise = points["mean"].to_numpy(), (points["mean"] * points["se"]).to_numpy()
    return np.square(mean[1:] ** 2 - mean[0] ** 2) / (noise[1:] ** 2 + noise[0] ** 2)


def _slope(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Weighted least squares over the finite points, unweighted where the weights are not known."""
    known = np.isfinite(y)
    x, y, w = x[known], y[known], weights[known]
    if not (np.isfinite(w) & (w > 0)).all():
        w = np.ones_like(x)
    if len(x) < 2:
        return np.nan
    centred = x - np.average(x, weights=w)
    return float((w * centred) @ y / ((w * centred) @ centred))


def _with_interval(slope: Slope, points: pd.DataFrame, reach: float) -> dict[str, float]:
    """The slope, and how far the Monte-Carlo errors of the means, each on its own, move it."""
    mean, se = points["mean"].to_numpy(), points["se"].to_numpy()
    estimate = slope(mean)
    moved = [(slope(mean + step) - slope(mean - step)) / 2 for step in np.diag(se)]
    error = float(np.sqrt(np.square(moved).sum()))
    return {"slope": estimate, "low": estimate - reach * error, "high": estimate + reach * error}
