"""Logs as they should not be: contradictions, halves, odd names and numbers; each was once read wrongly."""

import json
import os

import numpy as np
import pytest
from harness_logs import RUN, content_of, row, sha, write_details, write_model, write_results, write_rows
from test_import import run

from mtlirt.errors import InputError
from mtlirt.readers.logs import read_logs

LATER = "2024-05-07T00-00-00.000001"


def write_eee(path, rows):
    told = [
        {
            "schema_version": "0.3.0",
            "evaluation_id": "e",
            "model_id": model,
            "evaluation_name": "t",
            "sample_id": f"s{i}",
            "interaction_type": "single_turn",
            "input": {"raw": f"question {i}", "reference": ["x"]},
            "answer_attribution": [],
            "evaluation": {"score": score, "is_correct": score == 1},
        }
        | ({"evaluation_result_id": result} if result else {})
        for model, i, score, result in rows
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in told))


def test_two_models_of_one_file_with_other_metrics(tmp_path):
    rows = [("o/m", i, 1.0, "acc") for i in range(3)] + [("o/n", i, 0.5, "f1") for i in range(3)]
    write_eee(tmp_path / "x_samples.jsonl", rows)
    with pytest.raises(InputError, match=r"metric differs, so the tests do: acc in 1 \(o/m\); f1 in 1 \(o/n\)"):
        read_logs(tmp_path)


def test_rows_that_do_not_say_of_which_metric_they_are(tmp_path):
    write_eee(tmp_path / "x_samples.jsonl", [("o/m", i, s, None) for i in range(3) for s in (1.0, 0.2)])
    results = [
        {"evaluation_result_id": m, "evaluation_name": "t", "metric_config": {"metric_id": m}} for m in ("acc", "f1")
    ]
    aggregate = {"schema_version": "0.3.0", "evaluation_id": "e", "model_info": {}, "evaluation_results": results}
    (tmp_path / "x.json").write_text(json.dumps(aggregate))
    with pytest.raises(InputError, match="2 metrics, and rows without 'evaluation_result_id'"):
        read_logs(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), None, "many"])
def test_one_row_without_its_metric(tmp_path, value):
    """The leaderboard's metric stays the metric, and the row is missing."""
    rows = [row(i, i % 2, "hellaswag", metrics=["acc", "acc_norm"], acc_norm=float(i % 2)) for i in range(5)]
    rows[4]["acc_norm"] = value
    write_rows(tmp_path, rows, "hellaswag")
    responses, log = read_logs(tmp_path)
    assert log.files["metric"].tolist() == ["acc_norm"]
    assert responses.block("hellaswag").tolist() == [[0, 1, 0, 1]]
    assert log.dropped[["reason", "rows"]].to_numpy().tolist() == [["answers without a score", 1]]


def test_other_settings_are_no_rerun(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0, 1], model_args="pretrained=org/a,dtype=float16")
    write_model(tmp_path / "a", "org/a", [1, 1, 0], run=LATER, model_args="pretrained=org/a,load_in_4bit=True")
    with pytest.raises(InputError, match=r"was run with pretrained=org/a, load_in_4bit=True, .* with .*dtype=float16"):
        read_logs(tmp_path)


def test_adapters_are_models(tmp_path):
    """Results of older versions have no model_name."""
    for name, when in (("one", RUN), ("two", LATER)):
        write_model(tmp_path / "a", "org/a", [1, 0], run=when, model_args=f"pretrained=org/a,peft=me/{name}")
        path = tmp_path / "a" / f"results_{when}.json"
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "model_name"}))
    assert sorted(read_logs(tmp_path)[0].models) == ["me/one", "me/two"]


@pytest.mark.parametrize("name", [None, "org/told"])
def test_unnamed_logs_that_contradict_one_another(tmp_path, name):
    write_rows(tmp_path, [row(i, 1) for i in range(3)])
    write_rows(tmp_path, [row(i, 0) for i in range(3)], run=LATER)
    with pytest.raises(InputError, match="answer 3 of 3 common items differently; rename or remove"):
        read_logs(tmp_path, model=name)


def test_contradictions_at_other_positions(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 1, 1])
    write_rows(tmp_path / "b", [row(i, 0) | {"doc_id": i + 1} for i in range(3)])
    write_results(tmp_path / "b", "org/a", {"sums": 0.0}, n=3)
    with pytest.raises(InputError, match="3 of 3 common items"):
        read_logs(tmp_path)


def test_items_have_one_name_in_every_import(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    write_rows(tmp_path / "b", [row(i, 1) | {"doc_id": i + 1} for i in range(3)])
    one, two = (read_logs(tmp_path / name)[0].items["item"].tolist() for name in "ab")
    assert one == two


def test_one_position_with_two_texts(tmp_path):
    other = row(0, 1) | {"doc": content_of(9), "doc_hash": sha(json.dumps(content_of(9), indent=2))}
    write_rows(tmp_path, [row(0, 0), other])
    assert read_logs(tmp_path)[0].n_items == 2


@pytest.mark.parametrize(
    "content",
    [
        '{"version": 2}'.encode("utf-16"),
        b'{"version": 2, "status": "success", "eval": {"task',
        b"\0" * 500,
        b"\0" * 90_000,
    ],
)
def test_broken_json_is_not_passed_over(tmp_path, content):
    write_model(tmp_path / "a", "org/a", [1, 0])
    (tmp_path / "log.json").write_bytes(content)
    with pytest.raises(InputError, match=r"log\.json: is not"):
        read_logs(tmp_path)
    assert read_logs(tmp_path, lenient=True)[0].n_models == 1
    assert read_logs(tmp_path, format="lm-eval")[0].n_models == 1


def test_links_are_followed_once(tmp_path):
    write_model(tmp_path / "elsewhere" / "a", "org/a", [1, 0])
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a").symlink_to(tmp_path / "elsewhere" / "a")
    (logs / "again").symlink_to(tmp_path / "elsewhere" / "a")
    (logs / "loop").symlink_to(logs)
    _, log = read_logs(logs)
    assert len(log.files) == 1


def test_a_pipe_is_no_log(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    os.mkfifo(tmp_path / "pipe.jsonl")
    _, log = read_logs(tmp_path)
    assert log.dropped["reason"].tolist() == ["is no file"]
    with pytest.raises(InputError, match="is no file or folder"):
        read_logs(tmp_path / "pipe.jsonl")


def test_another_filter_than_asked_for(tmp_path):
    write_rows(tmp_path, [row(i, 1, filter="flexible-extract") for i in range(2)])
    with pytest.raises(InputError, match="no filter strict-match; it has flexible-extract"):
        read_logs(tmp_path, filter="strict-match")


def test_a_mean_is_confirmed_only_by_whole_logs(tmp_path):
    """A lost line leaves it open even where the means agree by chance; a repeated row does not."""
    lost = write_rows(tmp_path / "a", [row(i, 1) for i in range(3)])
    lost.write_text(lost.read_text()[:-40])
    write_results(tmp_path / "a", "org/a", {"sums": 1.0})
    write_rows(tmp_path / "b", [row(0, 1), row(1, 1), row(0, 1)])
    write_results(tmp_path / "b", "org/b", {"sums": 1.0}, n=2)
    _, log = read_logs(tmp_path, lenient=True)
    assert log.summaries["verdict"].tolist() == ["not confirmed", "confirmed"]


def test_results_that_change_are_read_again(tmp_path):
    write_model(tmp_path, "org/a", [1, 0])
    assert list(read_logs(tmp_path)[0].models) == ["org/a"]
    write_results(tmp_path, "org/later", {"sums": 0.5}, n=2)
    assert list(read_logs(tmp_path)[0].models) == ["org/later"]


def test_prompts_of_logs_without_hashes(tmp_path):
    """The harness hashes the context of the first request, which older logs have as it is."""
    write_model(tmp_path / "old", "org/old", [1, 0, 0], old=True)
    write_model(tmp_path / "new", "org/new", [0, 1, 0])
    assert not any("prompts" in w for w in read_logs(tmp_path)[1].warnings)


@pytest.mark.parametrize("format", ["helm", "inspect", "table", "openllm-v1"])
def test_another_format_than_there_is(tmp_path, format):
    write_model(tmp_path, "org/a", [1, 0])
    with pytest.raises(InputError, match=rf"no log of kind {format}, but 1 of lm-eval"):
        read_logs(tmp_path, format=format)


@pytest.mark.parametrize("n", [10**30, True, -3])
def test_absurd_numbers_of_items(tmp_path, n):
    write_model(tmp_path, "org/a", [1, 0])
    write_results(tmp_path, "org/a", {"sums": 0.5}, n=n)
    assert read_logs(tmp_path)[1].summaries["n_stated"].isna().all()


def test_absurd_numbers_of_options(tmp_path):
    write_rows(tmp_path, [row(i, 1, options=1001) for i in range(2)])
    responses, log = read_logs(tmp_path)
    assert responses.block("sums").tolist() == [[1, 1]]
    assert any("more than 1,000: 2 rows" in w for w in log.warnings)


def test_names_that_no_table_takes(tmp_path):
    """Bytes that are no UTF-8 in file names, halves of characters, control characters, a name that is a list."""
    here = os.fsencode(tmp_path) + b"/m\xff"
    os.mkdir(here)
    rows = [row(i, 1) for i in range(2)]
    for r in rows:
        r["doc"]["subject"] = "\ud800law"
    write_rows(os.fsdecode(here), rows)
    write_model(tmp_path / "b", "org/b\nwarning: \x1b[31mred", [1, 0])
    path = tmp_path / "c" / f"results_{RUN}.json"
    write_model(tmp_path / "c", "org/c", [0, 1], model_args={"pretrained": ["x"]})
    path.write_text(path.read_text().replace('"model_name": "org/c"', '"model_name": null'))
    responses, log = read_logs(tmp_path, domain_by="subject")
    assert list(responses.models) == ["org/b warning:  [31mred", "c", "m?"]
    assert "?law" in responses.domains
    log.save(tmp_path / "record.json")


def test_blank_names(tmp_path):
    write_model(tmp_path / "a", "  ", [1, 0])
    write_model(tmp_path / "b", "org/b", [1, 0])
    with pytest.raises(InputError, match=r"a/samples.*names its task or its model by blanks"):
        read_logs(tmp_path)
    assert list(read_logs(tmp_path, lenient=True)[0].models) == ["org/b"]


def test_versions_written_in_two_ways(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0], version=1)
    write_model(tmp_path / "b", "org/b", [1, 1], version=1.0)
    assert read_logs(tmp_path)[0].n_models == 2


def test_versions_that_only_some_logs_tell(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    write_rows(tmp_path / "b", [row(i, 1) for i in range(2)])
    assert any("1 of 2 logs do not say their version" in w for w in read_logs(tmp_path)[1].warnings)


def test_the_same_file_twice(tmp_path, monkeypatch):
    path = write_model(tmp_path / "a", "org/a", [1, 0])
    monkeypatch.chdir(tmp_path)
    _, log = read_logs([path, path.relative_to(tmp_path), tmp_path / "a"])
    assert len(log.files) == 1


def test_a_name_that_nobody_needs(tmp_path):
    write_model(tmp_path, "org/a", [1, 0])
    with pytest.raises(InputError, match="for logs that do not say whose they are, and all of these do"):
        read_logs(tmp_path, model="org/b")


def test_lenient_reading_that_leaves_nothing(tmp_path):
    """Three models, each odd at another position: all are."""
    for k in range(3):
        path = write_details(tmp_path / f"details_org__m{k}", "winogrande", [1, 0, 1], options=2)
        import pandas as pd

        rows = pd.read_parquet(path)
        rows["hashes"] = [{**h, "example": f"{k:016x}"} if i == k else h for i, h in enumerate(rows["hashes"])]
        rows.to_parquet(path)
    with pytest.raises(InputError, match="3 things cannot be used"):
        read_logs(tmp_path, lenient=True)


def test_ties_do_not_depend_on_the_order(tmp_path):
    paths = [write_model(tmp_path / name, f"org/{name}", [1, 0], version=v) for name, v in (("a", 2), ("b", 1))]
    kept = [list(read_logs(order, lenient=True)[0].models) for order in (paths, paths[::-1])]
    assert kept[0] == kept[1]


def test_trials_of_fractions(tmp_path):
    """Numbers of runs stay only where they fit the scores; the warning names where they do not."""
    from inspect_logs import as_json, log, plain

    samples = [plain(1, "C"), plain(1, "I") | {"epoch": 2}, plain(2, "P"), plain(2, "I") | {"epoch": 2}]
    as_json(tmp_path, log(*samples))
    responses, record = read_logs(tmp_path)
    assert responses.blocks.trials is None
    assert any("numbers of runs are left out" in w for w in record.warnings)
    np.testing.assert_allclose(responses.scores, [[0.5, 0.25]])


def test_tables_with_a_broken_one(tmp_path):
    (tmp_path / "a.csv").write_text("model,item,score\nx,q1,1\n")
    (tmp_path / "b.csv").write_text("model,item,score\ny,q1,7\n")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="2 things cannot be used"):
        read_logs(tmp_path)
    responses, log = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["x"]
    assert len(log.dropped) == 2
    assert str(log).startswith("read 1 table: 1 answers\n")
    with pytest.raises(InputError, match="metric: goes with logs"):
        read_logs(tmp_path / "a.csv", metric="acc")


def test_tables_keep_runs_notes_and_facts(tmp_path):
    (tmp_path / "a.csv").write_text("model,item,score,trials\nx,q1,.5,2\n")
    (tmp_path / "b.csv").write_text("model,item,option,key,n_options\ny,q1,+,A,2\nz,q1,A,A,2\n")
    responses, _ = read_logs(tmp_path)
    assert responses.trials_block("all").tolist() == [[2], [1]]
    assert list(responses.models) == ["x", "z"]
    assert any("several options" in n for n in responses.notes)


def test_nested_values_in_a_table(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"model": {"a": 1}, "item": "q", "score": 1}\n')
    assert list(read_logs(tmp_path)[0].models) == ["{'a': 1}"]
    (tmp_path / "a.jsonl").write_text('{"a": {"q": 1}, "b": [1]}\n')
    with pytest.raises(InputError, match="no log of a known kind"):
        read_logs(tmp_path)


def test_paths_that_are_too_long(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_logs(tmp_path / ("x" * 300))
    write_model(tmp_path / "a", "org/a", [1, 0])
    done = run("import", tmp_path / "a", "-o", tmp_path / ("x" * 300 + ".parquet"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_the_record_is_not_replaced_unasked(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    (tmp_path / "x.log.json").write_text("mine")
    done = run("import", tmp_path / "a", "-o", tmp_path / "x.parquet")
    assert done.returncode == 2
    assert (tmp_path / "x.log.json").read_text() == "mine"
    assert not (tmp_path / "x.parquet").exists()


def test_importing_into_the_folder_of_the_logs(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    assert run("import", tmp_path, "-o", tmp_path / "x.parquet").returncode == 0
    done = run("import", tmp_path, "-o", tmp_path / "y.parquet")
    assert done.returncode == 0, done.stderr
    assert read_logs(tmp_path / "x.parquet")[0].n_models == 1
