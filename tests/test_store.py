"""Finished work on disk, and work on several processes."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import mtlirt
from mtlirt._parallel import run_tasks
from mtlirt.data.store import WorkStore

KEY = {"work": "test", "seed": 1}


def test_arrays_come_back(tmp_path):
    store = WorkStore(tmp_path / "work", KEY)
    assert store.get("fold-1", ("x",)) is None
    arrays = {"x": np.arange(6.0).reshape(2, 3).T, "n": np.array(3), "none": np.empty((0, 4))}
    store.put("fold-1", arrays)
    store.put("fold-1", {**arrays, "n": np.array(4)})
    kept = WorkStore(tmp_path / "work", KEY).get("fold-1", ("x", "n", "none"))
    np.testing.assert_array_equal(kept["x"], arrays["x"])
    assert (kept["n"], kept["n"].shape, kept["none"].shape) == (4, (), (0, 4))
    assert sorted(p.name for p in (tmp_path / "work").iterdir()) == ["fold-1.safetensors", "work.json"]


def test_other_work_is_refused(tmp_path):
    WorkStore(tmp_path / "work", KEY)
    with pytest.raises(mtlirt.InputError, match="seed 1 there, 2 here"):
        WorkStore(tmp_path / "work", {**KEY, "seed": 2})


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(mtlirt.InputError, match="neither empty nor"):
        WorkStore(tmp_path, KEY)
    with pytest.raises(mtlirt.InputError, match="neither empty nor"):
        WorkStore(tmp_path / "letter.txt", KEY)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_whose_making_was_interrupted_is_taken(tmp_path):
    (tmp_path / ".work.json-123").write_text("{")
    WorkStore(tmp_path, KEY).put("x", {"x": np.ones(1)})


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_damaged_manifest(tmp_path, content):
    (tmp_path / "work.json").write_text(content)
    with pytest.raises(mtlirt.InputError, match=r"work.json: cannot be read"):
        WorkStore(tmp_path, KEY)


def test_damaged_arrays(tmp_path):
    store = WorkStore(tmp_path, KEY)
    (tmp_path / "fold-1.safetensors").write_bytes(b"half")
    with pytest.raises(mtlirt.InputError, match=r"fold-1.safetensors: cannot be read .* delete it"):
        store.get("fold-1", ("x",))


def test_other_arrays(tmp_path):
    store = WorkStore(tmp_path, KEY)
    store.put("fold-1", {"y": np.ones(2)})
    with pytest.raises(mtlirt.InputError, match="holds something else than x; delete it"):
        store.get("fold-1", ("x",))


@pytest.mark.parametrize("folder", [5, True, "a\0b", "n" * 300])
def test_what_cannot_be_a_folder(folder):
    with pytest.raises(mtlirt.InputError, match=r"cannot be (a folder|written)"):
        WorkStore(folder, KEY)


def _square(x, tick):
    tick()
    tick()
    return x * x


def _fail(x, tick):
    if x == 2:
        raise mtlirt.InputError("task 2")


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_results_in_order_and_steps_counted(n_jobs):
    steps, lock = [], threading.Lock()

    def advance(n):
        with lock:
            steps.append(n)

    assert run_tasks(_square, list(range(5)), n_jobs, advance) == [0, 1, 4, 9, 16]
    assert sum(steps) == 10
    assert run_tasks(_square, [3], n_jobs) == [9]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_come_through(n_jobs):
    with pytest.raises(mtlirt.InputError, match="task 2"):
        run_tasks(_fail, [1, 2], n_jobs)


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "two"])
def test_bad_n_jobs(n_jobs):
    with pytest.raises(mtlirt.InputError, match="n_jobs"):
        run_tasks(_square, [1, 2], n_jobs)


def test_one_core_is_this_process():
    """Where -1 finds a single core the tasks run here, and nobody ends the process for having no parent of its kind."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import mtlirt\n"
        "design = mtlirt.HeterogeneityDesign(h0=0.3, N=30, sizes=(15, 20), per_size=1)\n"
        "print(mtlirt.cv_mtl(mtlirt.simulate(design, 1).responses, lams=[3.0], folds=2, n_jobs=-1).lam_min)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 0
