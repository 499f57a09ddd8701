"""`Evidence`: what is known beside a fit, from Python objects or from the files of a results folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.report.checks import item_checks
from mtlirt.results.tables import rank

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.readers.read_log import ReadLog
    from mtlirt.results.base import TraitFit
    from mtlirt.selection.cv_result import CVResult

REGIMES = ("separate", "chosen", "complete", "mean_score")
GAINS = ("gain_over_separate", "gain_over_separate_se", "gain_over_complete", "gain_over_complete_se")
_NAMES = ("model", "domain", "item", "same_as")  # columns of text
_NEEDED = {
    "cv": ("lam", "mean", "se", "excess", "excess_se", "n_fused"),
    "per_domain": ("domain", *GAINS),
    "sines": ("lam", "domain", "sine"),
    "ranks": ("model", *REGIMES),
    "checks": ("domain", "item", "correlation", "inverted", "same_as"),
}


@dataclass(frozen=True)
class Evidence:
    """What a report tells beside the fit; None where it is not known.

    cv : from `CVResult.table`, by lam.  per_domain : from `CVResult.per_domain`, the gains by pooling.
    sines : frame lam, domain, sine, of the path of all answers.
    ranks : frame model, separate, chosen, complete, mean_score: each model's rank under each regime.
    checks : `item_checks`.
    reading : the record of an import as `ReadLog.save` writes it: files, dropped, summaries, missing, warnings.
    """

    cv: pd.DataFrame | None = None
    per_domain: pd.DataFrame | None = None
    sines: pd.DataFrame | None = None
    ranks: pd.DataFrame | None = None
    checks: pd.DataFrame | None = None
    reading: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        fit: TraitFit,
        cv: CVResult | None = None,
        responses: Responses | None = None,
        log: ReadLog | dict[str, Any] | None = None,
    ) -> Evidence:
        """Take from each what the report needs; InputError if `cv` or `responses` are not the fit's."""
        checks = None if responses is None else item_checks(fit, responses)
        reading = log if log is None or isinstance(log, dict) else log_record(log)
        if cv is None:
            return cls(checks=checks, reading=reading)
        if cv.fit.data.fingerprint != fit.data.fingerprint:
            raise InputError("report: cv is a cross-validation of other answers than the fit's")
        sines = cv.path.sines.melt(var_name="domain", value_name="sine", ignore_index=False).reset_index()
        fits = {"separate": cv.path.fits[-1], "chosen": cv.fit, "complete": cv.path.fits[0]}
        ranks = pd.DataFrame({name: rank(each.general) for name, each in fits.items()})
        ranks["mean_score"] = rank(cv.fit.data.mean_score.mean(axis=1))
        return cls(
            cv=cv.table,
            per_domain=cv.per_domain,
            sines=sines,
            ranks=ranks.rename_axis("model").reset_index(),
            checks=checks,
            reading=reading,
        )

    @classmethod
    def read(cls, folder: Path) -> Evidence:
        """From cv.csv, per_domain.csv, sines.csv, ranks.csv, checks.csv and reading.json, those that are there."""
        frames = {name: _frame(folder / f"{name}.csv", columns) for name, columns in _NEEDED.items()}
        return cls(**frames, reading=read_record(folder / "reading.json"))

    def files(self) -> dict[str, pd.DataFrame | str]:
        """The same as files by name, from which `read` gets them back."""
        frames = {f"{name}.csv": getattr(self, name) for name in _NEEDED}
        out: dict[str, pd.DataFrame | str] = {name: frame for name, frame in frames.items() if frame is not None}
        if self.reading is not None:
            out["reading.json"] = json.dumps(self.reading, indent=1, ensure_ascii=False)
        return out


def _frame(path: Path, columns: tuple[str, ...]) -> pd.DataFrame | None:
    """These columns of a csv file with all digits; None if it is not there, InputError if it is not what it should be.

    A model may be named "NA" or "1.0", so nothing is guessed.
    """
    if not path.exists():
        return None
    try:
        text = pd.read_csv(path, dtype=str, keep_default_na=False)
        lost = [name for name in columns if name not in text]
        if lost:
            raise InputError(f"{path}: has no column {', '.join(lost)}; delete it, or fit again")
        return pd.DataFrame({name: text[name] if name in _NAMES else _numbers(text[name]) for name in columns})
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it, or fit again") from error


def _numbers(text: pd.Series) -> list[float] | list[int] | list[bool]:
    if text.isin(["True", "False"]).all():
        return [value == "True" for value in text]
    if text.str.fullmatch("[0-9]+").all():
        return [int(value) for value in text]
    return [float(value) if value else np.nan for value in text]


def log_record(log: ReadLog) -> dict[str, Any]:
    """The record as `ReadLog.save` writes it."""
    frames = {
        name: json.loads(getattr(log, name).to_json(orient="records"))
        for name in ("files", "dropped", "summaries", "missing")
    }
    return {**frames, "warnings": list(log.warnings)}


def read_record(path: Path) -> dict[str, Any] | None:
    """The record of an import in a file; None if the file is not there or holds something else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    names = ("files", "dropped", "summaries", "missing", "warnings")
    whole = isinstance(record, dict) and all(isinstance(record.get(name), list) for name in names)
    return record if whole else None
