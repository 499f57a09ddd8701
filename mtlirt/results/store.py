"""Saved fits: a folder with `arrays.safetensors` and `manifest.json`. No pickle."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mtlirt._version import __version__
from mtlirt.errors import InputError
from mtlirt.results.fit import DataSummary, Fit
from mtlirt.solvers.ability import Coupling
from mtlirt.solvers.solution import Status

FORMAT = 1
_MANIFEST, _ARRAYS = "manifest.json", "arrays.safetensors"
_SQUARE = ("theta", "information")
_BY_DOMAIN = ("lam_max", "fused", "weights", "penalty_weights")


def save(fit: Fit, folder: Path) -> None:
    """Write `fit` into `folder`, which must not exist yet or be empty; it appears complete or not at all."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        save_file(_arrays(fit), stage / _ARRAYS)
        text = json.dumps(_manifest(fit), ensure_ascii=False, indent=1, allow_nan=False)
        (stage / _MANIFEST).write_text(text, encoding="utf-8")
        if folder.exists():
            folder.rmdir()
        stage.chmod(0o777 & ~_umask())
        (stage / _ARRAYS).chmod(0o666 & ~_umask())
        stage.rename(folder)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be written ({error})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def load(folder: str | Path) -> Fit:
    """Read a fit that `Fit.save` or the command line (its folder `fit`) wrote.

    Raises
    ------
    InputError if the folder is missing or damaged, or was written by a newer mtlirt.
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        version = manifest["format"]
    except FileNotFoundError as error:
        raise InputError(f"{folder}: not a saved fit, there is no {_MANIFEST} in it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / _MANIFEST}: cannot be read ({error})") from error
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(f"{folder}: saved in format {version}, this mtlirt reads up to {FORMAT}; upgrade mtlirt")
    try:
        return _fit(manifest, load_file(folder / _ARRAYS))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: damaged, {_ARRAYS} and {_MANIFEST} do not make a fit ({error})") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _arrays(fit: Fit) -> dict[str, np.ndarray]:
    items = fit.items
    arrays = {name: getattr(fit, name).to_numpy() for name in (*_SQUARE, *_BY_DOMAIN)}
    arrays |= {f"coupling.{name}": x for name, x in vars(fit.coupling).items()}
    arrays |= {"general": fit.general.to_numpy(), "general_information": fit.general_information.to_numpy()}
    arrays |= {"answers": fit.data.answers.to_numpy(), "mean_score": fit.data.mean_score.to_numpy()}
    arrays |= {f"items.{c}": items[c].to_numpy() for c in ("a", "d", "b", "at_bound", "n_answers", "mean_score")}
    arrays |= {f"trace.{c}": fit.trace[c].to_numpy() for c in fit.trace}
    return {name: np.ascontiguousarray(x) for name, x in arrays.items()}


def _manifest(fit: Fit) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "mtlirt": __version__,
        "models": list(fit.models),
        "domains": list(fit.domains),
        "item_domain": list(fit.items["domain"]),
        "item": list(fit.items["item"]),
        "item_flag": list(fit.items["flag"]),
        "loss": fit.loss,
        "penalty": fit.penalty,
        "lam": str(fit.lam),
        "general_unique": fit.general_unique,
        "general_at": fit.general_at,
        "status": fit.status.name,
        "settings": fit.settings,
        "log_likelihood": fit.log_likelihood,
        "trace_columns": list(fit.trace.columns),
        "fingerprint": fit.data.fingerprint,
        "notes": list(fit.data.notes),
    }


def _fit(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fit:
    models = pd.Index(manifest["models"], name="model", dtype=str)
    domains = pd.Index(manifest["domains"], name="domain", dtype=str)

    def frame(name: str) -> pd.DataFrame:
        return pd.DataFrame(arrays[name], index=models, columns=domains)

    def by_domain(name: str) -> pd.Series:
        return pd.Series(arrays[name], index=domains, name=name)

    items = pd.DataFrame({"domain": manifest["item_domain"], "item": manifest["item"]}, dtype=str)
    for column in ("a", "d", "b", "at_bound", "n_answers", "mean_score"):
        items[column] = arrays[f"items.{column}"]
    items["flag"] = pd.Series(manifest["item_flag"], dtype=str)
    return Fit(
        theta=frame("theta"),
        information=frame("information"),
        lam_max=by_domain("lam_max"),
        fused=by_domain("fused"),
        weights=by_domain("weights"),
        penalty_weights=by_domain("penalty_weights"),
        general=pd.Series(arrays["general"], index=models, name="general"),
        general_information=pd.Series(arrays["general_information"], index=models, name="general_information"),
        items=items,
        loss=manifest["loss"],
        penalty=manifest["penalty"],
        lam=float(manifest["lam"]),
        general_unique=manifest["general_unique"],
        general_at=manifest["general_at"],
        status=Status[manifest["status"]],
        trace=pd.DataFrame({c: arrays[f"trace.{c}"] for c in manifest["trace_columns"]}),
        settings=manifest["settings"],
        log_likelihood=manifest["log_likelihood"],
        coupling=Coupling(**{f.name: arrays[f"coupling.{f.name}"] for f in fields(Coupling)}),
        data=DataSummary(frame("answers"), frame("mean_score"), manifest["fingerprint"], tuple(manifest["notes"])),
    )
