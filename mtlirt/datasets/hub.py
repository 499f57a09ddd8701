"""Details repositories on the Hugging Face Hub: which files of a model are wanted, and their local copies."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from mtlirt._progress import count
from mtlirt.data.store import replacing
from mtlirt.datasets.catalogue import Details
from mtlirt.datasets.download import ATTEMPTS, BUSY, PassingError, asked_wait, file_hash, pause, waiting_time
from mtlirt.datasets.tidy import broken
from mtlirt.errors import InputError

T = TypeVar("T")
_LISTING = "listing.json"
_SHORT = {
    "mmlu": "hendrycksTest-*",
    "arc": "arc:challenge",
    "truthfulqa": "truthfulqa:mc",
}
# classes of requests, httpx or httpx2, whichever this version of huggingface_hub is built on
_NO_NETWORK = {"ConnectionError", "ConnectError", "NetworkError", "TimeoutException", "Timeout", "ProxyError"}
_BROKEN_OFF = {"RemoteProtocolError", "ChunkedEncodingError"}


def obtain_details(details: Details, models: Sequence[str], tasks: Sequence[str] | None, folder: Path) -> list[Path]:
    """Local copies, below `folder` in folders named as the repositories, of the files of these models and tasks."""
    paths = []
    with count(f"{details.name}: models", len(models)) as done:
        for model in models:
            paths += _obtain_model(details, _key(model), tasks, folder)
            if done:
                done(1)
    return paths


def local_details(details: Details, models: Sequence[str], tasks: Sequence[str] | None, folder: Path) -> list[Path]:
    """The same from folders already at hand."""
    paths = []
    for model in models:
        names = [name.format(key=_key(model)) for name in details.folders]
        home = next((folder / n for n in names if (folder / n).is_dir()), None)
        if home is None:
            raise InputError(f"{folder}: there is no folder {' or '.join(names)} of the model {model!r}")
        files = [p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file()]
        paths += [home / name for name in wanted(details, files, tasks, str(home))]
    return paths


def wanted(details: Details, files: Collection[str], tasks: Sequence[str] | None, where: str) -> list[str]:
    """Those of the `files` that hold answers to these tasks, in order of their names.

    InputError for a task that none of them is of.
    """
    found = [(name, m["task"], m["stamp"]) for name in sorted(files) if (m := _match(details, name))]
    if not found:
        raise InputError(f"{where}: holds no file of answers as {details.name} has them")
    for pattern in tasks or ():
        if not any(_asked(task, pattern) for _, task, _ in found):
            there = ", ".join(sorted({_plain(task) for _, task, _ in found})[:10])
            raise InputError(f"{where}: there is no task {pattern!r}; there are {there}, ...")
    patterns = details.tasks if tasks is None else tasks
    if patterns is not None:
        found = [f for f in found if any(_asked(f[1], pattern) for pattern in patterns)]
    if details.newest:
        found = [*{f[1]: f for f in sorted(found, key=lambda f: f[2])}.values()]
    names = {name for name, _, _ in found}
    told = [(PurePosixPath(name), details.beside.format(stamp=stamp)) for name, _, stamp in found]
    names |= {*files} & {place for path, results in told for place in (str(path.with_name(results)), results)}
    return sorted(names)


def _key(model: str) -> str:
    return model.replace("/", "__")


def _match(details: Details, name: str) -> re.Match[str] | None:
    return re.fullmatch(details.file, PurePosixPath(name).name)


def _plain(task: str) -> str:
    """The middle of "harness|arc:challenge|25"; a task without bars as it is."""
    parts = task.split("|")
    return parts[1] if len(parts) == 3 else task


def _asked(task: str, pattern: str) -> bool:
    names = (task, _plain(task), f"leaderboard_{task}")
    return any(fnmatchcase(name, p) for name in names for p in (pattern, _SHORT.get(pattern, pattern)))


def _obtain_model(details: Details, key: str, tasks: Sequence[str] | None, folder: Path) -> list[Path]:
    repository, home = details.repository.format(key=key), folder / details.folders[0].format(key=key)
    hub = _Hub(details.name, repository)
    try:
        commit, files = hub.listing()
    except _UnreachedError as error:
        files = _kept_listing(home, error)
        names = wanted(details, files, tasks, repository)
        if absent := [name for name in names if not (home / name).exists()]:
            raise InputError(
                f"{error}; of {repository} {len(absent)} of {len(names)} files are not in the cache"
            ) from error
    else:
        names = wanted(details, files, tasks, repository)
        home.mkdir(parents=True, exist_ok=True)
        for name in names:
            hub.download(name, commit, home, files[name])
        with replacing(home / _LISTING) as stage:
            stage.write_text(json.dumps({"commit": commit, "files": files}), encoding="utf-8")
    return [_checked(home / name) for name in names]


def _kept_listing(home: Path, error: InputError) -> dict[str, str | None]:
    """What the repository held when it was last asked; `error` if it never was."""
    try:
        return dict(json.loads((home / _LISTING).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise error from None


def _checked(path: Path) -> Path:
    """`path`, unless the file ends too early: then it is removed, and InputError says so."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        try:
            pq.read_metadata(path)
        except Exception as error:
            raise broken(path, f"is not a whole parquet file ({error})") from error
    elif path.suffix in (".json", ".jsonl"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64))
            if not file.read().rstrip().endswith((b"}", b"]")):
                raise broken(path, "ends within an answer")
    return path


class _UnreachedError(InputError):
    """The Hub does not answer."""


class _Hub:
    """Calls about one repository, with errors in this package's words."""

    def __init__(self, name: str, repository: str) -> None:
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise InputError(f"{name} comes from the Hugging Face Hub: pip install 'mtlirt[hub]'") from error
        self.name, self.repository = name, repository
        self.endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        self.api = HfApi(endpoint=self.endpoint)

    def listing(self) -> tuple[str, dict[str, str | None]]:
        """The newest commit, and the files it holds with their sha256, which the Hub names for large ones."""
        from huggingface_hub.hf_api import RepoFile

        commit = str(self._patiently(lambda: self.api.dataset_info(self.repository).sha))
        entries = self._patiently(
            lambda: [*self.api.list_repo_tree(self.repository, recursive=True, revision=commit, repo_type="dataset")]
        )
        files = [entry for entry in entries if isinstance(entry, RepoFile)]
        return commit, {f.path: f.lfs.sha256 if f.lfs else None for f in sorted(files, key=lambda f: f.path)}

    def download(self, name: str, commit: str, home: Path, sha256: str | None) -> None:
        """Bring a file to `home`, going on where an earlier download broke off; one that is there is left alone."""
        there = (home / name).exists()
        with _quiet():
            self._patiently(
                lambda: self.api.hf_hub_download(
                    self.repository, name, repo_type="dataset", revision=commit, local_dir=home
                ),
                name,
            )
        if not there and sha256 is not None and file_hash(home / name) != sha256:
            raise broken(home / name, "does not have the sha256 that the Hub names")

    def _patiently(self, call: Callable[[], T], file: str = "") -> T:
        tries = 0
        while True:
            try:
                return call()
            except Exception as error:
                tries += 1
                busy = self._explain(error, file)
                if tries >= ATTEMPTS:
                    raise InputError(f"{busy} ({tries} attempts); try again later") from error
                pause(waiting_time(busy, tries))

    def _explain(self, error: Exception, file: str) -> PassingError:
        """What to wait for; InputError where waiting does not help."""
        from huggingface_hub import errors

        cause: BaseException = error
        while isinstance(cause, errors.LocalEntryNotFoundError) and cause.__cause__ is not None:
            cause = cause.__cause__
        page = f"{self.endpoint}/datasets/{self.repository}"
        response: Any = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        if status in BUSY:
            return PassingError(f"{page}: the server is busy (HTTP {status})", asked_wait(response.headers))
        kinds = {c.__name__ for c in type(cause).__mro__}
        if kinds & _BROKEN_OFF:
            return PassingError(f"{page}: the connection broke off")
        if kinds & _NO_NETWORK:
            raise _UnreachedError(
                f"no network: {self.endpoint} cannot be reached; put the files at "
                f"$MTLIRT_DATA/{self.name}/{self.repository.split('/')[1]}/"
            ) from error
        if isinstance(cause, errors.GatedRepoError):
            what = "is gated; accept the terms there and set HF_TOKEN to a token of yours"
        elif isinstance(cause, errors.RepositoryNotFoundError):
            what = "there is no such repository, or it is private; is the model's name right, and HF_TOKEN set?"
        elif isinstance(cause, errors.EntryNotFoundError):
            what = f"there is no file {file!r} any more; call again, the list of files has changed"
        elif status in (401, 403):
            what = f"access is refused (HTTP {status}); set HF_TOKEN to a token that may read it"
        else:
            what = f"{file or 'the list of files'} cannot be fetched ({str(cause)[:200]})"
        raise InputError(f"{page}: {what}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the Hub's own progress bars: this package has its own."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
