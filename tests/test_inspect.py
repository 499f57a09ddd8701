"""Inspect AI logs: genuine ones with their known answers, and written ones for what those lack."""

import numpy as np
import pandas as pd
import pytest
from conftest import shared
from hypothesis import given, settings
from inspect_logs import as_eval, as_json, log, plain, read, result, sample
from mutations import mutated

from mtlirt.readers import inspect, inspect_files
from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import LogError, Problems

GENUINE = ("data", "eval_logs", "inspect")
# file: model, task, metric, scores, options, keys, the log's own mean and count
KNOWN = {
    "2025-05-12T20-28-13-04-00_popularity.json": (
        *("openai/gpt-4o-mini", "popularity", "match"),
        *([1, 1, 0], [-1] * 3, [-1] * 3, 2 / 3, 3),
    ),
    "data_arc_qwen.json": ("ollama/qwen2.5:0.5b", "arc_easy", "choice", [1, 0, 0], [0, 3, 0], [0, 1, 3], 1 / 3, 3),
    "log_formats.eval": ("ollama/llama3.1", "popularity", "match", [0], [-1], [-1], 0.0, 1),
    "mmlu-summary-choices.eval": ("openai/gpt-4o", "mmlu_0_shot", "choice", [0], [2], [0], 0.0, 1),
}


@pytest.fixture(autouse=True, scope="module")
def by_layout():
    """By the documented layout, also where inspect_ai is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_files, "find_spec", lambda name: None)
        yield


@pytest.mark.parametrize("name", KNOWN)
def test_genuine_logs(name):
    model, task, metric, scores, options, keys, mean, n = KNOWN[name]
    sheet, problems = read(shared(*GENUINE, name))
    assert (sheet.model, sheet.task, sheet.metric, problems) == (model, task, metric, [])
    assert sheet.rows["score"].tolist() == scores
    assert sheet.rows["option"].tolist() == options
    assert sheet.rows["key"].tolist() == keys
    assert (sheet.summary.value, sheet.summary.n) == (mean, n)
    # the log's mean is of the same scores; 3 of them sum exactly
    assert sheet.rows["score"].mean() == pytest.approx(mean, abs=1e-15)
    assert sheet.rows["position"].tolist() == [str(i + 1) for i in range(n)]


def test_genuine_facts():
    arc, _ = read(shared(*GENUINE, "data_arc_qwen.json"))
    assert arc.run == "2025-10-20T23:12:03+00:00"  # written as 01:12:03+02:00
    assert (arc.test, arc.notes, arc.dropped) == ({"version": "0"}, (), {})
    assert arc.rows["n_options"].tolist() == [4] * 3
    assert (arc.rows[["digest", "prompt", "layout"]] != 0).all(axis=None)
    mmlu, _ = read(shared(*GENUINE, "mmlu-summary-choices.eval"))
    assert mmlu.rows["subject"].tolist() == ["college_physics"]
    cancelled, _ = read(shared(*GENUINE, "2025-05-12T20-28-13-04-00_popularity.json"))
    assert cancelled.notes == ("the run was cancelled",)


def test_one_item_in_two_genuine_logs():
    sheets = [read(shared(*GENUINE, n))[0] for n in KNOWN if "popularity" in n or "formats" in n]
    first = [s.rows.iloc[0] for s in sheets]
    assert first[0]["digest"] == first[1]["digest"]
    assert first[0]["prompt"] == first[1]["prompt"]


def test_genuine_log_without_a_score():
    path = shared(*GENUINE, "data_cvebench_empty_choices.json")
    with pytest.raises(LogError, match=r"has no scored sample \(1 sample: 1 ended with an error\)"):
        read(path)
    sheet, problems = read(path, failed_is_wrong=True)
    assert (sheet.metric, sheet.rows["score"].tolist(), problems) == ("check_exploit", [0.0], [])
    assert sheet.summary is None  # its own mean is over the scored samples of 80, not over failures


@pytest.mark.parametrize("name", KNOWN)
def test_the_same_through_inspect(name, monkeypatch):
    pytest.importorskip("inspect_ai")
    path = shared(*GENUINE, name)
    ours, _ = read(path)
    monkeypatch.setattr(inspect_files, "find_spec", lambda name: True)
    monkeypatch.delattr(inspect_files, "_from_zip")
    monkeypatch.delattr(inspect_files, "_from_json")
    theirs, problems = read(path)
    pd.testing.assert_frame_equal(ours.rows, theirs.rows)
    assert problems == []
    for name, value in vars(ours).items():
        if name != "rows":
            assert getattr(theirs, name) == value


def test_what_inspect_itself_refuses(tmp_path, monkeypatch):
    pytest.importorskip("inspect_ai")
    monkeypatch.setattr(inspect_files, "find_spec", lambda name: True)
    content = log(sample(1, "C"), sample(2, "C") | {"epoch": "first"}, sample(3, "I"))
    sheet, (problem,) = read(as_json(tmp_path, content))
    assert sheet.rows["position"].tolist() == ["1", "3"]
    assert "'epoch' is \"first\", not a whole" in problem


@pytest.mark.parametrize("write", [as_json, as_eval])
def test_written_log(tmp_path, write):
    content = log(sample(1, "C", answer="A"), sample("b", "I", answer="C", target="B"), scores=[result("choice")])
    sheet, problems = read(write(tmp_path, content))
    assert problems == []
    assert sheet.rows["position"].tolist() == ["1", "b"]
    assert sheet.rows[["score", "option", "key", "n_options"]].to_numpy().tolist() == [[1, 0, 0, 3], [0, 2, 1, 3]]
    assert (sheet.task, sheet.unit, sheet.origin) == ("colours", "colours", str(tmp_path))
    assert sheet.test == {"version": "3"}
    assert sheet.run == "2025-01-02T01:04:05+00:00"


VALUES = [("C", 1), ("P", 0.5), ("I", 0), ("N", 0), ("yes", 1), ("TRUE", 1), ("no", 0), ("False", 0)]
VALUES += [(True, 1), (False, 0), (1, 1), (0.25, 0.25), ("0.75", 0.75)]


def test_values(tmp_path):
    content = log(*(plain(i, value) for i, (value, _) in enumerate(VALUES)))
    sheet, problems = read(as_json(tmp_path, content))
    assert sheet.rows["score"].tolist() == [score for _, score in VALUES]
    assert problems == []


@pytest.mark.parametrize("value", [2, -0.5, "11"])
def test_scores_outside_0_to_1(tmp_path, value):
    sheet, problems = read(as_json(tmp_path, log(plain(1, "C"), plain(2, value))))
    assert sheet.rows["position"].tolist() == ["1"]
    assert problems == [f"sample 2: score 'match' is {float(value):g}, outside 0 to 1"]


@pytest.mark.parametrize("value", ["perhaps", "c", [1, 0], "A"])
def test_values_that_are_no_number(tmp_path, value):
    sheet, problems = read(as_json(tmp_path, log(plain(1, "C"), plain(2, value))))
    assert sheet.rows["position"].tolist() == ["1"]
    assert problems == [f"sample 2: score 'match' is {value!r}, which is no number"]


def test_values_none_of_which_is_a_number(tmp_path):
    with pytest.raises(LogError, match="has no metric with one number"):
        read(as_json(tmp_path, log(plain(1, [1]))))


def test_unscored_samples_are_counted(tmp_path):
    content = log(plain(1, "C"), plain(2, float("nan")), sample(3, scores={}, choices=None))
    sheet, problems = read(as_json(tmp_path, content))
    assert sheet.dropped == {"samples that have no score": 2}
    assert (len(sheet.rows), problems) == (1, [])


def test_scores_with_several_parts(tmp_path):
    parts = [{"judge": {"style": 1, "truth": 0.5}}, {"judge": {"style": 0, "truth": 0.25}}]
    scores = [result("truth", 0.375, "mean", scorer="judge", scored_samples=2)]
    path = as_json(tmp_path, log(*(plain(i, p) for i, p in enumerate(parts)), scores=scores))
    with pytest.raises(LogError, match=r"several metrics: judge/style, judge/truth; choose one with --metric"):
        read(path)
    sheet, _ = read(path, metrics=("judge/truth",))
    assert sheet.rows["score"].tolist() == [0.5, 0.25]
    assert (sheet.summary.value, sheet.summary.n) == (0.375, 2)


def test_several_scorers(tmp_path):
    path = as_json(tmp_path, log(plain(1, {"match": "C", "judge": 0.5}), plain(2, {"match": "I"})))
    with pytest.raises(LogError, match="several metrics"):
        read(path)
    assert read(path, metrics=("absent", "match"))[0].rows["score"].tolist() == [1, 0]
    sheet, _ = read(path, metrics=("judge",))
    assert sheet.rows["score"].tolist() == [0.5]
    assert sheet.dropped == {"samples that have no score": 1}


FAILED = [
    plain(1, "C"),
    plain(2, "C", error={"message": "no"}) | {"scores": {}},
    plain(3, "C", limit={"type": "message", "limit": 9}),
    plain(4, "C", invalidation={"reason": "leak"}),
]


def test_failures_are_missing_or_wrong(tmp_path):
    path = as_json(tmp_path, log(*FAILED, scores=[result(scored_samples=3)]))
    sheet, problems = read(path)
    assert (sheet.rows["position"].tolist(), problems) == (["1"], [])
    assert sheet.dropped == {
        "samples that ended with an error": 1,
        "samples that hit a limit": 1,
        "samples that were marked invalid": 1,
    }
    assert sheet.summary.n == 3
    wrong, _ = read(path, failed_is_wrong=True)
    assert wrong.rows["score"].tolist() == [1, 0, 0]
    assert wrong.dropped == {"samples that were marked invalid": 1}
    assert wrong.summary is None


def test_failures_alone(tmp_path):
    path = as_json(tmp_path, log(*FAILED[1:3], FAILED[2]))
    with pytest.raises(LogError, match=r"has no scored sample \(3 samples: 1 ended with an error, 2 hit a limit\)"):
        read(path)


def test_epochs_are_averaged(tmp_path):
    samples = [sample(1, v, answer=a, epoch=e) for e, (v, a) in enumerate([("C", "A"), ("I", "B"), ("I", "C")], 1)]
    content = log(*samples, sample(2, "C", answer="A"), scores=[result("choice")], completed_samples=6)
    content["eval"]["config"]["epochs"] = 3
    sheet, _ = read(as_eval(tmp_path, content))
    assert sheet.rows["score"].tolist() == [1 / 3, 1]
    assert sheet.rows["trials"].tolist() == [3, 1]
    assert sheet.rows["option"].tolist() == [-1, 0]
    assert sheet.summary.n == 2  # 6 samples of 3 epochs


def test_shuffled_choices_are_one_item_in_another_layout(tmp_path):
    orders = [(["red", "green", "blue"], "A"), (["blue", "red", "green"], "B")]
    rows = []
    for choices, target in orders:
        content = log(sample(1, "C", answer=target, choices=choices, target=target, messages=[]))
        rows.append(read(as_json(tmp_path, content))[0].rows.iloc[0])
    assert rows[0]["digest"] == rows[1]["digest"]
    assert rows[0]["layout"] != rows[1]["layout"]
    assert rows[0]["prompt"] != rows[1]["prompt"]
    assert [r["key"] for r in rows] == [r["option"] for r in rows] == [0, 1]


def test_options_that_contradict_the_score_are_left_out(tmp_path):
    content = log(sample(1, "C", answer="B"), sample(2, "I", answer="A"), sample(3, "P", answer="A"), sample(4, "I"))
    sheet, _ = read(as_json(tmp_path, content))
    assert sheet.rows["key"].tolist() == [-1, -1, -1, 0]
    assert sheet.rows["option"].tolist() == [-1] * 4  # the last was not answered
    assert sheet.notes == ("options left out where they contradict 'choice': 3 rows",)


@pytest.mark.parametrize("change", [{"answer": "red"}, {"target": ["A", "B"]}, {"target": "red"}, {"target": "D"}])
def test_no_options_without_letters(tmp_path, change):
    sheet, _ = read(as_json(tmp_path, log(sample(1, **({"answer": "A"} | change)))))
    assert sheet.rows[["option", "key", "n_options"]].to_numpy().tolist() == [[-1, -1, 0]]
    assert sheet.notes == ()


def test_messages_as_input(tmp_path):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image", "image": "data:1"}]
    one = [{"role": "system", "content": "Be good."}, {"role": "user", "content": parts}]
    other = [one[0], {"role": "user", "content": [parts[0], {"type": "image", "image": "data:2"}]}]
    content = log(plain(1, "C", input=one, target=["x", "y"]), plain(2, "C", input=other, target=["x", "y"]))
    sheet, problems = read(as_json(tmp_path, content))
    assert (sheet.rows["digest"].nunique(), problems) == (2, [])


def test_the_prompt_ends_where_the_model_answers(tmp_path):
    shown = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    content = log(
        plain(1, "C", messages=[*shown, {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}]),
        plain(2, "C", messages=shown),
        plain(3, "C", messages=shown[1:]),
        plain(4, "C", messages=[*shown, {"role": "assistant", "content": "a", "source": "input"}, *shown]),
    )
    prompts = read(as_json(tmp_path, content))[0].rows["prompt"]
    assert prompts[0] == prompts[1]
    assert prompts.nunique() == 3


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([result(metric="pkg/accuracy", value=0.25)], (0.25, 4)),
        ([result(metric="stderr")], None),
        ([result(reducer="mode")], None),
        ([result(reducer="mode", value=1), result(reducer="mean", value=0.5, scored_samples=2)], (0.5, 2)),
        ([result("other")], None),
        ([result(value=float("nan"))], None),
    ],
)
def test_summary(tmp_path, scores, told):
    sheet, problems = read(as_json(tmp_path, log(plain(1, "C"), scores=scores, total_samples=4)))
    assert (sheet.summary and (sheet.summary.value, sheet.summary.n)) == told
    assert problems == []


def test_broken_results_are_a_problem(tmp_path):
    sheet, problems = read(as_json(tmp_path, log(plain(1, "C"), scores=[3])))
    assert (len(sheet.rows), sheet.summary) == (1, None)
    assert problems == ["its results cannot be read (is not a JSON object)"]


def test_early_logs_have_one_unnamed_scorer(tmp_path):
    content = log(plain(1, "C"), plain(2, "I"))
    for s in content["samples"]:
        s["score"] = s.pop("scores")["match"]
    content["results"] = {"scorer": {"name": "match"}, "metrics": {"accuracy": {"value": 0.5}}, "total_samples": 2}
    sheet, problems = read(as_json(tmp_path, content))
    assert (sheet.metric, sheet.rows["score"].tolist(), problems) == ("score", [1, 0], [])
    assert (sheet.summary.value, sheet.summary.n) == (0.5, 2)


@pytest.mark.parametrize(
    ("status", "error", "note"),
    [
        ("error", {"message": "out of money"}, "the run ended with an error: out of money"),
        ("cancelled", None, "the run was cancelled"),
        ("started", None, "the run did not end, or was cut off"),
    ],
)
def test_runs_that_did_not_succeed(tmp_path, status, error, note):
    sheet, _ = read(as_json(tmp_path, log(plain(1, "C"), status=status) | {"error": error}))
    assert sheet.notes == (note,)


@pytest.mark.parametrize(
    ("created", "run"), [("yesterday", "yesterday"), (None, ""), ("0001-01-01T00:00:00+23:00",) * 2]
)
def test_times_that_are_none(tmp_path, created, run):
    assert read(as_json(tmp_path, log(plain(1, "C"), created=created)))[0].run == run


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"id": None}, "there is no 'id'"),
        ({"id": True}, "'id' is neither a text nor a whole number"),
        ({"choices": [1, 2]}, "'choices' are not texts"),
        ({"input": 5}, "'input' is neither a text nor a list"),
        ({"input": [5]}, "is not a JSON object"),
        ({"scores": []}, "'scores' is [], not a object"),
    ],
)
def test_broken_samples_are_problems(tmp_path, change, what):
    sheet, problems = read(as_json(tmp_path, log(plain(1, "C"), plain(2, "C") | change)))
    assert len(sheet.rows) == len(problems) == 1
    assert problems[0].startswith("sample 2: ")
    assert what in problems[0]


@pytest.mark.parametrize("content", [[], {"eval": {}}, {"samples": []}, log(), log() | {"eval": {"task": "x"}}])
def test_files_that_are_no_logs(tmp_path, content):
    with pytest.raises(LogError):
        read(as_json(tmp_path, content))


MIXED = log(
    sample(1, "C", answer="A", epoch=1),
    sample(1, "I", answer="B", epoch=2),
    plain(2, {"choice": 0.5}, input=[{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
    *FAILED[1:3],
    scores=[result("choice", scored_samples=2)],
    total_samples=4,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(content=mutated(MIXED))
def test_only_log_errors_escape(content, tmp_path_factory):
    path = as_json(tmp_path_factory.getbasetemp(), content)
    for failed_is_wrong in (False, True):
        try:
            (sheet,) = inspect.read(path, Choices(("choice",), (), failed_is_wrong), Problems())
        except LogError:
            continue
        assert sheet.rows["score"].between(0, 1).all()
        assert np.isfinite(sheet.rows["score"]).all()
