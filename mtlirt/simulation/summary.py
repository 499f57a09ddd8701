"""What a study says: means with Monte-Carlo standard errors, and paired differences between estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from mtlirt._arguments import number
from mtlirt.errors import InputError
from mtlirt.simulation.study import GENERAL, MEASURED, MEASURES, REFERENCE


def study_table(
    study: pd.DataFrame, *, measure: str = "error", against: str = "rmtl", level: float = 0.95
) -> pd.DataFrame:
    """Summarise a study (`run_study`, or its study.parquet) over replications.

    Parameters
    ----------
    study : frame of `run_study`.
    measure : "error", "sine_error", "spearman" or "kendall".
    against : the estimator that the others are compared with.
    level : of the confidence intervals of the differences (Student's t over replications).

    Returns
    -------
    Frame, one row per design, estimator and trait. Columns: the fields of the design that vary, estimator, trait
    ("general", or "domains": the mean over domains within each replication), mean and its Monte-Carlo standard error
    se, difference (mean of the paired differences to `against`; negative is a smaller measure) with low and high,
    replications (that succeeded), failed, seconds (mean).

    Raises
    ------
    InputError if the measure or the estimator is not in the study.

    >>> import tempfile
    >>> from mtlirt import HeterogeneityDesign, run_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     designs = [HeterogeneityDesign(h0=0.1, N=20, sizes=(10,))]
    ...     study = run_study(designs, out=folder, reps=2, estimators=["pooled", "mean_score"])
    >>> study_table(study, against="pooled")[["estimator", "trait", "replications"]].head(2)
        estimator    trait  replications
    0      pooled  general             2
    1  mean_score  general             2
    """
    check_measure(study, measure)
    number("level", level, 0.01, 0.9999)
    if against not in set(study["estimator"]):
        raise InputError(f"the study has no estimator {against!r}; it has {', '.join(study['estimator'].unique())}")
    varying = varying_fields(study)
    rows = []
    for design, part in study.groupby("design", sort=False):
        labels = {c: part[c].iloc[0] for c in varying}
        done = part[part["domain"].notna()]
        failed = part[part["domain"].isna()].groupby("estimator").size()
        for trait, some in (("general", done["domain"] == GENERAL), ("domains", done["domain"] != GENERAL)):
            wide = done[some].pivot_table(index="replication", columns="estimator", values=measure, aggfunc="mean")
            seconds = done[some].groupby("estimator")["seconds"].mean()
            for estimator in part["estimator"].unique():
                values = wide.get(estimator, pd.Series(dtype=float)).dropna()
                paired = (values - wide[against]).dropna() if against in wide else pd.Series(dtype=float)
                mean, se = _mean_and_se(values)
                difference, difference_se = _mean_and_se(paired)
                reach = student.ppf((1 + level) / 2, max(len(paired) - 1, 1)) * difference_se
                rows.append(
                    {
                        "design": design,
                        **labels,
                        "estimator": estimator,
                        "trait": trait,
                        "mean": mean,
                        "se": se,
                        "difference": difference,
                        "low": difference - reach,
                        "high": difference + reach,
                        "replications": len(values),
                        "failed": int(failed.get(estimator, 0)),
                        "seconds": seconds.get(estimator, np.nan),
                    }
                )
    return pd.DataFrame(rows)


def reference_cost(study: pd.DataFrame) -> str | None:
    """What the reference solver, timed on a few replications, would take for all of them; None if it was not run."""
    seconds = study.dropna(subset="seconds").drop_duplicates(["design", "replication", "estimator"])
    wide = seconds.pivot_table(index=["design", "replication"], columns="estimator", values="seconds")
    if not {REFERENCE, "rmtl"} <= set(wide):
        return None
    both, n = wide[[REFERENCE, "rmtl"]].dropna(), len(wide)
    reference, own = both.median()
    return (
        f"{REFERENCE}: {reference:.1f} s a replication, rmtl {own:.2f} s (medians of the same {len(both)}): "
        f"{reference / own:.0f} times. All {n} replications would take {REFERENCE} {reference * n / 3600:.1f} hours of "
        "one process."
    )


def check_measure(study: pd.DataFrame, measure: str) -> None:
    """Raise InputError unless the study has this measure of error."""
    if measure not in study or measure not in MEASURES:
        raise InputError(f"the study has no measure {measure!r}; there are {', '.join(MEASURES)}")


def varying_fields(study: pd.DataFrame) -> list[str]:
    """The fields of the designs that are not the same in all of them."""
    fields = [c for c in study.columns if c not in ("design", "replication", *MEASURED)]
    return [c for c in fields if (study[c] != study[c].iloc[0]).any()]


def _mean_and_se(values: pd.Series) -> tuple[float, float]:
    n = len(values)
    return (
        float(values.mean()) if n else np.nan,
        float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan,
    )
