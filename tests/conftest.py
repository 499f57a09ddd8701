"""Shared data. BLAS and torch run on one thread in all tests: results then do not depend on the machine's cores."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loopback import loopback
from threadpoolctl import threadpool_limits

import mtlirt

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    with threadpool_limits(limits=1):
        yield


def shared(*parts: str) -> Path:
    """A file beside the checkout; the test is skipped where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not beside the checkout")
    return path


@pytest.fixture(scope="session")
def demo() -> mtlirt.Responses:
    return mtlirt.datasets.demo()


@pytest.fixture(scope="session")
def small() -> mtlirt.Simulation:
    """40 models, 4 domains of 30 and 40 items."""
    return mtlirt.simulate(mtlirt.HeterogeneityDesign(h0=0.3, N=40, sizes=(30, 40), per_size=2), seed=1)


@pytest.fixture(scope="session")
def leaderboard() -> mtlirt.Responses:
    return mtlirt.read_responses(shared("data", "open_llm_leaderboard.parquet"))


@pytest.fixture(scope="session")
def leaderboard_golden() -> dict:
    return json.loads(shared("golden", "open_llm_leaderboard.json").read_text())


@pytest.fixture(scope="session")
def h03() -> dict[str, mtlirt.Responses]:
    """The golden data set of the paper's design at h0 = .3, complete and with 20 % missing."""
    with np.load(shared("golden", "rmtl_h03.npz")) as z:
        y, domain, observed = z["y"].astype(float), z["domain"], z["observed"].astype(bool)
    names = [f"d{t:02d}" for t in domain]
    columns = [f"{d}.i{j:04d}" for j, d in enumerate(names)]
    index = [f"m{i:03d}" for i in range(len(y))]
    lookup = dict(zip(columns, names, strict=True))
    return {
        key: mtlirt.Responses.from_wide(pd.DataFrame(values, index=index, columns=columns), domains=lookup)
        for key, values in (("complete", y), ("missing20", np.where(observed, y, np.nan)))
    }


@pytest.fixture(scope="session")
def h03_golden() -> dict:
    return json.loads(shared("golden", "rmtl_h03.json").read_text())["objective"]


LAMS = (3.0, 1.0)


@pytest.fixture(scope="session")
def cv(small) -> mtlirt.CVResult:
    """A cross-validation of the small data set, shared by the tests of selection."""
    return mtlirt.cv_mtl(small.responses, lams=LAMS, folds=3, seed=5)


def wide(responses):
    """Scores as a frame, and the domain of each column."""
    items = responses.items
    frame = pd.DataFrame(responses.scores, index=responses.models, columns=items["item"])
    return frame, dict(zip(items["item"], items["domain"], strict=True))


def same_numbers(one: mtlirt.CVResult, other: mtlirt.CVResult) -> None:
    """All but timing columns, bit for bit."""
    np.testing.assert_array_equal(one.losses, other.losses)
    for name in ("table", "folds"):
        x, y = (getattr(cv, name).drop(columns="seconds") for cv in (one, other))
        pd.testing.assert_frame_equal(x, y, check_exact=True)
    for x, y in zip(one.path.fits, other.path.fits, strict=True):
        np.testing.assert_array_equal(x.theta, y.theta)


LETTERS = "ABCDEFGHIJ"
LAW = {"score": None, "option": "option", "key": "key", "n_options": "n_options"}


def table_of(chosen, key, K, domain, probs=None):
    """A long table of answers (N, J)."""
    N, J = chosen.shape
    rows = [
        {
            "model": f"m{i:02d}",
            "domain": domain[j],
            "item": f"q{j:02d}",
            "option": LETTERS[chosen[i, j]],
            "key": LETTERS[key[j]],
            "n_options": int(K[j]),
            "probs": None if probs is None else probs[i, j, : K[j]].tolist(),
        }
        for i in range(N)
        for j in range(J)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def golden_options() -> mtlirt.Responses:
    """The golden option data, hard and soft, in three domains."""
    with np.load(shared("golden", "nrm.npz")) as z:
        domain = [f"d{j % 3}" for j in range(len(z["K"]))]
        table = table_of(z["hard"], z["key"], z["K"], domain, z["P"])
    return mtlirt.Responses.from_long(table, probs="probs", **LAW)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """Stands for the network; downloads go to an empty cache folder."""
    monkeypatch.setenv("MTLIRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("MTLIRT_DATA", raising=False)
    with loopback() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def waits(monkeypatch):
    """The seconds that would have been waited."""
    seconds = []
    monkeypatch.setattr(mtlirt.datasets.download, "time", type("Clock", (), {"sleep": seconds.append}))
    return seconds
