"""From many logs to Responses: which rows are the same item, which run counts, what is refused and what is said."""

import json

import numpy as np
import pandas as pd
import pytest
from harness_logs import RUN, content_of, row, sha, write_model, write_results, write_rows

import mtlirt
from mtlirt.errors import InputError
from mtlirt.readers.logs import read_logs

LATER = "2024-05-07T00-00-00.000001"


def test_items_are_texts(tmp_path):
    """Another order of the same data set is the same items, and is said."""
    write_model(tmp_path / "a", "org/a", [1, 0, 1, 0])
    rows = [row(i, i < 2) | {"doc_id": 3 - i} for i in range(4)]
    write_rows(tmp_path / "b", rows)
    write_results(tmp_path / "b", "org/b", {"sums": 0.5}, n=4)
    responses, log = read_logs(tmp_path)
    assert responses.n_items == 4
    np.testing.assert_array_equal(responses.block("sums"), [[1, 0, 1, 0], [1, 1, 0, 0]])
    first = sha(json.dumps(content_of(0), indent=2))
    assert responses.items["item"][0] == f"sums/{first[:12]}"
    assert "4 items stand at other positions in other models" in "\n".join(log.warnings)


def test_equal_texts_are_told_apart_by_position(tmp_path):
    for name, right in (("a", [1, 0, 0]), ("b", [0, 0, 1])):
        write_rows(tmp_path / name, [row(0, right[0]), row(1, right[1]), row(0, right[2]) | {"doc_id": 2}])
    write_rows(tmp_path / "c", [row(0, 1) | {"doc_id": 2}])
    responses, _ = read_logs(tmp_path)
    assert responses.n_items == 3
    np.testing.assert_array_equal(responses.block("sums"), [[1, 0, 0], [0, 0, 1], [-1, -1, 1]])


def test_data_sets_that_share_no_item(tmp_path):
    """A data set that gained a field hashes to other items; that is said, not silently half empty."""
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    rows = [row(i, 1) for i in range(3)]
    for r in rows:
        r["doc"] |= {"source": "new"}
        r["doc_hash"] = sha(json.dumps(r["doc"], indent=2))
    write_rows(tmp_path / "b", rows)
    responses, log = read_logs(tmp_path)
    assert responses.n_items == 6
    assert any("2 groups that share no item, so their data sets differ: org/a | b" in w for w in log.warnings)


def test_prompts_are_compared(tmp_path):
    for name in "abc":
        rows = [row(i, i % 2) | ({"prompt_hash": sha(f"chat {i}")} if name == "c" else {}) for i in range(5)]
        write_rows(tmp_path / name, rows)
    _, log = read_logs(tmp_path)
    (told,) = [w for w in log.warnings if "prompts" in w]
    assert "5 items were shown with different prompts" in told
    assert told.endswith("a, b | c")


def test_orders_of_options_are_compared(tmp_path):
    """Same text, options shuffled: the score counts, letters would not mean the same."""
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    write_model(tmp_path / "b", "org/b", [1, 1, 0])
    rows = [row(i, 1) for i in range(3)]
    swapped = rows[1]["arguments"]
    swapped["gen_args_0"], swapped["gen_args_1"] = swapped["gen_args_1"], swapped["gen_args_0"]
    write_rows(tmp_path / "c", rows)
    responses, log = read_logs(tmp_path)
    option = responses.option_block("sums")
    assert option[2].tolist() == [0, -1, 2]
    assert responses.block("sums")[2].tolist() == [1, 1, 1]
    assert any("orders of options differ between models in 1 items" in w for w in log.warnings)


def test_options_come_along(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    write_model(tmp_path / "b", "org/b", [0, 1, 1])
    responses, _ = read_logs(tmp_path)
    assert responses.items["key"].tolist() == ["A", "B", "C"]
    assert responses.option_block("sums").tolist() == [[0, 2, 2], [1, 1, 2]]
    probs, offsets = responses.probs_block("sums")
    # softmax of -1, -2.125, -2.25, the log-likelihoods of the first row
    expected = np.exp([-1.0, -2.125, -2.25])
    np.testing.assert_allclose(probs[0, offsets[0] : offsets[1]], expected / expected.sum(), rtol=1e-6)


def test_reruns_most_rows_then_latest(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 1, 1, 1])
    write_model(tmp_path / "a", "org/a", [0, 0], run=LATER)
    write_model(tmp_path / "b", "org/b", [1, 1, 1, 1])
    write_model(tmp_path / "b", "org/b", [0, 0, 0, 0], run=LATER)
    responses, log = read_logs(tmp_path)
    assert responses.block("sums").tolist() == [[1, 1, 1, 1], [0, 0, 0, 0]]
    unused = log.files[~log.files["used"]]
    assert unused["run"].tolist() == [LATER, RUN]
    assert log.dropped["rows"].tolist() == [2, 4]


def test_one_name_two_models(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 1, 0, 1])
    write_model(tmp_path / "b", "org/a", [1, 0, 0, 1], run=LATER)
    with pytest.raises(InputError, match=r"'org/a', task 'sums': .*/b/.* and .*/a/.* answer 1 of 4 common items"):
        read_logs(tmp_path)
    responses, log = read_logs(tmp_path, lenient=True)
    assert responses.block("sums").tolist() == [[1, 0, 0, 1]]
    assert any("answer 1 of 4" in w for w in log.warnings)


def test_copies_are_no_conflict(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 1, 0])
    write_model(tmp_path / "copy", "org/a", [1, 1, 0])
    responses, log = read_logs(tmp_path)
    assert responses.n_answers == 3
    assert log.files["used"].sum() == 1


@pytest.mark.parametrize(("fact", "name"), [("version", "version"), ("shots", "number of shots")])
def test_versions_are_not_mixed(tmp_path, fact, name):
    for model, value in (("a", 1), ("b", 2), ("c", 1)):
        write_model(tmp_path / model, f"org/{model}", [1, 0, 1], **{fact: value})
    with pytest.raises(InputError, match=rf"task 'sums': {name} differs.*1 in 2 \(org/a, \.\.\.\); 2 in 1 \(org/b\)"):
        read_logs(tmp_path)
    responses, log = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["org/a", "org/c"]
    assert log.files.set_index("model").loc["org/b", "reason"] == f"{name} 2 where most have 1"


def test_metrics_are_not_mixed(tmp_path):
    write_rows(tmp_path / "a", [row(i, 1, metrics=["acc"]) for i in range(2)])
    write_rows(tmp_path / "b", [row(i, 1, metrics=["f1"], f1=0.5) for i in range(2)])
    with pytest.raises(InputError, match="metric differs"):
        read_logs(tmp_path)


def test_own_means(tmp_path):
    """Confirmed where samples are whole, not confirmed where they are not, different where the log errs."""
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    write_rows(tmp_path / "b", [row(i, 1) for i in range(3)])
    write_results(tmp_path / "b", "org/b", {"sums": 0.9}, n=10)
    write_rows(tmp_path / "c", [row(i, i == 0) for i in range(3)])
    write_results(tmp_path / "c", "org/c", {"sums": 0.9}, n=3)
    _, log = read_logs(tmp_path)
    assert log.summaries["verdict"].tolist() == ["confirmed", "not confirmed", "differs"]
    text = "\n".join(log.warnings)
    assert "org__c" not in text
    assert "mean of 'acc' is 0.333333 over its 3 items, but results_" in text
    assert "over 10 items and cannot be confirmed from the 3" in text


def test_warnings_on_models(tmp_path):
    """Same answers, below chance (of 60 items with 3 options, 20 +- 3.7 are guessed right), partial runs, gaps."""
    rng = np.random.default_rng(1)
    good = (rng.random(60) < 0.7).astype(int).tolist()
    write_model(tmp_path / "a", "org/a", good)
    write_model(tmp_path / "b", "org/b", good)
    write_model(tmp_path / "c", "org/c", [0] * 57 + [1] * 3)
    write_model(tmp_path / "d", "org/d", good[:20])
    write_model(tmp_path / "d", "org/d", [1, 0, 1], task="words", run=LATER)
    _, log = read_logs(tmp_path)
    text = "\n".join(log.warnings)
    assert "2 models have the same answers as another: org/a = org/b" in text
    assert "below what guessing would give: org/c in sums (1 in all)" in text
    assert "1 of 4 models have fewer than the 60 items that others have (org/d: 20)" in text
    gaps = log.missing.set_index(["model", "domain"])["share_missing"]
    assert gaps["org/d", "sums"] == pytest.approx(2 / 3)
    assert gaps["org/a", "words"] == 1


def test_domains(tmp_path):
    for task in ("mmlu_college_physics", "mmlu_anatomy", "arc"):
        write_rows(tmp_path / "a", [row(i, 1, task) for i in range(2)], task)
    rows = [row(i, 1, "mixed") for i in range(2)]
    for r, subject in zip(rows, ("College  Physics", "anatomy"), strict=True):
        r["doc"]["subject"] = subject
    write_rows(tmp_path / "a", rows, "mixed")
    assert read_logs(tmp_path)[0].domains == ("arc", "mixed", "mmlu_anatomy", "mmlu_college_physics")
    assert read_logs(tmp_path, domain_by="prefix")[0].domains == ("arc", "mixed", "mmlu")
    by_subject = read_logs(tmp_path, domain_by="subject")[0]
    assert by_subject.sizes.to_dict() == {"arc": 2, "college_physics": 3, "anatomy": 3}


def test_names(tmp_path):
    write_rows(tmp_path / "a", [row(0, 1), row(1, 0)])
    responses, log = read_logs(tmp_path, model="org/told")
    assert list(responses.models) == ["org/told"]
    assert not any("folder" in w for w in log.warnings)


def test_processes_change_nothing(tmp_path):
    for i in range(5):
        write_model(tmp_path / f"m{i}", f"org/m{i}", [(i + j) % 3 == 0 for j in range(9)])
    one, log = read_logs(tmp_path)
    two, log2 = read_logs(tmp_path, n_jobs=2)
    assert one == two
    pd.testing.assert_frame_equal(log.files, log2.files)


def test_kinds_are_not_mixed(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    (tmp_path / "table.csv").write_text("model,item,score\nx,q1,1\n")
    with pytest.raises(InputError, match=r"several kinds: 1 table .*; 1 lm-eval .*; choose one with --format"):
        read_logs(tmp_path)
    assert list(read_logs(tmp_path, format="lm-eval")[0].models) == ["org/a"]
    assert list(read_logs(tmp_path, format="table")[0].models) == ["x"]
    responses, log = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["org/a"]
    assert "is a plain table among logs" in set(log.dropped["reason"])


def test_what_is_no_log(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    (tmp_path / "README.md").write_text("words")
    (tmp_path / "config.json").write_text('{"a": 1}')
    (tmp_path / ".hidden.jsonl").write_text("{")
    _, log = read_logs(tmp_path)
    assert log.dropped["reason"].tolist() == ["is no log", "is no log"]
    with pytest.raises(InputError, match="there is no such file or folder"):
        read_logs(tmp_path / "b")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no log of a known kind \(lm-eval, inspect"):
        read_logs(tmp_path / "empty")


def test_parts_without_their_other_half(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0])
    (tmp_path / "per_instance_stats.json").write_text("[]")
    (tmp_path / "x.json").write_text('{"schema_version": "0.3.0", "evaluation_id": "e", "model_info": {}}')
    with pytest.raises(InputError) as told:
        read_logs(tmp_path)
    assert "per_instance_stats.json: is of a HELM run whose run_spec.json is missing" in str(told.value)
    assert "x.json: is an aggregate of Every Eval Ever whose samples" in str(told.value)
    assert list(read_logs(tmp_path, lenient=True)[0].models) == ["org/a"]


def test_many_files_with_the_same_fault(tmp_path):
    for i in range(30):
        write_rows(tmp_path / f"m{i:02d}", [row(0, 1, metrics=["acc", "f1"], f1=0.5)])
    with pytest.raises(InputError, match=r"m00.*several metrics: acc, f1.*\(also .*m01.*; and 26 more\)$"):
        read_logs(tmp_path)


def test_tables(tmp_path):
    pd.DataFrame({"model": ["x", "y"], "domain": "d", "item": "q1", "score": [1, 0]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    pd.DataFrame({"model": ["z"], "domain": "d", "item": "q1", "score": [1]}).to_parquet(tmp_path / "b.parquet")
    responses, log = read_logs(tmp_path)
    assert responses.block("d").tolist() == [[1], [0], [1]]
    assert log.files["rows"].tolist() == [2, 1]
    alone, _ = read_logs(tmp_path / "a.csv")
    assert alone == mtlirt.read_responses(tmp_path / "a.csv")


def test_wrong_arguments(tmp_path):
    for bad in ({"format": "xml"}, {"domain_by": "x"}, {"failed": "x"}, {"n_jobs": 0}, {"metric": 3}, {"metric": [""]}):
        with pytest.raises(InputError):
            read_logs(tmp_path, **bad)
    for paths in (None, 3, [], [3]):
        with pytest.raises(InputError, match="paths must be"):
            read_logs(paths)


def test_record(tmp_path):
    write_model(tmp_path / "a", "org/a", [1, 0, 1])
    write_model(tmp_path / "a", "org/a", [1, 0], run=LATER)
    _, log = read_logs(tmp_path)
    assert str(log).splitlines()[:3] == [
        "read 2 lm-eval: 3 answers of 1 models",
        "scores: sums: acc",
        "left out: 2 (another run of 'org/a' has more rows, or as many and is later)",
    ]
    log.save(tmp_path / "record.json")
    held = json.loads((tmp_path / "record.json").read_text())
    assert set(held) == {"files", "dropped", "summaries", "missing", "warnings"}
    assert held["summaries"][0]["verdict"] == "confirmed"
    with pytest.raises(InputError, match="cannot be written"):
        log.save(tmp_path / "no" / "record.json")


def test_imported_answers_are_fitted(tmp_path):
    """Three models' logs, read, fitted and summarised; the order of the traits is that of the means."""
    rng = np.random.default_rng(2)
    for name, p in (("low", 0.3), ("middle", 0.55), ("high", 0.8)):
        write_model(tmp_path / name, f"org/{name}", (rng.random(60) < p).astype(int).tolist())
        write_model(tmp_path / name, f"org/{name}", (rng.random(40) < p).astype(int).tolist(), task="words", run=LATER)
    responses, log = read_logs(tmp_path)
    assert (log.summaries["verdict"] == "confirmed").all()
    fit = mtlirt.fit_mtl(responses, lam=1.0)
    order = fit.scores().sort_values("general")["model"].tolist()
    assert order == ["org/low", "org/middle", "org/high"]
    assert "org/high" in str(fit.summary())
