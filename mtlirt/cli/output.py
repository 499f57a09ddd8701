"""Result folders: refused before work begins if they cannot take the results, written completely or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mtlirt.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mtlirt.results.base import TraitFit
    from mtlirt.results.fit import Fit
    from mtlirt.results.nominal import NominalFit

    Content = pd.DataFrame | str | TraitFit | Figure

FIT_FILES = (
    "scores.csv",
    "items.csv",
    "heterogeneity.csv",
    "trace.csv",
    "gaps.csv",
    "cv.csv",
    "per_domain.csv",
    "sines.csv",
    "ranks.csv",
    "checks.csv",
    "reading.json",
    "options.csv",
    "information.csv",
    "distractors.csv",
    "models.csv",
    "summary.txt",
    "report.html",
    "fit",
)
_DOTS_PER_INCH = 150
_TABLES = (".parquet", ".csv", ".csv.gz")
_RESULTS = (*FIT_FILES, "compare.csv", "folds.csv", "path.csv")


def check_folder(folder: Path, force: bool) -> None:
    """Raise InputError if `folder` is no folder, cannot be written, or holds results and `force` is not set."""
    try:
        folder.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: cannot be a folder ({error}); choose another --out") from error
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, not a folder; choose another --out")
    held = [name for name in _RESULTS if (folder / name).exists()]
    if held and not force:
        raise InputError(f"{folder}: already holds results ({', '.join(held)}); choose another --out or add --force")
    parent = folder
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: cannot be written; choose another --out")


def fit_files(fit: Fit | NominalFit) -> dict[str, Any]:
    """All files of a fit by name."""
    from mtlirt.results.nominal import NominalFit

    files: dict[str, Any] = {
        "scores.csv": fit.scores(),
        "items.csv": fit.items,
        "heterogeneity.csv": fit.heterogeneity(),
        "trace.csv": fit.trace,
        "summary.txt": f"{fit.summary()}\n",
        "fit": fit,
    }
    if isinstance(fit, NominalFit):
        files |= {
            "options.csv": fit.options,
            "information.csv": fit.information(),
            "distractors.csv": fit.informative_distractors(),
        }
        if fit.model_parameters is not None:
            files["models.csv"] = fit.model_parameters
    return files if fit.gaps.empty else {**files, "gaps.csv": fit.gaps}


def write(folder: Path, files: Mapping[str, Content], stale: Collection[str] = ()) -> None:
    """Write frames as csv, texts, pictures, and fits as folders: staged first, then moved into place together.

    Files of the same names are replaced, those named in `stale` are removed, all others stay.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".mtlirt-", dir=folder))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        for name, content in files.items():
            _write(stage / name, content)
        for name in {*stale} - {*files}:
            _remove(folder / name)
        for name in files:
            _remove(folder / name)
            (stage / name).rename(folder / name)
        made = False
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if made:
            shutil.rmtree(folder, ignore_errors=True)


def check_table(path: Path, force: bool, kinds: tuple[str, ...] = _TABLES) -> None:
    """Raise InputError if `path` is no table's name, or is there already and `force` is not set."""
    if not path.name.endswith(kinds):
        raise InputError(f"{path}: the name must end in {', '.join(kinds)}")
    try:
        taken = path.is_dir() or (path.exists() and not force)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    if taken:
        raise InputError(f"{path}: is there already; choose another --out or add --force")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")


def _write(path: Path, content: Content) -> None:
    from mtlirt.results.base import TraitFit

    if isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif isinstance(content, TraitFit):
        content.save(path)
    else:
        content.savefig(path, dpi=_DOTS_PER_INCH)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
