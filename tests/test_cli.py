"""The command line as a user meets it: files, messages, exit codes."""

import json
import os
import signal
import stat
import subprocess
import sys

import pandas as pd
import pytest
from conftest import shared

import mtlirt

OUTPUTS = [
    "checks.csv",
    "fit",
    "heterogeneity.csv",
    "items.csv",
    "report.html",
    "scores.csv",
    "summary.txt",
    "trace.csv",
]


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "mtlirt", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory, small):
    """The small data set as a csv with the user's own column names."""
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    names = {"model": "llm", "domain": "benchmark", "item": "question", "score": "correct"}
    small.responses.to_long().rename(columns=names).to_csv(path, index=False)
    return path


OWN = ("--model-col", "llm", "--domain-col", "benchmark", "--item-col", "question", "--score-col", "correct")


def test_fit_with_own_columns(answers, small, tmp_path):
    out = tmp_path / "new" / "results"
    done = run("fit", answers, "--lam", "1", "--out", out, *OWN, "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in out.iterdir()) == OUTPUTS
    assert "Converged" in done.stdout
    assert str(out) in done.stdout
    scores = pd.read_csv(out / "scores.csv")
    fit = mtlirt.fit_mtl(small.responses, 1.0)
    pd.testing.assert_frame_equal(scores, fit.scores(), check_dtype=False, rtol=1e-9)
    assert list(pd.read_csv(out / "items.csv").columns[:6]) == ["domain", "item", "a", "d", "b", "at_bound"]
    assert list(pd.read_csv(out / "heterogeneity.csv").columns) == ["domain", "sine", "rho", "fused", "n_items"]
    assert list(pd.read_csv(out / "trace.csv").columns[:2]) == ["step", "objective"]
    saved = mtlirt.load(out / "fit")
    assert saved.settings["seed"] == 7
    assert (out / "summary.txt").read_text().startswith("Call")


@pytest.mark.parametrize("lam", ["0", "inf"])
def test_ends_of_the_path(answers, tmp_path, lam):
    done = run("fit", answers, "--lam", lam, "-o", tmp_path / "out", *OWN, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_adam(answers, tmp_path):
    done = run("fit", answers, "--lam", "1", "--out", tmp_path / "out", *OWN, "--solver", "adam", "-q")
    assert done.returncode == 0, done.stderr
    assert mtlirt.load(tmp_path / "out" / "fit").settings["solver"]["name"] == "Adam"


def test_results_are_not_overwritten_unless_forced(answers, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep me")
    first = ("fit", answers, "--lam", "1", "--out", out, *OWN, "-q")
    assert run(*first).returncode == 0
    before = (out / "scores.csv").read_bytes()
    again = run("fit", answers, "--lam", "2", "--out", out, *OWN)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert (out / "scores.csv").read_bytes() == before
    assert run("fit", answers, "--lam", "2", "--out", out, *OWN, "--force", "-q").returncode == 0
    assert (out / "scores.csv").read_bytes() != before
    assert (out / "mine.txt").read_text() == "keep me"
    assert sorted(p.name for p in out.iterdir()) == sorted([*OUTPUTS, "mine.txt"])


def test_demo_and_score(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "chess (0.57)" in done.stdout
    assert "by 5-fold cross-validation" in done.stdout
    assert (tmp_path / "mtlirt-demo" / "gaps.csv").exists()
    new = mtlirt.datasets.demo().subset(models=["Fir-8B", "Elm-1B"])
    new.to_long().to_parquet(tmp_path / "new.parquet")
    done = run("score", "mtlirt-demo", "new.parquet", "--out", "scored", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scored = pd.read_csv(tmp_path / "scored" / "scores.csv").set_index("model")
    fitted = pd.read_csv(tmp_path / "mtlirt-demo" / "scores.csv").set_index("model")
    # the fit stops at 1e-10 of its objective, which leaves traits its root
    assert (scored["general"] - fitted["general"]).dropna().abs().max() < 2e-3
    assert len(scored) == 2
    done = run("score", "mtlirt-demo", "new.parquet", "--out", "mtlirt-demo", "--force", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "mtlirt-demo" / "scores.csv")) == 2
    assert mtlirt.load(tmp_path / "mtlirt-demo" / "fit").converged  # scoring into a fit's folder keeps the fit


def test_fit_chooses_lam_unless_told(answers, small, tmp_path):
    out = tmp_path / "out"
    done = run("fit", answers, "--out", out, *OWN, "--folds", "2", "--seed", "3", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "2-fold cross-validation over cells (seed 3)" in done.stdout
    assert sorted(p.name for p in out.iterdir()) == sorted(
        [*OUTPUTS, "cv.csv", "per_domain.csv", "ranks.csv", "sines.csv"]
    )
    cv = mtlirt.cv_mtl(small.responses, folds=2, seed=3)
    pd.testing.assert_frame_equal(
        pd.read_csv(out / "cv.csv").drop(columns="seconds"),
        cv.table.drop(columns="seconds"),
        check_dtype=False,
        rtol=1e-12,
    )
    assert mtlirt.load(out / "fit").lam == cv.lam_min
    done = run("fit", answers, "--lam", "1", "--out", out, *OWN, "--force", "-q")
    assert sorted(p.name for p in out.iterdir()) == OUTPUTS  # the curve belongs to the fit that is gone


def test_cv_and_compare(answers, tmp_path):
    done = run("cv", answers, "--out", tmp_path / "cv", *OWN, "--folds", "2", "--grid", "paper", "--scheme", "items")
    assert done.returncode == 0, done.stderr
    assert "over items" in done.stdout
    wanted = ["cv.csv", "folds.csv", "path.csv", "per_domain.csv", "sines.csv", "summary.txt"]
    assert sorted(p.name for p in (tmp_path / "cv").iterdir()) == wanted
    sines = pd.read_csv(tmp_path / "cv" / "sines.csv")
    assert list(sines.columns) == ["lam", "domain", "sine"]
    assert len(sines) == 22 * 4
    again = run("cv", answers, "--out", tmp_path / "cv", *OWN, "--folds", "2")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    done = run("compare", answers, "--out", tmp_path / "compare", *OWN, "--folds", "2", "--top", "5", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in (tmp_path / "compare").iterdir()) == [
        "compare.csv",
        "cv.csv",
        "flat_items.csv",
        "per_domain.csv",
        "rank_correlation.csv",
        "ranks.csv",
        "summary.txt",
        "top_shared.csv",
    ]
    table = pd.read_csv(tmp_path / "compare" / "compare.csv")
    assert list(table["regime"]) == ["separate", "chosen", "complete", "mean_score"]


def test_simulate_a_leaderboard(tmp_path):
    out = tmp_path / "board.parquet"
    done = run("simulate", "leaderboard", "--models", "60", "--seed", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "60 models x 13,259 items in 56 domains" in done.stdout
    expected = mtlirt.simulate(mtlirt.LeaderboardDesign(models=60), 2).responses
    assert mtlirt.read_responses(out) == expected
    for arguments, message in (
        (("--out", out), "--force"),
        (("--out", tmp_path / "board.txt"), "must end in"),
        (("--out", tmp_path / "no" / "board.csv"), "no folder"),
        (("--out", tmp_path / "few.csv", "--models", "3"), "models must be"),
    ):
        done = run("simulate", "leaderboard", *arguments)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["board.parquet"]


def test_one_domain_needs_no_choice(answers, tmp_path, small):
    small.responses.subset(domains=["d01"]).to_long().to_csv(tmp_path / "one.csv", index=False)
    done = run("fit", tmp_path / "one.csv", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "One domain" in done.stdout
    done = run("cv", tmp_path / "one.csv", "--out", tmp_path / "cv")
    assert (done.returncode, "one domain" in done.stderr) == (2, True)


def test_wide_table_with_prefix_domains(small, tmp_path):
    items = small.responses.items
    frame = pd.DataFrame(small.responses.scores, index=small.responses.models, columns=items["item"])
    frame.to_csv(tmp_path / "wide.csv.gz")
    done = run("fit", tmp_path / "wide.csv.gz", "--lam", "1", "--domain-by", "prefix", "-o", tmp_path / "out", "-q")
    assert done.returncode == 0, done.stderr
    assert mtlirt.load(tmp_path / "out" / "fit").domains == ("d01", "d02", "d03", "d04")


def test_version_and_help():
    assert run("--version").stdout == f"mtlirt {mtlirt.__version__}\n"
    for command in ((), ("fit",), ("cv",), ("compare",), ("score",), ("demo",)):
        done = run(*command, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout


def test_a_fit_that_does_not_converge_still_writes_its_files(answers, tmp_path, monkeypatch, capsys):
    from mtlirt.cli import main
    from mtlirt.solvers import block

    monkeypatch.setattr(block.Block.__init__, "__defaults__", (1, 1e-10))
    monkeypatch.setattr(sys, "argv", ["mtlirt", "fit", str(answers), "--lam", "1", "-o", str(tmp_path / "o"), *OWN])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert "Not converged" in capsys.readouterr().err
    assert (tmp_path / "o" / "scores.csv").exists()


def test_no_usable_result_exits_with_1(answers, tmp_path, monkeypatch, capsys):
    from mtlirt.cli import main
    from mtlirt.models import mtl

    def fail(*_, **__):
        raise mtlirt.FitError("the fit broke")

    monkeypatch.setattr(mtl, "fit_mtl", fail)
    monkeypatch.setattr(sys, "argv", ["mtlirt", "fit", str(answers), "--lam", "1", "-o", str(tmp_path / "o"), *OWN])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert capsys.readouterr().err.strip() == "mtlirt: the fit broke"
    assert not (tmp_path / "o").exists()


def test_an_interrupted_fit_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "big.parquet"
    design = mtlirt.HeterogeneityDesign(h0=0.3, N=2000, sizes=(100,), per_size=10)
    mtlirt.simulate(design, 1).responses.to_long().to_parquet(path)
    command = [sys.executable, "-m", "mtlirt", "fit", path, "--lam", "1", "-o", tmp_path / "o", "--solver", "adam"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4)  # hundreds of Adam's steps at this size, each of 2,000,000 cells, take longer
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert not (tmp_path / "o").exists()


# Bad input -----------------------------------------------------------------------------------------------------------

HEAD = "model,domain,item,score\n"
ROWS = "".join(f"m{i},d,q{j},{(i + j) % 2}\n" for i in range(4) for j in range(3))


@pytest.mark.parametrize(
    ("content", "arguments", "messages"),
    [
        (None, ("--lam", "1"), ["no such file"]),
        ("", ("--lam", "1"), ["empty"]),
        ("model,domain,item\nx,d,q\n", ("--lam", "1"), ["'score'", "'model', 'domain', 'item'"]),
        (HEAD + ROWS, ("--lam", "1", "--score-col", "acc"), ["'acc'", "'score'"]),
        (HEAD + ROWS + "m9,d,q1,1.5\n", ("--lam", "1"), ["'score'", "row 13", "1.5"]),
        (HEAD + ROWS + "m9,d,q1,good\n", ("--lam", "1"), ["'score'", "row 13", "'good'"]),
        (HEAD + ROWS + "m0,d,q0,1\n", ("--lam", "1"), ["different scores", "(m0, d, q0)", "row 13"]),
        (HEAD + ROWS + "m9,d,q1,\n", ("--lam", "1"), ["'m9'", "without any answer"]),
        (HEAD + ROWS + "m0,d,q9,\n", ("--lam", "1"), ["'d: q9'", "without any answer"]),
        (HEAD + ROWS + "m0,e,q9,1\n", ("--lam", "1"), ["domain 'e'", "fewer than 2 items"]),
        (HEAD + ROWS.split("m2")[0], ("--lam", "1"), ["at least 3 models"]),
        (HEAD + ROWS, ("--lam", "-1"), ["lam must be"]),
        (HEAD + ROWS, ("--lam", "nan"), ["lam must be"]),
        (HEAD + ROWS, ("--lam", "x"), ["lam must be", "'cv'", "'x'"]),
        (HEAD + ROWS, ("--lam", "1", "--resume", "kept"), ["--resume", "--lam cv"]),
        (HEAD + ROWS, ("--lam", "1", "--solver", "magic"), ["--solver"]),
        (HEAD + ROWS + ROWS.replace("d", "e"), ("--folds", "1"), ["folds must be", "not 1"]),
        (HEAD + ROWS + ROWS.replace("d", "e"), ("--jobs", "0"), ["--jobs", "must be"]),
        (HEAD + ROWS + ROWS.replace("d", "e"), ("--resume", "/dev/null"), ["/dev/null", "another folder"]),
        (HEAD + ",d,q,1\n" + ROWS, ("--lam", "1"), ["'model'", "row 1"]),
    ],
)
def test_bad_input(tmp_path, content, arguments, messages):
    path = tmp_path / "bad.csv"
    if content is not None:
        path.write_text(content)
    done = run("fit", path, "--out", tmp_path / "out", *arguments)
    assert done.returncode == 2, done.stderr
    for message in messages:
        assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_equal_repeats_are_said(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text(HEAD + ROWS + "m0,d,q0,0\n")
    done = run("fit", path, "--lam", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "same score: 1" in done.stderr
    assert "same score: 1" in (tmp_path / "out" / "summary.txt").read_text()


def test_bad_out(answers, tmp_path):
    (tmp_path / "file").write_text("x")
    done = run("fit", answers, "--lam", "1", "--out", tmp_path / "file", *OWN)
    assert done.returncode == 2
    assert "is a file" in done.stderr
    done = run("fit", answers, "--lam", "1", "--out", tmp_path / "file" / "below", *OWN)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_out_without_permission(answers, tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = run("fit", answers, "--lam", "1", "--out", tmp_path / "out", *OWN)
    tmp_path.chmod(stat.S_IRWXU)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_bad_saved_fits(answers, demo, tmp_path):
    done = run("score", tmp_path, answers, "--out", tmp_path / "o")
    assert done.returncode == 2
    assert "not a saved fit" in done.stderr
    demo.to_long().to_parquet(tmp_path / "demo.parquet")
    assert run("fit", tmp_path / "demo.parquet", "--lam", "1", "--out", tmp_path / "demo", "-q").returncode == 0
    done = run("score", tmp_path / "demo", answers, "--out", tmp_path / "o", *OWN)
    assert done.returncode == 2
    assert "items were not fitted" in done.stderr
    manifest = tmp_path / "demo" / "fit" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 99}))
    done = run("score", tmp_path / "demo", answers, "--out", tmp_path / "o", *OWN)
    assert done.returncode == 2
    assert "upgrade mtlirt" in done.stderr


def test_importing_is_light():
    code = "import sys, mtlirt; print(sorted({'torch', 'pandas', 'numpy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_fitting_with_block_does_not_import_torch():
    code = (
        "import sys, mtlirt; mtlirt.cv_mtl(mtlirt.datasets.demo(), lams=[11.0], folds=2); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# Real answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "lam", "odd"), [("open_llm_leaderboard.parquet", "30", "gsm8k"), ("mmlu_pro.parquet", "0.2", "math")]
)
def test_real_answers(tmp_path, file, lam, odd):
    done = run("fit", shared("data", file), "--lam", lam, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Converged" in done.stdout
    assert pd.read_csv(tmp_path / "out" / "heterogeneity.csv")["domain"][0] == odd
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores["general"].corr(scores["mean_score"], method="spearman") > 0.95  # close to the mean-score rank
