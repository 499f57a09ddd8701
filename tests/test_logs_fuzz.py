"""Genuine logs, and made ones of the kind that is not at hand, damaged at random: only documented errors come out."""

import shutil
import time

import numpy as np
import pytest
from conftest import shared
from harness_logs import write_details

from mtlirt.errors import InputError
from mtlirt.readers.logs import read_logs

SECONDS = 60  # in all, as the project asks
KINDS = ("lm_eval", "inspect", "helm", "every_eval_ever", "openllm")
TOKENS = (
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'""',
    b"true",
    b"[[[1]]]",
    b'"\\ud800"',
    b"\xff\xfe",
    b"9" * 400,
)

pytestmark = pytest.mark.slow


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut off, flip, repeat or replace some of it."""
    raw = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        if not raw:
            break
        at, to = sorted(rng.integers(0, len(raw) + 1, 2))
        to = min(int(to), int(at) + int(rng.choice([1, 4, 40, 4000])))
        match rng.integers(0, 6):
            case 0:
                del raw[int(at) if rng.random() < 0.2 else to :]
            case 1:
                del raw[at:to]
            case 2:
                raw[at:to] = raw[at:to] * 2
            case 3:
                raw[at:to] = rng.bytes(to - int(at))
            case 4:
                raw[at:to] = TOKENS[rng.integers(len(TOKENS))]
            case 5:
                raw = _replace_value(raw, rng)
    return bytes(raw)


def _replace_value(raw: bytearray, rng: np.random.Generator) -> bytearray:
    """Another JSON value after some colon, so that the file stays JSON and its meaning does not."""
    colons = [i for i, b in enumerate(raw) if b == ord(":")]
    if not colons:
        return raw
    at = colons[rng.integers(len(colons))] + 1
    ends = [i for i in (raw.find(c, at) for c in (b",", b"}", b"]")) if i > 0]
    return raw[:at] + TOKENS[rng.integers(len(TOKENS))] + raw[min(ends) :] if ends else raw


@pytest.mark.parametrize("kind", KINDS)
def test_only_documented_errors(tmp_path, kind):
    source = tmp_path / "made"
    if kind == "openllm":
        write_details(source / "details_org__a", "winogrande", [1, 0, 1])
        write_details(source / "details_org__b", "winogrande", [1, 0, 1], newer=True)
    else:
        source = shared("data", "eval_logs", kind)
    files = [p for p in sorted(source.rglob("*")) if p.is_file()]
    rng = np.random.default_rng(20261130)
    end, tried, read = time.monotonic() + SECONDS / len(KINDS), 0, 0
    while time.monotonic() < end:
        shutil.rmtree(tmp_path / "logs", ignore_errors=True)
        shutil.copytree(source, tmp_path / "logs", copy_function=shutil.copyfile)
        for path in rng.choice(files, size=min(len(files), int(rng.integers(1, 3))), replace=False):
            copy = tmp_path / "logs" / path.relative_to(source)
            copy.write_bytes(damage(copy.read_bytes(), rng))
        for lenient in (False, True):
            tried += 1
            try:
                read_logs(
                    tmp_path / "logs", lenient=lenient, metric=["acc", "exact_match", "match", "choice", "accuracy"]
                )
                read += 1
            except InputError:
                pass
    assert tried > 20  # of some hundreds on a machine of its own
    assert read > 0
