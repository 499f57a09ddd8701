"""A study on a real dask scheduler with two worker processes, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pandas as pd
import pytest

import mtlirt
from mtlirt import HeterogeneityDesign, InputError, run_study

DESIGNS = [HeterogeneityDesign(h0=h0, N=60, sizes=(60,), per_size=3) for h0 in (0.1, 0.5)]
HOW = {"reps": 3, "seed": 4, "estimators": ["rmtl", "separate", "pooled"]}
PATIENCE = 60  # seconds to wait for processes to start


def start(*command):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}  # tasks must set it to one by themselves
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler, and the processes of its workers; the last test kills one of them."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
    processes = [scheduler]
    try:
        until(lambda: file.exists() and file.read_text().strip())
        address = json.loads(file.read_text())["address"]
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder)
        workers = [start("worker", address, *options) for _ in range(2)]
        processes += workers
        from dask.distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        yield address, workers
    finally:
        for process in processes:
            process.kill()
            process.wait()


def until(condition):
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def without_seconds(frame):
    return frame.drop(columns="seconds")


def test_command_line(cluster, tmp_path):
    command = [
        sys.executable,
        "-m",
        "mtlirt",
        "simulate",
        "heterogeneity",
        "--out",
        str(tmp_path / "out"),
        "--h0",
        ".2",
    ]
    command += ["--estimator", "pooled", "--reps", "3", "--scheduler", cluster[0]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    here = run_study([HeterogeneityDesign(h0=0.2)], out=tmp_path / "here", reps=3, estimators=["pooled"])
    there = pd.read_parquet(tmp_path / "out" / "study.parquet")
    pd.testing.assert_frame_equal(without_seconds(there), without_seconds(here), check_exact=True)


def test_errors_of_own_estimators_are_rows(cluster, tmp_path):
    def broken(responses):
        raise ValueError("no luck")

    study = run_study(DESIGNS[:1], out=tmp_path / "out", reps=2, estimators={"broken": broken}, scheduler=cluster[0])
    assert (study["status"] == "ValueError: no luck").all()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_no_scheduler(tmp_path, monkeypatch, address):
    monkeypatch.setattr("mtlirt._parallel._ANSWER_WITHIN", 0.5)
    with pytest.raises(InputError, match=r"no dask scheduler answers at|looks like tcp://host:8786"):
        run_study(DESIGNS, out=tmp_path / "out", scheduler=address, **HOW)
    assert not (tmp_path / "out").exists()


def test_other_version(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("mtlirt._parallel.__version__", "0.0.0")
    with pytest.raises(InputError, match=f"have mtlirt {mtlirt.__version__}, and this is 0.0.0"):
        run_study(DESIGNS, out=tmp_path / "out", scheduler=cluster[0], **HOW)


def test_the_same_numbers_on_a_cluster_whose_worker_is_killed(cluster, tmp_path):
    address, workers = cluster
    here = run_study(DESIGNS, out=tmp_path / "here", **HOW)
    done = tmp_path / "there" / "replications"

    def kill():
        until(lambda: len(list(done.glob("design-*.parquet"))) >= 2)
        workers[0].send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    there = run_study(DESIGNS, out=tmp_path / "there", scheduler=address, **HOW)
    killer.join()
    assert workers[0].wait(PATIENCE) == -signal.SIGKILL
    assert workers[1].poll() is None
    pd.testing.assert_frame_equal(without_seconds(there), without_seconds(here), check_exact=True)
