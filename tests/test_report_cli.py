"""`mtlirt report`, and the report that `fit`, `nrm` and `demo` leave: files, messages, exit codes."""

import json
import sys

import pandas as pd
import pytest
from test_cli import run
from test_report import RECORD

import mtlirt


@pytest.fixture(scope="module")
def results(demo, tmp_path_factory):
    """A folder of `fit` with a cross-validation, from a table with the record of an import beside it."""
    folder = tmp_path_factory.mktemp("results")
    demo.to_long().to_parquet(folder / "answers.parquet")
    (folder / "answers.log.json").write_text(json.dumps(RECORD))
    done = run("fit", folder / "answers.parquet", "-o", folder / "out", "--folds", "2")
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_fit_writes_its_report(results):
    text = (results / "report.html").read_text(encoding="utf-8")
    assert "warning &lt;b&gt;1&lt;/b&gt;" in text
    assert "Which domains leave the general trait" in text
    assert json.loads((results / "reading.json").read_text()) == RECORD
    assert list(pd.read_csv(results / "sines.csv")) == ["lam", "domain", "sine"]
    assert list(pd.read_csv(results / "ranks.csv")) == ["model", "separate", "chosen", "complete", "mean_score"]


def test_results_are_there_even_where_the_report_fails(small, tmp_path, monkeypatch, capsys):
    from mtlirt import report
    from mtlirt.cli import main

    def fail(*_):
        raise mtlirt.FitError("no report")

    small.responses.to_long().to_parquet(tmp_path / "answers.parquet")
    monkeypatch.setattr(report, "render", fail)
    arguments = ["mtlirt", "fit", str(tmp_path / "answers.parquet"), "--lam", "1", "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stop:
        main()
    assert (stop.value.code, capsys.readouterr().err) == (1, "mtlirt: no report\n")
    assert mtlirt.load(tmp_path / "out" / "fit").lam == 1.0
    assert not (tmp_path / "out" / "report.html").exists()


def test_report_from_a_folder_is_the_same_page(results, tmp_path):
    done = run("report", results, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "report of 120 models: report.html" in done.stdout
    assert (tmp_path / "report.html").read_bytes() == (results / "report.html").read_bytes()
    again = run("report", results, cwd=tmp_path)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert run("report", results, "--force", "--quiet", cwd=tmp_path).stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_saved_fit_alone_has_a_report(results, tmp_path):
    done = run("report", results / "fit", "-o", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr
    assert "No cross-validation lies beside this fit" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_refused(results, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    mtlirt.load(results / "fit").save(tmp_path / "bad" / "fit")
    (tmp_path / "bad" / "ranks.csv").write_text("rank\n1\n")
    for folder, out, message in (
        ("nothing", "r.html", "not a saved fit"),
        ("empty", "r.html", "not a saved fit"),
        ("bad", "r.html", "ranks.csv: has no column model"),
        (results, "r.pdf", "must end in .html"),
        (results, "no/r.html", "there is no folder"),
    ):
        done = run("report", folder, "-o", out, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.glob("*.html"))


def test_option_models_write_their_report(golden_options, tmp_path):
    golden_options.to_long().to_parquet(tmp_path / "options.parquet")
    done = run("nrm", tmp_path / "options.parquet", "-o", tmp_path / "out", "-q")
    assert done.returncode == 0, done.stderr
    assert "exp(a_k theta + c_k)" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    done = run("report", tmp_path / "out", "-o", tmp_path / "r.html", "-q")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "r.html").read_bytes() == (tmp_path / "out" / "report.html").read_bytes()


def test_an_interrupted_report_says_where_the_results_are(small, tmp_path, monkeypatch, capsys):
    from mtlirt.cli import main
    from mtlirt.report import Evidence

    def interrupt(*_):
        raise KeyboardInterrupt

    small.responses.to_long().to_parquet(tmp_path / "answers.parquet")
    monkeypatch.setattr(Evidence, "of", interrupt)
    arguments = ["mtlirt", "fit", str(tmp_path / "answers.parquet"), "--lam", "1", "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stop:
        main()
    said = f"mtlirt: interrupted while the report was made; the results are in {tmp_path / 'out'}\n"
    assert (stop.value.code, capsys.readouterr().err) == (130, said)
    assert mtlirt.load(tmp_path / "out" / "fit").lam == 1.0
