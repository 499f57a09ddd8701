"""`mtlirt import` as people run it."""

import json

import pytest
from conftest import shared
from harness_logs import row, write_model, write_rows
from test_cli import run

import mtlirt
from mtlirt.cli.importing import DomainBy, FormatName
from mtlirt.readers.detect import FORMATS
from mtlirt.readers.items import DOMAIN_BY


def test_import(tmp_path):
    for name, right in (("a", [1, 0, 1]), ("b", [0, 1, 1])):
        write_model(tmp_path / "logs" / name, f"org/{name}", right)
    out = tmp_path / "answers.parquet"
    done = run("import", tmp_path / "logs", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "read 2 lm-eval: 6 answers of 2 models" in done.stdout
    assert "2 confirmed" in done.stdout
    assert mtlirt.read_responses(out).block("sums").tolist() == [[1, 0, 1], [0, 1, 1]]
    assert json.loads((tmp_path / "answers.log.json").read_text())["files"][0]["model"] == "org/a"
    again = run("import", tmp_path / "logs", "-o", out)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert run("import", tmp_path / "logs", "-o", out, "--force", "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "several metrics: acc, f1; choose one with --metric"),
        (["--metric", "bleu"], "no metric bleu"),
        (["-o", "answers.csv"], "must end in .parquet"),
        (["--format", "helm"], "no log of kind helm, but 1 of lm-eval"),
    ],
)
def test_refused(tmp_path, options, message):
    write_rows(tmp_path / "logs", [row(0, 1, metrics=["acc", "f1"], f1=0.5)])
    before = sorted(tmp_path.rglob("*"))
    done = run("import", tmp_path / "logs", "-o", tmp_path / "answers.parquet", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_no_scored_sample(tmp_path):
    path = shared("data", "eval_logs", "inspect", "data_cvebench_empty_choices.json")
    done = run("import", path, "-o", tmp_path / "x.parquet")
    assert done.returncode == 2
    assert "no scored sample" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["lm_eval", "inspect", "helm", "every_eval_ever"])
def test_genuine_logs(tmp_path, kind):
    """All import; of Inspect's, the log without a scored sample is left out."""
    done = run("import", shared("data", "eval_logs", kind), "-o", tmp_path / "x.parquet", "--lenient")
    assert done.returncode == 0, done.stderr
    assert (
        mtlirt.read_responses(tmp_path / "x.parquet").n_answers
        == {
            "lm_eval": 176,
            "inspect": 8,
            "helm": 10,
            "every_eval_ever": 1,
        }[kind]
    )


def test_words_are_those_of_the_readers():
    assert [f.value for f in FormatName] == ["auto", *FORMATS]
    assert [d.value for d in DomainBy] == list(DOMAIN_BY)
