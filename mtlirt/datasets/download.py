"""Files at fixed addresses, fetched once: resumed where a download broke off, checked, complete or not there at all."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mtlirt.data.store import replacing
from mtlirt.errors import InputError

if TYPE_CHECKING:
    import requests

ATTEMPTS = 5
LONGEST = 120.0
BUSY = (408, 429, 500, 502, 503, 504)
_CHUNK = 1 << 16
_TIMEOUT = (10, 60)
_LEDGER = "sha256.json"


@dataclass(frozen=True)
class RemoteFile:
    """A file below a base address.

    Attributes
    ----------
    path : below the base address, and below the set's folder in the cache.
    model, task : what the file holds, None where it holds all of them.
    sha256 : where its publisher names one; otherwise the one of the first download is kept and held to.
    """

    path: str
    model: str | None = None
    task: str | None = None
    sha256: str | None = None


class PassingError(Exception):
    """A request that may go well later. `wait` is what the server asks for in seconds, None if it does not."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def pause(seconds: float) -> None:
    """Wait; the one place where this package waits for a server."""
    time.sleep(seconds)


def cache_folder() -> Path:
    """Where downloads are kept: MTLIRT_CACHE, or the operating system's folder for caches."""
    given = os.environ.get("MTLIRT_CACHE")
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("mtlirt"))


def file_hash(path: Path) -> str:
    """The sha256 of a file."""
    import pooch

    return str(pooch.file_hash(str(path)))


def obtain(file: RemoteFile, base: str, folder: Path, otherwise: str) -> Path:
    """The local copy of `file`, downloaded unless it is there and unchanged.

    `otherwise` ends the message where the server cannot be reached. Where no sha256 is published, that of the first
    download is kept in sha256.json, and a later download must have it too.
    """
    import pooch

    url, place = f"{base}/{quote(file.path)}", folder / file.path
    known = file.sha256 or _ledger(folder).get(file.path)
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(
            url,
            known_hash=None if known is None else f"sha256:{known}",
            fname=place.name,
            path=place.parent,
            downloader=_Downloader(place.with_name(f"{place.name}.part"), otherwise),
        )
        if known is None:
            _remember(folder, file.path, file_hash(place))
    except InputError:
        raise
    except ValueError as error:
        whose = "that its publisher names" if file.sha256 else f"of the first download, kept in {folder / _LEDGER}"
        raise InputError(
            f"{url}: the download does not have the sha256 {whose}; it was thrown away. Try again; if it stays so, the "
            "source has changed, and its answers may not be those you had"
        ) from error
    except OSError as error:
        raise InputError(f"{place}: cannot be written ({error}); MTLIRT_CACHE names another cache folder") from error
    finally:
        logger.setLevel(level)
    return place


def waiting_time(passing: PassingError, tries: int) -> float:
    """Seconds before the next attempt: what the server asks for, else 1, 2, 4, ... InputError beyond two minutes."""
    seconds = 2.0 ** (tries - 1) if passing.wait is None else passing.wait
    if seconds > LONGEST:
        raise InputError(f"{passing}; the server asks to wait {seconds:,.0f} seconds. Try again then") from passing
    return seconds


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds in a Retry-After header, which holds a number or a date; None without one."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


@dataclass(frozen=True)
class _Downloader:
    """What pooch calls to download: keeps what arrived in `part`, and goes on from there."""

    part: Path
    otherwise: str

    def __call__(self, url: str, output_file: str, mother: Any = None) -> None:
        """Bring `url` to `output_file`; attempts are counted anew whenever bytes have arrived."""
        tries = 0
        while True:
            before = _size(self.part)
            try:
                _transfer(url, self.part, self.otherwise)
                break
            except PassingError as passing:
                tries = 1 if _size(self.part) > before else tries + 1
                if tries >= ATTEMPTS:
                    raise InputError(f"{passing} ({tries} attempts); {self.otherwise}") from passing
                pause(waiting_time(passing, tries))
        self.part.replace(output_file)


def _transfer(url: str, part: Path, otherwise: str) -> None:
    """One attempt, appended to `part` if the server resumes there, else from the start."""
    import requests

    held = _size(part)
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={held}-"} if held else {})}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
            if answer.status_code == 416:
                part.unlink()
                raise PassingError(f"{url}: cannot be resumed", 0.0)
            _accept(answer, url)
            resumed = answer.status_code == 206
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {held}-"):
                part.unlink(missing_ok=True)
                raise PassingError(f"{url}: the server went on at another place", 0.0)
            with part.open("ab" if resumed else "wb") as out:
                for chunk in answer.iter_content(_CHUNK):
                    out.write(chunk)
            length = answer.headers.get("Content-Length")
    except (requests.exceptions.ChunkedEncodingError, requests.exceptions.Timeout) as error:
        raise PassingError(f"{url}: the download broke off") from error
    except requests.exceptions.ConnectionError as error:
        if _size(part) > held:
            raise PassingError(f"{url}: the download broke off") from error
        raise PassingError(f"no network: {urlsplit(url).netloc} cannot be reached") from error
    except requests.exceptions.RequestException as error:
        raise InputError(f"{url}: cannot be downloaded ({error}); {otherwise}") from error
    whole = None if length is None else int(length) + (held if resumed else 0)
    if whole is not None and _size(part) != whole:
        if _size(part) > whole:
            part.unlink()
        raise PassingError(f"{url}: the download broke off")


def _accept(answer: requests.Response, url: str) -> None:
    """InputError or PassingError unless the server gives the file."""
    code = answer.status_code
    if code in (200, 206):
        return
    if code in BUSY:
        raise PassingError(f"{url}: the server is busy (HTTP {code})", asked_wait(answer.headers))
    if code in (404, 410):
        raise InputError(f"{url}: there is no such file (HTTP {code}); the source may have moved it")
    raise InputError(f"{url}: the server refuses the file (HTTP {code})")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _ledger(folder: Path) -> dict[str, str]:
    path = folder / _LEDGER
    if not path.exists():
        return {}
    try:
        return {str(k): str(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); delete it, and hashes are taken anew") from error


def _remember(folder: Path, path: str, sha256: str) -> None:
    kept = {**_ledger(folder), path: sha256}
    with replacing(folder / _LEDGER) as stage:
        stage.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
