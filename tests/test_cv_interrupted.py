"""Cross-validation that was stopped, killed, or goes on in a folder of other work."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from conftest import LAMS, same_numbers, wide
from safetensors.numpy import load_file

import mtlirt
from mtlirt.data.splits import make_split


def test_finished_work_is_not_done_again(cv, small, tmp_path, monkeypatch):
    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    first = mtlirt.cv_mtl(small.responses, **how)
    same_numbers(first, cv)
    with monkeypatch.context() as patched:
        patched.setattr("mtlirt.selection.path.solve_next", None)
        patched.setattr("mtlirt.selection.cv.solve_next", None)
        again = mtlirt.cv_mtl(small.responses, **how)
    same_numbers(again, first)
    pd.testing.assert_frame_equal(again.table, first.table)  # seconds too: they are those of the first time


@pytest.mark.parametrize("steps", [1, 3, 6, 10, 15])
def test_stopped_anywhere_and_gone_on(cv, small, tmp_path, monkeypatch, steps):
    from mtlirt.selection import cv as module

    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    real, done = module.solve_next, []

    def stopping(*arguments):
        done.append(1)
        if len(done) == steps:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("mtlirt.selection.cv.solve_next", stopping)
        patched.setattr("mtlirt.selection.path.solve_next", stopping)
        with pytest.raises(KeyboardInterrupt):
            mtlirt.cv_mtl(small.responses, **how)
    same_numbers(mtlirt.cv_mtl(small.responses, **how), cv)


@pytest.mark.parametrize("change", [{"seed": 6}, {"folds": 2}, {"lams": [1.0]}, {"C": 3.0}, {"scheme": "items"}])
def test_kept_work_of_another_kind_is_refused(small, tmp_path, change):
    how = {"lams": LAMS, "folds": 3, "seed": 5, "resume": tmp_path / "kept"}
    mtlirt.cv_mtl(small.responses, **how)
    with pytest.raises(mtlirt.InputError, match=f"{next(iter(change))}|grid"):
        mtlirt.cv_mtl(small.responses, **{**how, **change})
    with pytest.raises(mtlirt.InputError, match="answers"):
        mtlirt.cv_mtl(small.responses.subset(domains=["d01", "d02"]), **how)


def test_training_is_blind_to_held_out_answers(small, tmp_path):
    """Turn round the answers that the first fold holds out: its fits stay the same to the bit, its losses do not."""
    frame, lookup = wide(small.responses)
    held = np.concatenate(make_split(small.responses, "cells", 3, 5).blocks, axis=1) == 0
    turned = mtlirt.Responses.from_wide(frame.where(~held, 1 - frame), domains=lookup)
    kept = []
    for name, responses in (("one", small.responses), ("two", turned)):
        mtlirt.cv_mtl(responses, lams=LAMS, folds=3, seed=5, resume=tmp_path / name)
        kept.append(load_file(tmp_path / name / "fold-1.safetensors"))
    for name in ("theta", "general", "a", "d", "sweeps"):
        np.testing.assert_array_equal(kept[0][name], kept[1][name])
    assert (kept[0]["nll"] != kept[1]["nll"]).all()


def test_killed_and_started_again(small, tmp_path):
    """kill -9 in the middle, twice; then the same tables as without, but for the seconds."""
    answers = tmp_path / "answers.parquet"
    small.responses.to_long().to_parquet(answers)
    kept = tmp_path / "kept"

    def command(out):
        return [sys.executable, "-m", "mtlirt", "cv", str(answers), "--out", str(out), "--folds", "3", "--seed", "2"]

    for wanted in (2, 5):
        running = subprocess.Popen(
            [*command(tmp_path / "out"), "--resume", str(kept), "--jobs", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while not _lams_done(kept) >= wanted:
                assert running.poll() is None
                time.sleep(0.005)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        assert not (tmp_path / "out").exists()
    for out, more in ((tmp_path / "out", ("--resume", str(kept))), (tmp_path / "uninterrupted", ())):
        done = subprocess.run([*command(out), *more], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    for name in ("cv.csv", "folds.csv", "per_domain.csv", "path.csv", "sines.csv"):
        texts = []
        for out in ("out", "uninterrupted"):
            lines = (tmp_path / out / name).read_text().splitlines()
            skip = [i for i, column in enumerate(lines[0].split(",")) if column == "seconds"]
            texts.append([[x for i, x in enumerate(line.split(",")) if i not in skip] for line in lines])
        assert texts[0] == texts[1]


def _lams_done(folder):
    """Number of lams that the first fold has finished; a file being replaced counts as not there."""
    try:
        return len(load_file(folder / "fold-1.safetensors")["status"])
    except OSError:
        return 0
