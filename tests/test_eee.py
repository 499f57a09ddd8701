"""Every Eval Ever: the genuine log with its known answers, and written ones for what it lacks."""

import hashlib
import json

import numpy as np
import pytest
from conftest import shared
from hypothesis import given, settings
from mutations import mutated

from mtlirt.readers import eee
from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import LogError, Problems

GENUINE = ("data", "eval_logs", "every_eval_ever", "demo-source", "demo-org", "demo-model")
UUID = "f3a1c0de-4b2e-4c1a-9f6d-1b7e5a2c8d40"
TEXTS = ["red", "green", "blue"]


def read_all(path, **choices):
    problems = Problems()
    return eee.read(path, Choices(**choices), problems), problems.found


def read(path, **choices):
    (sheet,), problems = read_all(path, **choices)
    return sheet, [what for _, what in problems]


def row(i=1, score=1.0, correct=True, result="colours.acc", task="colours", model="org/m", **more):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "x/y/1",
        "model_id": model,
        "evaluation_name": task,
        "evaluation_result_id": result,
        "sample_id": f"s{i}",
        "interaction_type": "single_turn",
        "input": {"raw": f"Question {i}?", "reference": ["red"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": correct},
    } | more


def chosen(i, value, reference="red", score=1.0, choices=TEXTS, before=()):
    """With choices, and what was extracted from the output, once or after other steps."""
    steps = [{"extracted_value": v, "is_terminal": False} for v in before]
    asked = {"raw": f"Question {i}?", "reference": reference, "choices": choices}
    return row(i, score, input=asked, answer_attribution=[*steps, {"extracted_value": value, "is_terminal": True}])


def result(metric="accuracy", id="colours.acc", task="colours", score=0.5, lower=False, low=0.0, high=1.0):
    config = {"metric_id": metric, "lower_is_better": lower, "min_score": low, "max_score": high}
    return {
        "evaluation_result_id": id,
        "evaluation_name": task,
        "metric_config": config,
        "score_details": {"score": score},
    }


def write(folder, rows, *results, aggregate=True, name=UUID, raw=None, **details):
    path = folder / f"{name}_samples.jsonl"
    path.write_bytes("".join(json.dumps(r) + "\n" for r in rows).encode() if raw is None else raw)
    if aggregate:
        content = {
            "model_info": {"id": "org/m"},
            "evaluation_timestamp": "1750000000",
            "retrieved_timestamp": "1750000001",
            "evaluation_results": list(results),
            "detailed_evaluation_results": details,
        }
        (folder / f"{name}.json").write_text(json.dumps(content))
    return path


def test_genuine_log():
    path = shared(*GENUINE, f"{UUID}_samples.jsonl")
    sheet, problems = read(path)
    assert (sheet.model, sheet.task, sheet.metric) == ("demo-org/demo-model", "demo-source.demo_bench", "accuracy")
    assert (sheet.rows["position"].tolist(), sheet.rows["score"].tolist()) == (["demo_0001"], [1.0])
    assert (sheet.rows["subject"].tolist(), sheet.run) == (["arithmetic"], "2025-06-15T15:06:40+00:00")
    assert sheet.rows["digest"].tolist() == [int("9c94305328f8e703", 16)]
    # the aggregate says .75 over the one row that it counts, whose checksum is right: the log contradicts itself
    assert (sheet.summary.value, sheet.summary.n, sheet.summary.where) == (0.75, 1, f"{UUID}.json")
    assert problems == []


def test_without_an_aggregate(tmp_path):
    sheet, problems = read(write(tmp_path, [row(1), row(2, 0.0, False)], aggregate=False))
    assert (sheet.metric, sheet.rows["score"].tolist(), problems) == ("colours.acc", [1, 0], [])
    assert (sheet.run, sheet.summary) == ("", None)
    bare = read(write(tmp_path, [row(1, result=None)], aggregate=False, name="bare"))[0]
    assert bare.metric == "score"


def test_one_sheet_for_every_evaluation(tmp_path):
    rows = [row(1), row(1, 0.0, task="shapes", result="shapes.f1"), row(2)]
    path = write(tmp_path, rows, result(), result("f1", "shapes.f1", "shapes"), total_rows=3)
    sheets, problems = read_all(path)
    assert [(s.task, s.metric, len(s.rows)) for s in sheets] == [("colours", "accuracy", 2), ("shapes", "f1", 1)]
    assert [s.summary.n for s in sheets] == [None, None]  # the aggregate counts the rows of both
    assert problems == []


def test_rows_repeat_for_every_metric(tmp_path):
    rows = [row(i, v, result=f"colours.{m}") for i in (1, 2) for m, v in (("acc", 1.0), ("f1", 0.25))]
    path = write(tmp_path, rows, result(), result("f1", "colours.f1", score=0.25), total_rows=4)
    with pytest.raises(LogError, match="evaluation 'colours' has several metrics: accuracy, f1; choose one"):
        read(path)
    sheet, problems = read(path, metrics=("f1",))
    assert (sheet.rows["score"].tolist(), problems) == ([0.25, 0.25], [])
    assert (sheet.summary.value, sheet.summary.n) == (0.25, None)


def test_lower_is_better_is_no_candidate(tmp_path):
    rows = [row(1, 0.25, result="colours.brier"), row(1, 1.0)]
    path = write(tmp_path, rows, result(), result("brier", "colours.brier", lower=True))
    assert read(path)[0].metric == "accuracy"
    with pytest.raises(LogError, match="has no metric brier; it has accuracy"):
        read(path, metrics=("brier",))


def test_one_metric_twice_goes_by_the_ids(tmp_path):
    rows = [row(1, 0.0, result="pass.1"), row(1, 1.0, result="pass.5")]
    path = write(tmp_path, rows, result("pass", "pass.1"), result("pass", "pass.5"))
    assert read(path, metrics=("pass.5",))[0].rows["score"].tolist() == [1]


def test_an_evaluation_that_cannot_be_read_is_a_problem(tmp_path):
    rows = [row(1), row(1, 2.0, None, task="shapes", result="shapes.f1")]
    sheets, problems = read_all(write(tmp_path, rows, result(), result("f1", "shapes.f1", "shapes")))
    assert [s.task for s in sheets] == ["colours"]
    assert problems == [
        (2, "has neither a score from 0 to 1 nor 'evaluation.is_correct'"),
        (0, "evaluation 'shapes' has no row with metric 'f1' that can be used"),
    ]


@pytest.mark.parametrize(
    ("low", "high", "scores", "expected", "scaled"),
    [
        (0.0, 100.0, [25.0, 100.0], [0.25, 1], True),
        (1.0, 5.0, [1.0, 2.0], [0, 0.25], True),
        (-1.0, 1.0, [0.0, 1.0], [0.5, 1], True),
        (1.0, 1.0, [0.5, 1.0], [0.5, 1], False),
        (None, 100.0, [0.5, 1.0], [0.5, 1], False),
    ],
)
def test_ranges(tmp_path, low, high, scores, expected, scaled):
    rows = [row(i, s) for i, s in enumerate(scores)]
    sheet, problems = read(write(tmp_path, rows, result(low=low, high=high, score=scores[0])))
    assert (sheet.rows["score"].tolist(), problems) == (expected, [])
    assert sheet.notes == ((f"scores were taken from {low:g} to {high:g}",) if scaled else ())


@pytest.mark.parametrize(("mean", "expected"), [(0.625, [0.0025, 0.01]), (62.5, [0.25, 1])])
def test_scores_from_0_to_1_of_a_wider_metric(tmp_path, mean, expected):
    """Rows may be on the metric's range or from 0 to 1; its own mean tells, and nothing else does."""
    rows = [row(1, 0.25), row(2, 1.0)]
    sheet, _ = read(write(tmp_path, rows, result(high=100.0, score=mean)))
    assert sheet.rows["score"].tolist() == expected
    assert sheet.summary.value == pytest.approx(sum(expected) / 2)
    with pytest.raises(LogError, match="scores from 0 to 1 where its metric goes from 0 to 100: either may be meant"):
        read(write(tmp_path, rows, result(high=100.0, score=40.0)))


def test_the_mean_is_on_the_metrics_range(tmp_path):
    assert read(write(tmp_path, [row(1, 75.0)], result(high=100.0, score=75.0)))[0].summary.value == 0.75


@pytest.mark.parametrize("score", [7, -0.5, float("nan"), "much", None, []])
def test_the_verdict_counts_where_the_score_is_none(tmp_path, score):
    sheet, problems = read(write(tmp_path, [row(1, score, True), row(2, score, False), row(3, 1.0)], result()))
    assert (sheet.rows["score"].tolist(), problems) == ([1, 0, 1], [])
    assert sheet.notes == ("2 rows have no score from 0 to 1 and are scored by is_correct",)


def test_errors_are_missing_or_wrong(tmp_path):
    failed = row(2, error="timeout") | {"evaluation": {"score": 1.0, "is_correct": True}}
    path = write(tmp_path, [row(1), failed], result(low=1.0, high=5.0))
    sheet, _ = read(path)
    assert (len(sheet.rows), sheet.dropped) == (1, {"rows that ended with an error": 1})
    assert read(path, failed_is_wrong=True)[0].rows["score"].tolist() == [0, 0]


def test_options(tmp_path):
    rows = [
        chosen(1, "red"),
        chosen(2, "C", reference="B", score=0.0),
        chosen(3, " green ", reference=["green"], before=["red", "blue"]),
        chosen(4, "", score=0.0),
        chosen(5, "purple", score=0.0),
        chosen(6, "red", reference=["red", "blue"]),
        chosen(7, "A", reference="purple"),
        chosen(8, "A", choices=["B", "A"], reference="A"),
        chosen(9, "x", choices=["x", "x"], reference="A"),
    ]
    sheet, problems = read(write(tmp_path, rows, result()))
    none = [-1, -1, 0]
    expected = [[0, 0, 3], [2, 1, 3], [1, 1, 3], [-1, 0, 3], none, none, none, [1, 1, 2], none]
    assert sheet.rows[["option", "key", "n_options"]].to_numpy().tolist() == expected
    assert (sheet.notes, problems) == ((), [])
    assert (sheet.rows["layout"] != 0).all()


def test_options_that_contradict_the_score_are_left_out(tmp_path):
    sheet, _ = read(write(tmp_path, [chosen(1, "red", score=0.0), chosen(2, "blue"), chosen(3, "red")], result()))
    assert sheet.rows["key"].tolist() == [-1, -1, 0]
    assert sheet.notes == ("options left out where they contradict 'accuracy': 2 rows",)


def test_identity(tmp_path):
    rows = [row(1), row(2, sample_hash="ab" * 32), row(3, input={"raw": "Question 1?", "reference": "red"})]
    rows += [row(4, input={"raw": "Question 1?", "reference": ["blue"]})]
    digests = read(write(tmp_path, rows, result()))[0].rows["digest"].tolist()
    assert digests[0] == digests[2] != digests[3]
    assert digests[1] == int("ab" * 8, 16)


def test_prompts_and_subjects(tmp_path):
    rows = [row(i, metadata={"subject": "warm"}) for i in (1, 2)]
    rows[1]["input"] = rows[0]["input"] | {"formatted": "Q: Question 1?"}
    rows.append(row(3, metadata={"category": "cold"}))
    sheet, _ = read(write(tmp_path, rows, result()))
    assert sheet.rows["subject"].tolist() == ["warm", "warm", "cold"]
    assert sheet.rows["prompt"][0] != sheet.rows["prompt"][1]
    assert sheet.rows["digest"][0] == sheet.rows["digest"][1]


def test_rows_that_repeat(tmp_path):
    sheet, _ = read(write(tmp_path, [row(1, 0.0), row(1, 1.0)], result()))
    assert (sheet.rows["score"].tolist(), sheet.dropped) == ([1], {"rows that repeat an item; the last is kept": 1})


def test_another_model_than_the_aggregates(tmp_path):
    sheets, problems = read_all(write(tmp_path, [row(1), row(1, 0.0, model="org/n")], result()))
    assert [(s.model, s.rows["score"].tolist()) for s in sheets] == [("org/m", [1]), ("org/n", [0])]
    assert problems == [(0, f"is of model org/m, org/n, but {UUID}.json is of org/m")]


def test_the_aggregates_checks(tmp_path):
    path = write(tmp_path, [row(1)], result())
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    for algorithm in ("sha256", "SHA-256"):
        assert read(write(tmp_path, [row(1)], hash_algorithm=algorithm, checksum=right.upper(), total_rows=1))[1] == []
    assert read(write(tmp_path, [row(1)], hash_algorithm="md5", checksum="0"))[1] == []
    _, problems = read(write(tmp_path, [row(1)], hash_algorithm="sha256", checksum="0" * 64, total_rows=3))
    assert problems == [
        f"holds 1 row, {UUID}.json says 3: it is cut off, or another file",
        f"has another checksum than {UUID}.json says: it was changed, or is another file",
    ]


@pytest.mark.parametrize("content", [b"", b"[", b"3", b"\xff\xfe", b'{"evaluation_results": 3}'])
def test_a_broken_aggregate_is_a_problem(tmp_path, content):
    path = write(tmp_path, [row(1)])
    path.with_name(f"{UUID}.json").write_bytes(content)
    sheet, problems = read(path)
    assert (len(sheet.rows), len(problems)) == (1, 1)
    assert problems[0].startswith(f"its {UUID}.json ")


def test_a_broken_result_is_a_problem(tmp_path):
    sheet, problems = read(write(tmp_path, [row(1)], 3, result()))
    assert (sheet.metric, problems) == ("accuracy", [f"its {UUID}.json, result 1: is not a JSON object"])


def test_lines_in_other_encodings_and_broken_ones_are_problems(tmp_path):
    good = json.dumps(row(1, metadata={"subject": "färbig"}), ensure_ascii=False)
    raw = [
        *("\ufeff".encode() + good.encode(), b"", good.replace("s1", "s2").encode("latin-1"), good.encode()[:-20]),
        *(json.dumps(row(3, input={"raw": 3})).encode(), json.dumps(row(4)).encode("utf-16"), b"[]"),
        json.dumps(row(5, input={"raw": "x", "choices": [1]})).encode(),
        json.dumps(row(6, metadata={"subject": "cut \ud83d"})).encode(),
    ]
    (sheet,), problems = read_all(write(tmp_path, [], result(), raw=b"\r\n".join(raw)))
    assert sheet.rows["position"].tolist() == ["s1", "s6"]
    assert sheet.rows["subject"].tolist() == ["färbig", "cut ?"]
    # UTF-16 has a byte 0A only where its text has a line's end, which JSON in one line has not
    assert [line for line, _ in problems] == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("raw", [b"", b"\n\n"])
def test_empty_files(tmp_path, raw):
    with pytest.raises(LogError, match="is empty"):
        read(write(tmp_path, [], raw=raw))


def test_no_row_that_can_be_read(tmp_path):
    with pytest.raises(LogError, match="has no row that can be read"):
        read(write(tmp_path, [{"schema_version": "0.3.0"}]))


WHOLE = {
    "rows": [chosen(1, "red"), chosen(2, "C", reference="B", score=0.0), row(3, error="x"), row(4, metadata={})],
    "results": [result(), result("f1", "colours.f1", high=100.0)],
    "details": {"hash_algorithm": "sha256", "checksum": "0", "total_rows": 4},
}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(content=mutated(WHOLE))
def test_only_log_errors_escape(content, tmp_path_factory):
    content = content if isinstance(content, dict) else {}
    rows = content.get("rows")
    path = write(tmp_path_factory.getbasetemp(), rows if isinstance(rows, list) else [rows])
    aggregate = {"evaluation_results": content.get("results"), "detailed_evaluation_results": content.get("details")}
    path.with_name(f"{UUID}.json").write_text(json.dumps(aggregate))
    for failed_is_wrong in (False, True):
        try:
            sheets = eee.read(path, Choices((), (), failed_is_wrong), Problems())
        except LogError:
            continue
        for sheet in sheets:
            assert sheet.rows["score"].between(0, 1).all()
            assert np.isfinite(sheet.rows["score"]).all()
