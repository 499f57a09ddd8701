"""Finished work on disk, so that interrupted work goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from mtlirt.errors import InputError

_MANIFEST = "work.json"


class WorkStore:
    """A folder of named arrays and frames that belong to one piece of work.

    `key` says what the work is: the answers' fingerprint, settings, version. A folder that holds another key is
    refused. Every file is written beside its place and moved there, so it is complete or not there at all.
    """

    def __init__(self, folder: str | Path, key: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps(key))
        try:
            self.folder = Path(folder)
            manifest = self.folder / _MANIFEST
            fresh = not manifest.exists()
        except (TypeError, ValueError, OSError) as error:
            raise InputError(f"{folder!r} cannot be a folder ({error})") from error
        if fresh:
            self._claim(wanted)
            return
        try:
            held = json.loads(manifest.read_text(encoding="utf-8"))
            differing = [name for name in wanted if held.get(name) != wanted[name]]
        except (OSError, ValueError, AttributeError) as error:
            raise InputError(f"{manifest}: cannot be read ({error}); delete the folder to start afresh") from error
        if differing:
            what = ", ".join(f"{name} {held.get(name)!r} there, {wanted[name]!r} here" for name in differing)
            raise InputError(f"{self.folder}: holds unfinished work of another kind ({what}); choose another folder")

    def _claim(self, key: Mapping[str, Any]) -> None:
        if self.folder.exists() and (
            not self.folder.is_dir() or any(not p.name.startswith(".") for p in self.folder.iterdir())
        ):
            raise InputError(f"{self.folder}: is neither empty nor a folder of unfinished work; choose another folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(_MANIFEST, json.dumps(key, indent=1).encode())
        except (OSError, ValueError) as error:
            raise InputError(f"{str(self.folder)!r} cannot be written ({error})") from error

    def get(self, name: str, keys: Collection[str]) -> dict[str, np.ndarray] | None:
        """The arrays kept under `name`, or None; InputError unless they have these keys."""
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            return None
        try:
            arrays = load_file(path)
        except (OSError, SafetensorError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error}); delete it to do its work again") from error
        if {*arrays} != {*keys}:
            raise InputError(f"{path}: holds something else than {', '.join(keys)}; delete it to do its work again")
        return arrays

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep `arrays` under `name`, in place of what was there."""
        content = save({key: np.asarray(x, order="C") for key, x in arrays.items()})
        try:
            self._write(f"{name}.safetensors", content)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from error

    def get_frame(self, name: str) -> pd.DataFrame | None:
        """The frame kept under `name`, or None."""
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            return None
        try:
            return pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error}); delete it to do its work again") from error

    def put_frame(self, name: str, frame: pd.DataFrame) -> None:
        """Keep `frame` under `name`, in place of what was there."""
        write_frame(self.folder / f"{name}.parquet", frame)

    def _write(self, name: str, content: bytes) -> None:
        with replacing(self.folder / name) as stage:
            stage.write_bytes(content)


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write `frame` as parquet or, by the name of `path`, as csv; the file is complete or not there."""
    try:
        with replacing(path) as stage:
            if path.suffix == ".parquet":
                frame.to_parquet(stage, compression="zstd", index=False)
            else:
                frame.to_csv(stage, index=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a place beside `path` to write to; what is written there takes the place of `path` when the block ends."""
    stage = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield stage
        with stage.open("rb+") as file:
            os.fsync(file.fileno())
        stage.replace(path)
    finally:
        stage.unlink(missing_ok=True)
