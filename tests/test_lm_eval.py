"""lm-evaluation-harness logs: genuine ones against what they say themselves, made ones where those are silent."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import shared
from harness_logs import content_of, row, sha, write_model, write_results, write_rows

from mtlirt.errors import InputError
from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import LogError, Problems
from mtlirt.readers.lm_eval import read
from mtlirt.readers.logs import read_logs

GENUINE = ("data", "eval_logs", "lm_eval")
MMLU = "samples_metabench_mmlu_secondary_2024-11-26T10-50-23.349203.jsonl"
WINOGRANDE = "samples_metabench_winogrande_secondary_2024-11-26T10-50-23.349203.jsonl"
MATH = "samples_math_perturbed_full_2026-01-21T03-44-18.458309.jsonl"


def sheet(path, **choices):
    problems = Problems()
    (one,) = read(Path(path), Choices(**choices), problems)
    return one, problems.found


def records(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "n", "mean"), [(MMLU, 60, 14 / 60), (WINOGRANDE, 106, 55 / 106)])
def test_genuine_choices(name, n, mean):
    """n and the mean of acc were counted from the file; the keys stand in each row's document."""
    path = shared(*GENUINE, name)
    one, problems = sheet(path)
    assert (len(one.rows), problems, one.model, one.folder) == (n, [], None, "lm_eval")
    assert one.rows["score"].mean() == pytest.approx(mean, abs=1e-12)
    answers = [r["doc"]["answer"] for r in records(path)]
    keys = answers if name == MMLU else [int(a) - 1 for a in answers]
    assert one.rows["key"].tolist() == keys
    assert ((one.rows["option"] == one.rows["key"]) == (one.rows["score"] == 1)).all()
    first = records(path)[0]
    np.testing.assert_allclose(one.rows["logprobs"][0], [float(r[0][0]) for r in first["resps"]])
    assert f"{one.rows['digest'][0]:016x}" == first["doc_hash"][:16]


def test_genuine_generated():
    one, _ = sheet(shared(*GENUINE, MATH))
    assert one.model == "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1"
    assert (one.metric, one.summary.value, one.summary.n) == ("exact_match", 0.0, 5000)
    assert one.test == {"version": "1", "number of shots": "0"}
    assert (one.rows["n_options"] == 0).all()


def test_genuine_folder():
    responses, log = read_logs(shared(*GENUINE))
    assert (responses.n_models, responses.sizes.tolist()) == (2, [10, 60, 106])
    assert log.summaries[["n_stated", "n_found", "verdict"]].to_numpy().tolist() == [[5000, 10, "not confirmed"]]
    text = "\n".join(log.warnings)
    assert "math_rephrased_full" in text
    assert "'lm_eval' after their folder" in text
    assert "over 5,000 items" in text


def test_old_and_new_shapes_are_the_same_answers(tmp_path):
    """Before 0.4.3 or so: numbers, lists, no hashes, no filter."""
    right = [1, 0, 1, 1, 0, 0, 1]
    write_rows(tmp_path / "new", [row(i, r) for i, r in enumerate(right)])
    write_rows(tmp_path / "old", [row(i, r, old=True) for i, r in enumerate(right)])
    new, old = (sheet(next((tmp_path / kind).iterdir()))[0].rows for kind in ("new", "old"))
    for name in ("digest", "layout", "score", "option", "key", "n_options"):
        assert new[name].tolist() == old[name].tolist(), name
    assert new["option"].tolist() == [i % 3 if r else (i % 3 + 1) % 3 for i, r in enumerate(right)]


def test_text_as_target(tmp_path):
    rows = [row(i, i % 2, target=content_of(i)["choices"][i % 3]) for i in range(6)]
    assert sheet(write_rows(tmp_path, rows))[0].rows["key"].tolist() == [0, 1, 2, 0, 1, 2]


def test_options_that_are_numbers(tmp_path):
    """The target "2" may be the option "2" or the option in place 2: the scores tell."""
    rows = [row(i, 1) for i in range(3)]
    for r in rows:
        for k in range(3):
            r["arguments"][f"gen_args_{k}"]["arg_1"] = f" {(k + 1) % 3}"
    assert sheet(write_rows(tmp_path, rows))[0].rows["key"].tolist() == [0, 1, 2]


def test_key_that_contradicts_the_score(tmp_path):
    rows = [row(i, 1) for i in range(5)] + [row(5, 1, acc=0.0)]
    one, problems = sheet(write_rows(tmp_path, rows))
    assert one.rows["option"].tolist() == [0, 1, 2, 0, 1, -1]
    assert one.notes == ("options left out where they contradict 'acc': 1 rows",)
    assert not problems


def test_acc_norm_is_per_character(tmp_path):
    """The longest option wins per character though the shortest has the highest log-likelihood."""
    r = row(0, 1, metrics=["acc", "acc_norm"], acc=1.0, acc_norm=0.0)
    for k, (text, value) in enumerate([("a", -2.0), ("bb bb bb", -4.0), ("c", -9.0)]):
        r["arguments"][f"gen_args_{k}"]["arg_1"] = f" {text}"
        r["resps"][k] = [[str(value), "False"]]
    path = write_rows(tmp_path, [r])
    assert sheet(path, metrics=("acc",))[0].rows["option"].tolist() == [0]
    assert sheet(path, metrics=("acc_norm",))[0].rows["option"].tolist() == [1]


def test_metrics(tmp_path):
    path = write_rows(tmp_path, [row(i, 1, metrics=["acc", "acc_norm"], acc_norm=0.0) for i in range(3)])
    with pytest.raises(LogError, match="several metrics: acc, acc_norm; choose one with --metric"):
        sheet(path)
    assert sheet(path, metrics=("f1", "acc_norm"))[0].rows["score"].tolist() == [0, 0, 0]
    with pytest.raises(LogError, match="no metric f1; it has acc, acc_norm"):
        sheet(path, metrics=("f1",))


@pytest.mark.parametrize(
    ("task", "metric"),
    [
        ("arc_challenge", "acc_norm"),
        ("hellaswag", "acc_norm"),
        ("mmlu_anatomy", "acc"),
        ("leaderboard_bbh_snarks", "acc_norm"),
        ("leaderboard_mmlu_pro", "acc"),
    ],
)
def test_leaderboard_metrics(tmp_path, task, metric):
    """Metrics of the leaderboard: METHODS 6.1 and 6.2."""
    path = write_rows(tmp_path, [row(i, 1, task, metrics=["acc", "acc_norm"], acc_norm=0.0) for i in range(3)], task)
    assert sheet(path)[0].metric == metric


def test_metrics_that_cannot_be_scores(tmp_path):
    path = write_rows(tmp_path, [row(0, 1, metrics=["bleu", "words"], bleu=[1, 2], words="many")])
    with pytest.raises(LogError, match="no metric with one number"):
        sheet(path)
    path = write_rows(tmp_path, [row(0, 1, metrics=["bleu"], bleu=37.2), row(1, 1, metrics=["bleu"], bleu=0.5)])
    one, problems = sheet(path)
    assert problems == [(1, "metric 'bleu' is 37.2, outside 0 to 1")]
    assert len(one.rows) == 1


def test_lower_is_better_is_no_score(tmp_path):
    path = write_rows(tmp_path, [row(i, 1, metrics=["acc", "brier"], brier=0.2) for i in range(2)])
    results = json.loads(write_results(tmp_path, "org/x", {"sums": 1.0}).read_text())
    results["higher_is_better"]["sums"]["brier"] = False
    (tmp_path / f"results_{path.stem[-26:]}.json").write_text(json.dumps(results))
    assert sheet(path)[0].metric == "acc"


def test_filters(tmp_path):
    rows = [row(i, 1, filter=f, acc=float(f == "loose")) for i in range(3) for f in ("strict", "loose")]
    path = write_rows(tmp_path, rows)
    with pytest.raises(LogError, match="several filters: loose, strict; choose one with --filter"):
        sheet(path)
    assert sheet(path, filters=("loose",))[0].rows["score"].tolist() == [1, 1, 1]
    assert sheet(path, filters=("other", "strict"))[0].rows["score"].tolist() == [0, 0, 0]


def test_resumed_runs_keep_the_last(tmp_path):
    one, _ = sheet(write_rows(tmp_path, [row(0, 0), row(1, 1), row(0, 1)]))
    assert dict(zip(one.rows["position"], one.rows["score"], strict=True)) == {"0": 1, "1": 1}
    assert one.dropped == {"rows that repeat an item; the last is kept": 1}


def test_revisions_are_models(tmp_path):
    write_model(tmp_path / "a", "org/x", [1, 0], model_args="pretrained=org/x,revision=step1000")
    write_model(tmp_path / "b", "org/x", [0, 1], model_args={"pretrained": "org/x", "revision": "step2000"})
    write_model(tmp_path / "c", "org/x", [0, 0], model_revision="main")
    assert list(read_logs(tmp_path)[0].models) == ["org/x@step1000", "org/x@step2000", "org/x"]


def test_results_of_another_time_are_not_used(tmp_path):
    path = write_rows(tmp_path, [row(0, 1)])
    write_results(tmp_path, "org/x", {"sums": 1.0}, run="2020-01-01T00-00-00.000001")
    assert sheet(path)[0].model is None
    with pytest.raises(InputError, match="results file without its samples"):
        read_logs(tmp_path)


def test_second_leaderboard(tmp_path):
    """Folders name the models; some copies hold one array instead of lines."""
    rows = [row(i, i % 2, "leaderboard_bbh_snarks", metrics=["acc_norm"], acc_norm=float(i % 2)) for i in range(4)]
    write_rows(tmp_path / "org__one", rows, "leaderboard_bbh_snarks", suffix="json")
    array = write_rows(tmp_path / "org__two", rows, "leaderboard_bbh_snarks", suffix="json")
    array.write_text(json.dumps(rows[::-1]))
    responses, log = read_logs(tmp_path, domain_by="prefix")
    assert list(responses.models) == ["org/one", "org/two"]
    assert responses.domains == ("bbh",)
    assert list(log.files["format"]) == ["openllm-v2"] * 2
    assert not any("folder" in w for w in log.warnings)


BROKEN = {
    "cut off": (lambda t: t[: len(t) - 40], "line 3: is not JSON, or is cut off"),
    "latin-1": (lambda t: t.replace("sums 1?", "gr\xf6\xdfe").encode("latin-1"), "line 2: is not UTF-8 text"),
    "utf-16": (lambda t: t.encode("utf-16"), "line 1: is not UTF-8 text"),
    "no place": (lambda t: t.replace('"doc_id": 1', '"id": 1'), "line 2: there is no 'doc_id'"),
    "place as text": (lambda t: t.replace('"doc_id": 1', '"doc_id": "1"'), "line 2: 'doc_id' is \"1\", not a whole"),
    "a list": (lambda t: t.replace("\n", "\n[1, 2]\n", 1), "line 2: is not a JSON object"),
    "deep": (lambda t: t + "[" * 100_000 + "\n", "line 4: is"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_lines(tmp_path, kind):
    break_, message = BROKEN[kind]
    path = write_rows(tmp_path / "x", [row(i, 1) for i in range(3)])
    write_rows(tmp_path / "y", [row(i, 0) for i in range(3)])
    broken = break_(path.read_text())
    path.write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    with pytest.raises(InputError) as told:
        read_logs(tmp_path)
    assert f"{path}, {message}" in str(told.value)
    responses, log = read_logs(tmp_path, lenient=True)
    assert "y" in responses.models
    assert (log.dropped["file"] == str(path)).any()


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"\n \n", "is empty"), (b"{", "line 1: is not JSON")]
)
def test_files_without_rows(tmp_path, content, message):
    path = tmp_path / "samples_sums_2024-05-06T07-08-09.1.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_logs(tmp_path)
    with pytest.raises(InputError, match=message):
        read_logs(tmp_path, lenient=True)


def test_broken_results(tmp_path):
    write_model(tmp_path / "x", "org/x", [1, 0])
    write_model(tmp_path / "y", "org/y", [1, 0]).parent.joinpath("results_2024-05-06T07-08-09.123456.json").write_text(
        "{"
    )
    with pytest.raises(InputError, match=r"results_2024-05-06T07-08-09.123456.json is not JSON"):
        read_logs(tmp_path)
    responses, _ = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["org/x", "y"]


def test_rows_without_texts(tmp_path):
    """A log whose documents were cut out still has their hashes."""
    rows = [{k: v for k, v in row(i, 1).items() if k not in ("doc", "arguments", "resps")} for i in range(3)]
    assert sheet(write_rows(tmp_path, rows))[0].rows["score"].tolist() == [1, 1, 1]
    rows = [{k: v for k, v in r.items() if k != "doc_hash"} for r in rows]
    with pytest.raises(LogError, match="no row that can be read"):
        sheet(write_rows(tmp_path, rows))


def test_hash_of_the_document_is_the_harness_own():
    """json with an indent of 2: so the genuine logs have it (METHODS 6.3)."""
    for name in (MMLU, MATH):
        for r in records(shared(*GENUINE, name)):
            assert sha(json.dumps(r["doc"], indent=2, ensure_ascii=False)) == r["doc_hash"]
