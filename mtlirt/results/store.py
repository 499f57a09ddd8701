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
from mtlirt.results.base import DataSummary, TraitFit
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.solvers.ability import Coupling
from mtlirt.solvers.solution import Status

FORMAT = 2
_MANIFEST, _ARRAYS = "manifest.json", "arrays.safetensors"
_SQUARE = ("theta", "trait_information")
_PLAIN = ("loss", "penalty", "general_unique", "general_at", "settings", "log_likelihood")
_BY_DOMAIN = ("lam_max", "fused", "weights", "penalty_weights")


def save(fit: TraitFit, folder: Path) -> None:
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


def load(folder: str | Path) -> Fit | NominalFit:
    """Read a fit that `Fit.save` or the command line (its folder `fit`) wrote.

    Raises
    ------
    InputError if the folder is missing or damaged, or was saved in another format.

    >>> import tempfile
    >>> from mtlirt import HeterogeneityDesign, fit_mtl, simulate
    >>> fit = fit_mtl(simulate(HeterogeneityDesign(h0=0.2, N=30, sizes=(10,), per_size=2), seed=1).responses, lam=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(f"{folder}/fit")
    ...     load(f"{folder}/fit").theta.equals(fit.theta)
    True
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        version = manifest["format"]
    except FileNotFoundError as error:
        raise InputError(f"{folder}: not a saved fit, there is no {_MANIFEST} in it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / _MANIFEST}: cannot be read ({error})") from error
    if version != FORMAT:
        raise InputError(
            f"{folder}: saved in format {version}, this mtlirt reads {FORMAT}: upgrade mtlirt, or fit again"
        )
    try:
        return _read(manifest, load_file(folder / _ARRAYS))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: damaged, {_ARRAYS} and {_MANIFEST} do not make a fit ({error})") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _arrays(fit: TraitFit) -> dict[str, np.ndarray]:
    arrays = {name: getattr(fit, name).to_numpy() for name in (*_SQUARE, *_BY_DOMAIN)}
    arrays |= {"general": fit.general.to_numpy(), "general_information": fit.general_information.to_numpy()}
    arrays |= {"answers": fit.data.answers.to_numpy(), "mean_score": fit.data.mean_score.to_numpy()}
    arrays |= {f"coupling.{name}": x for name, x in vars(fit.coupling).items()}
    for name, frame in _frames(fit).items():
        arrays |= {f"{name}.{c}": frame[c].to_numpy() for c in frame if _is_number(frame[c])}
    return {name: np.ascontiguousarray(x) for name, x in arrays.items()}


def _manifest(fit: TraitFit) -> dict[str, Any]:
    frames = {
        name: {c: None if _is_number(frame[c]) else [str(x) for x in frame[c]] for c in frame}
        for name, frame in _frames(fit).items()
    }
    return {
        "format": FORMAT,
        "mtlirt": __version__,
        "kind": type(fit).__name__,
        "models": list(fit.models),
        "domains": list(fit.domains),
        "frames": frames,
        "loss": fit.loss,
        "penalty": fit.penalty,
        "lam": str(fit.lam),
        "general_unique": fit.general_unique,
        "general_at": fit.general_at,
        "status": fit.status.name,
        "settings": fit.settings,
        "log_likelihood": fit.log_likelihood,
        "fingerprint": fit.data.fingerprint,
        "notes": list(fit.data.notes),
        **({"gate": fit.gate} if isinstance(fit, NominalFit) else {}),
    }


def _frames(fit: TraitFit) -> dict[str, pd.DataFrame]:
    """Frames whose columns of numbers go to the arrays, and of text to the manifest."""
    frames = {"items": fit.items, "trace": fit.trace}
    if isinstance(fit, NominalFit):
        frames["options"] = fit.options
        if fit.model_parameters is not None:
            frames["model_parameters"] = fit.model_parameters
    return frames


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _read(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fit | NominalFit:
    models = pd.Index(manifest["models"], name="model", dtype=str)
    domains = pd.Index(manifest["domains"], name="domain", dtype=str)

    def frame(name: str) -> pd.DataFrame:
        return pd.DataFrame(arrays[name], index=models, columns=domains)

    def by_domain(name: str) -> pd.Series:
        return pd.Series(arrays[name], index=domains, name=name)

    frames = {
        name: pd.DataFrame(
            {c: arrays[f"{name}.{c}"] if text is None else pd.Series(text, dtype=str) for c, text in columns.items()}
        )
        for name, columns in manifest["frames"].items()
    }
    common: dict[str, Any] = {
        "theta": frame("theta"),
        "trait_information": frame("trait_information"),
        **{name: by_domain(name) for name in _BY_DOMAIN},
        "general": pd.Series(arrays["general"], index=models, name="general"),
        "general_information": pd.Series(arrays["general_information"], index=models, name="general_information"),
        "items": frames["items"],
        "trace": frames["trace"],
        "lam": float(manifest["lam"]),
        "status": Status[manifest["status"]],
        **{name: manifest[name] for name in _PLAIN},
        "coupling": Coupling(**{f.name: arrays[f"coupling.{f.name}"] for f in fields(Coupling)}),
        "data": DataSummary(frame("answers"), frame("mean_score"), manifest["fingerprint"], tuple(manifest["notes"])),
    }
    if manifest["kind"] == NominalFit.__name__:
        return NominalFit(
            **common,
            options=frames["options"],
            model_parameters=frames.get("model_parameters"),
            gate=manifest["gate"],
        )
    return Fit(**common)
