"""`Evidence`: what is known beside a fit, from Python objects or from the files of a results folder."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.readers.read_log import FRAMES, ReadLog
from mtlirt.report.checks import item_checks
from mtlirt.results.tables import rank

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.results.base import TraitFit
    from mtlirt.selection.cv_result import CVResult

REGIMES = ("separate", "chosen", "complete", "mean_score")
GAINS = ("gain_over_separate", "gain_over_separate_se", "gain_over_complete", "gain_over_complete_se")
_NAMES = ("model", "domain", "item", "same_as")  # columns of text
_NEEDED = {
    "cv": ("lam", "mean", "se", "excess", "excess_se", "n_fused", "n_converged"),
    "per_domain": ("domain", *GAINS),
    "sines": ("lam", "domain", "sine"),
    "ranks": ("model", *REGIMES),
    "checks": ("domain", "item", "correlation", "inverted", "same_as"),
}
_KEYS = {"cv": ["lam"], "per_domain": ["domain"], "sines": ["lam", "domain"], "ranks": ["model"]}
_KEYS["checks"] = ["domain", "item"]


@dataclass(frozen=True)
class Evidence:
    """What a report tells beside the fit; None where it is not known.

    cv : from `CVResult.table`, by lam.  per_domain : from `CVResult.per_domain`, the gains by pooling.
    sines : frame lam, domain, sine, of the path of all answers.
    ranks : frame model, separate, chosen, complete, mean_score: each model's rank under each regime.
    checks : `item_checks`.
    reading : the record of an import as `ReadLog.save` writes it: files, dropped, summaries, missing, warnings.
    fitted_with : version of mtlirt that made the fit.
    folder : where it was read.
    """

    cv: pd.DataFrame | None = None
    per_domain: pd.DataFrame | None = None
    sines: pd.DataFrame | None = None
    ranks: pd.DataFrame | None = None
    checks: pd.DataFrame | None = None
    reading: dict[str, Any] | None = None
    fitted_with: str | None = None
    folder: Path | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        fit: TraitFit,
        cv: CVResult | None = None,
        responses: Responses | None = None,
        log: ReadLog | dict[str, Any] | None = None,
    ) -> Evidence:
        """Take from each what the report needs; InputError if `cv` or `responses` are not the fit's."""
        if cv is not None:
            _require_same(fit, cv)
        checks = None if responses is None else item_checks(fit, responses)
        reading = None if log is None else log_record(log)
        if cv is None:
            return cls(checks=checks, reading=reading)
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
        record = folder / "reading.json"
        reading = _record(record) if record.exists() else None
        return cls(**frames, reading=reading, fitted_with=_made_with(folder), folder=folder)

    def require(self, fit: TraitFit) -> None:
        """InputError, naming the file, if a frame is not of this fit: other models, domains or items, or repeated ones.

        Mean scores say whether a cross-validation is of the fit's answers: their ranks are the fit's.
        """
        items = fit.items[["domain", "item"]]
        wanted = {
            "per_domain": pd.DataFrame({"domain": fit.domains}),
            "ranks": pd.DataFrame({"model": fit.models}),
            "checks": items,
        }
        for name, keys in _KEYS.items():
            frame = getattr(self, name)
            if frame is None:
                continue
            if frame.empty:
                raise self._wrong(name, "holds no rows")
            if frame.duplicated(keys).any():
                raise self._wrong(name, f"repeats {_first(frame[frame.duplicated(keys)], keys)}")
            if name in wanted:
                self._require_keys(name, frame[keys], wanted[name])
        if self.sines is not None:
            for _, part in self.sines.groupby("lam"):
                self._require_keys("sines", part[["domain"]], wanted["per_domain"])
        if self.ranks is not None:
            own = rank(fit.data.mean_score.mean(axis=1)).astype("Float64").to_numpy(dtype=float, na_value=np.nan)
            told = pd.to_numeric(self.ranks.set_index("model")["mean_score"].reindex(fit.models)).astype("Float64")
            if not np.array_equal(told.to_numpy(dtype=float, na_value=np.nan), own, equal_nan=True):
                raise self._wrong("ranks", "is not of this fit, its mean scores rank the models otherwise")

    def _require_keys(self, name: str, found: pd.DataFrame, wanted: pd.DataFrame) -> None:
        keys = [str(name) for name in wanted]
        both = wanted.merge(found, how="outer", on=keys, indicator=True)
        for side, what in (("left_only", "lacks"), ("right_only", "holds")):
            alone = both[both["_merge"] == side]
            if len(alone):
                raise self._wrong(name, f"is not of this fit, it {what} {_first(alone, keys)}")

    def _wrong(self, name: str, what: str) -> InputError:
        place = f"{name}.csv" if self.folder is None else self.folder / f"{name}.csv"
        return InputError(f"{place}: {what}; delete it, or fit again")

    @property
    def chosen(self) -> float | None:
        """The lam that the cross-validation chose; None where there is none."""
        if self.cv is None:
            return None
        best = self.cv[self.cv["excess"] == 0].sort_values("excess_se", kind="stable")
        return float(best["lam"].iloc[0]) if len(best) else None

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
        frame = pd.DataFrame({name: text[name] if name in _NAMES else _numbers(text[name]) for name in columns})
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it, or fit again") from error
    for name in columns:
        if name == "lam" and not (frame["lam"] >= 0).all():
            raise InputError(f"{path}: column lam holds something else than numbers from 0; delete it, or fit again")
        if name != "lam" and name not in _NAMES and np.isinf(frame[name].astype(float)).any():
            raise InputError(f"{path}: column {name} holds an infinite number; delete it, or fit again")
    return frame


def _first(rows: pd.DataFrame, keys: list[str]) -> str:
    return ", ".join(f"{key} {rows[key].iloc[0]!r}" for key in keys)


def _require_same(fit: TraitFit, cv: CVResult) -> None:
    """InputError unless `cv` is a cross-validation of the fit's answers by the fit's kind of model."""
    from mtlirt.selection.cv_result import CVResult

    if not isinstance(cv, CVResult):
        raise InputError(f"report: cv must be a CVResult, as cv_mtl gives, not {type(cv).__name__}")
    if cv.fit.data.fingerprint != fit.data.fingerprint:
        raise InputError("report: cv is a cross-validation of other answers than the fit's")
    kinds = [(type(each), each.settings.get("verb", "fit_mtl")) for each in (cv.fit, fit)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"report: cv is a cross-validation of another model ({kinds[0][1]}, the fit's is {kinds[1][1]})"
        )


def _numbers(text: pd.Series) -> list[float] | list[int] | list[bool]:
    if text.isin(["True", "False"]).all():
        return [value == "True" for value in text]
    if text.str.fullmatch("[0-9]{1,15}").all():
        return [int(value) for value in text]
    return [float(value) if value else np.nan for value in text]


def log_record(log: ReadLog | dict[str, Any]) -> dict[str, Any]:
    """The record as `ReadLog.save` writes it; InputError if it is something else."""
    if isinstance(log, ReadLog):
        return log.record()
    if fault := _fault(log):
        raise InputError(f"report: log is no record of an import, {fault}")
    return log


def read_record(path: Path) -> dict[str, Any] | None:
    """The record of an import in a file that may be anybody's; None if it is not there or holds something else."""
    try:
        return _record(path)
    except InputError:
        return None


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it, or import again") from error
    if fault := _fault(record):
        raise InputError(f"{path}: is no record of an import, {fault}; delete it, or import again")
    return record


def _fault(record: object) -> str:
    """What keeps this from being the record of an import, or an empty text."""
    if not isinstance(record, dict):
        return f"it is a {type(record).__name__}"
    for name in (*FRAMES, "warnings"):
        if not isinstance(record.get(name), list):
            return f"it has no list {name}"
    for name in FRAMES:
        for row in record[name]:
            rows = row.get("rows") if isinstance(row, dict) else "none"
            if not (rows is None or (isinstance(rows, int | float) and math.isfinite(rows) and abs(rows) < 1e15)):
                return f"its part {name} has a row that cannot be"
    return ""


def _made_with(folder: Path) -> str | None:
    """Version of mtlirt in the manifest of the fit in a folder."""
    for place in (folder / "fit" / "manifest.json", folder / "manifest.json"):
        try:
            return str(json.loads(place.read_text(encoding="utf-8"))["mtlirt"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
