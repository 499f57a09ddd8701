"""Awkward answers and arguments: a result, or a sentence that says why not. Warnings are errors here."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import mtlirt


def of(blocks):
    """Responses from one (N, J) block of scores per domain."""
    names = [f"d{t}.q{j}" for t, block in enumerate(blocks) for j in range(block.shape[1])]
    frame = pd.DataFrame(np.concatenate(blocks, axis=1), index=[f"m{i}" for i in range(len(blocks[0]))], columns=names)
    return mtlirt.Responses.from_wide(frame.astype(float), domains=lambda item: item.split(".")[0])


def random(seed, *shapes):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(shapes[0][0], 1))
    return [(rng.random(shape) < 1 / (1 + np.exp(-ability + rng.normal(size=shape[1])))) * 1.0 for shape in shapes]


def test_fewer_items_than_folds():
    cv = mtlirt.cv_mtl(of(random(0, (20, 4), (20, 12))), scheme="items", lams=[1.0])
    assert np.isnan(cv.losses[:, 0, 0]).sum() == 1  # four items in five folds
    assert any("Domain 'd0' is judged in 4 of 5 folds" in note for note in cv.notes)
    assert cv.per_domain.notna().all().all()
    assert np.isfinite(cv.table["mean"]).all()


def test_folds_without_answers():
    with pytest.raises(mtlirt.InputError, match=r"fold \d+ holds out no answer that the others could predict"):
        mtlirt.cv_mtl(of(random(0, (5, 4), (5, 3))), folds=100)


def test_one_answer_per_model_and_domain():
    blocks = random(1, (12, 3), (12, 3))
    for block in blocks:
        block[np.arange(12)[:, None] % 3 != np.arange(3)] = np.nan
    with pytest.raises(mtlirt.InputError, match="fold 1"):
        mtlirt.cv_mtl(of(blocks), folds=3, lams=[1.0])


def test_a_domain_that_is_never_judged():
    blocks = random(2, (12, 3), (12, 6), (12, 6))
    blocks[0][np.arange(12)[:, None] % 3 != np.arange(3)] = np.nan
    cv = mtlirt.cv_mtl(of(blocks), folds=3, lams=[1.0])
    assert any("Domain 'd0' is judged in 0 of 3 folds" in note for note in cv.notes)
    assert cv.per_domain.set_index("domain")[["separate", "chosen", "complete"]].isna().all(axis=1).to_dict() == {
        "d0": True,
        "d1": False,
        "d2": False,
    }
    repr(mtlirt.compare_pooling(of(blocks), cv=cv))


@pytest.mark.parametrize("scheme", ["cells", "items"])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_answers_that_are_all_alike(value, scheme):
    cv = mtlirt.cv_mtl(of([np.full((8, 6), value), np.full((8, 6), value)]), folds=2, scheme=scheme)
    assert list(cv.lams) == [math.inf, 0.0]  # the thresholds are rounding: nothing to try in between
    assert cv.lam_min in (math.inf, 0.0)
    assert np.isfinite(cv.table["mean"]).all()


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_identical_models(share):
    block = np.tile([[1.0, 0.0, share, 1.0]], (6, 1))
    comparison = mtlirt.compare_pooling(of([block, block]), folds=2, lams=[1.0])
    assert comparison.rank_correlation.isna().loc["mean_score"].all()
    repr(comparison)


@pytest.mark.filterwarnings("ignore::mtlirt.ConvergenceWarning")  # an honest answer too
@pytest.mark.parametrize("C", [1.1, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_answers_and_other_boxes(seed, C):
    blocks = random(seed, (40, 30), (40, 12), (40, 2))
    rng = np.random.default_rng(seed)
    for block in blocks:
        block[rng.random(block.shape) < 0.6] = np.nan
    for block in blocks:
        block[0] = np.nan
        block[0, 0] = 1.0
    cv = mtlirt.cv_mtl(of(blocks), folds=3, lams=[1.0, 0.1], C=C)
    assert np.isfinite(cv.table["mean"]).any()


def test_two_domains_of_very_unequal_size():
    cv = mtlirt.cv_mtl(of(random(3, (30, 2), (30, 200))), folds=2, lams=[2.0])
    assert np.isfinite(cv.losses).all()


@pytest.mark.parametrize("lams", [iter([3.0, 1.0]), np.array([3, 1]), (3, 1, 3), {3.0, 1.0}])
def test_lams_of_any_kind(tiny, lams):
    assert list(mtlirt.cv_mtl(tiny, folds=2, lams=lams).lams) == [math.inf, 3.0, 1.0, 0.0]


@pytest.fixture(scope="module")
def tiny():
    return of(random(4, (15, 6), (15, 6)))


@pytest.mark.parametrize("lams", ["12", 3.0, [None], [1j], ["abc"], [[1.0, 2.0]], [math.nan], [-1], [1e300]])
def test_lams_that_cannot_be(tiny, lams, tmp_path):
    for verb, more in ((mtlirt.lambda_path, {}), (mtlirt.cv_mtl, {"resume": tmp_path / "kept"})):
        with pytest.raises(mtlirt.InputError, match="lam"):
            verb(tiny, lams=lams, **more)
    assert not (tmp_path / "kept").exists()  # nothing is claimed for work that cannot be


def test_numbers_of_numpy_count_as_numbers(tiny):
    cv = mtlirt.cv_mtl(tiny, folds=np.int64(2), seed=np.int32(1), n_jobs=np.int8(1), lams=[np.float32(1.0)])
    assert cv.settings["folds"] == 2
    for wrong in ({"seed": True}, {"n_jobs": True}, {"folds": 2.0}):
        with pytest.raises(mtlirt.InputError, match="whole number"):
            mtlirt.cv_mtl(tiny, **wrong)
    for wrong in ({"ratio": "a"}, {"ratio": None}, {"n": 2.5}):
        with pytest.raises(mtlirt.InputError, match="must be"):
            mtlirt.lambda_path(tiny, **wrong)


def test_comparison_of_something_else(tiny):
    with pytest.raises(mtlirt.InputError, match="cv must be a CVResult"):
        mtlirt.compare_pooling(tiny, cv=mtlirt.fit_mtl(tiny, 0))


def test_no_convergence_says_what_to_do(tiny):
    with pytest.raises(mtlirt.FitError, match=r"MAX_STEPS.*raise the solver's limit"):
        mtlirt.fit_mtl(tiny, solver=mtlirt.Block(max_sweeps=1))


@pytest.mark.parametrize("change", ["lams", "fold-1", "path-01", "path-00-seconds"])
def test_damaged_work(tiny, tmp_path, change):
    how = {"folds": 2, "lams": [1.0], "resume": tmp_path}
    mtlirt.cv_mtl(tiny, **how)
    path = tmp_path / change
    if path.is_dir():
        (path / "arrays.safetensors").write_bytes(b"half")
    else:
        path.with_suffix(".safetensors").write_bytes((tmp_path / "path-02-seconds.safetensors").read_bytes()[:-3])
    with pytest.raises(mtlirt.InputError, match=f"{change}.*delete it"):
        mtlirt.cv_mtl(tiny, **how)


def test_a_path_of_another_lam(tiny, tmp_path):
    how = {"folds": 2, "lams": [1.0], "resume": tmp_path}
    mtlirt.cv_mtl(tiny, **how)
    (tmp_path / "path-01").rename(tmp_path / "aside")
    (tmp_path / "path-02").rename(tmp_path / "path-01")
    with pytest.raises(mtlirt.InputError, match=r"path-01: is not the fit at lam = 1; delete it"):
        mtlirt.cv_mtl(tiny, **how)


def test_domains_with_the_names_of_columns(tmp_path):
    table = of(random(5, (12, 5), (12, 5), (12, 5))).to_long()
    table["domain"] = table["domain"].map({"d0": "lam", "d1": "mean_score", "d2": "general"})
    table.to_csv(tmp_path / "answers.csv", index=False)
    for command in ("cv", "compare", "fit"):
        done = command_line(command, tmp_path / "answers.csv", "--out", tmp_path / command, "--folds", "2")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    assert set(pd.read_csv(tmp_path / "cv" / "sines.csv")["domain"]) == {"lam", "mean_score", "general"}


def command_line(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "mtlirt", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c(small, tmp_path, jobs):
    small.responses.to_long().to_parquet(tmp_path / "answers.parquet")
    kept = tmp_path / "kept"
    command = ["cv", tmp_path / "answers.parquet", "--out", tmp_path / "out", "--jobs", jobs, "--resume", kept]
    running = subprocess.Popen(
        [sys.executable, "-m", "mtlirt", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(kept.glob("fold-*")):
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    said = f"mtlirt: interrupted, no results were written; with --resume it goes on from what is kept in {kept}\n"
    assert errors == said
    assert not (tmp_path / "out").exists()


def test_processes_stop_when_their_parent_is_killed(small, tmp_path):
    small.responses.to_long().to_parquet(tmp_path / "answers.parquet")
    kept = tmp_path / "kept"
    command = ["cv", tmp_path / "answers.parquet", "--out", tmp_path / "out", "--jobs", "2", "--resume", kept]
    running = subprocess.Popen(
        [sys.executable, "-m", "mtlirt", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list(kept.glob("fold-*")):
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    done = command_line(*command[:-4], "--resume", kept)  # while the others may still be at work
    assert done.returncode == 0, done.stderr
    before = sorted((p.name, p.stat().st_mtime_ns) for p in kept.iterdir())
    time.sleep(0.5)
    assert sorted((p.name, p.stat().st_mtime_ns) for p in kept.iterdir()) == before
