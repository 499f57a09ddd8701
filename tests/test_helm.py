"""HELM runs: a genuine one with its known answers, and written ones for what it lacks."""

import json

import numpy as np
import pytest
from conftest import shared
from hypothesis import given, settings
from mutations import mutated

from mtlirt.readers import helm
from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import LogError, Problems

NAME = "commonsense-dataset=hellaswag,method=multiple_choice_joint,model=eleutherai_pythia-1b-v0"
TEXTS = ["red", "green", "blue"]


def read(path, **choices):
    problems = Problems()
    (sheet,) = helm.read(path, Choices(**choices), problems)
    return sheet, [what for _, what in problems.found]


def spec(name="colours:subject=warm,method=joint,model=org_m", model="org/m", names=("exact_match",)):
    return {
        "name": name,
        "adapter_spec": {"method": "multiple_choice_joint", "model": model, "max_train_instances": 5},
        "metric_specs": [{"class_name": "x", "args": {}}, {"class_name": "y", "args": {"names": list(names)}}],
    }


def stat(value, name="exact_match", split="test", perturbation=None, **more):
    named = {"name": name, "split": split} | ({"perturbation": perturbation} if perturbation else {})
    return {"name": named, "count": 1, "sum": value, "mean": value} | more


def scored(i, *stats, trial=0, perturbation=None):
    one = {"instance_id": f"id{i}", "train_trial_index": trial, "stats": list(stats)}
    return one | ({"perturbation": perturbation} if perturbation else {})


def instance(i, key=0, split="test", text=str, **more):
    """text : how a text is written, bare as in early versions or in an object."""
    references = [{"output": text(t), "tags": ["correct"] if k == key else []} for k, t in enumerate(TEXTS)]
    return {"id": f"id{i}", "input": text(f"Question {i}?"), "references": references, "split": split} | more


def joint(i, answer, key=0, trial=0, letters="ABC", **more):
    return {
        "instance": instance(i, key, text=lambda t: {"text": t}),
        "train_trial_index": trial,
        "output_mapping": dict(zip(letters, TEXTS, strict=True)),
        "request": {"prompt": f"trial {trial}, question {i}"},
        "result": {"completions": [{"text": answer, "logprob": -1.0}]},
    } | more


def apart(i, logprobs, key=0, mode="original", by_index=True):
    """One request for each reference, which the last two tokens spell."""
    states = []
    for k, (text, value) in enumerate(zip(TEXTS, logprobs, strict=True)):
        tokens = [("Q", None), ("?", -9.0), (f" {text[:2]}", value), (text[2:], 2 * value)]
        states.append(
            {
                "instance": instance(i, key),
                "train_trial_index": 0,
                "reference_index": k if by_index else None,
                "request_mode": mode,
                "request": {"prompt": f"Q? {text}"},
                "result": {
                    "completions": [{"text": "", "tokens": [{"text": t, "logprob": x} for t, x in tokens]}],
                },
            }
        )
    return states


def run(folder, per_instance, states=None, instances=None, stats=None, **changes):
    path = folder / "suite" / "run"
    path.mkdir(parents=True)
    contents = {
        "run_spec": spec(**changes),
        "per_instance_stats": per_instance,
        "scenario_state": None if states is None else {"request_states": states},
        "instances": instances,
        "stats": stats,
    }
    for name, content in contents.items():
        if content is not None:
            (path / f"{name}.json").write_text(json.dumps(content))
    return path


def options(sheet):
    return sheet.rows[["option", "key", "n_options"]].to_numpy().tolist()


def test_genuine_run():
    sheet, problems = read(shared("data", "eval_logs", "helm", NAME))
    assert (sheet.model, sheet.metric, sheet.run, problems) == ("eleutherai/pythia-1b-v0", "exact_match", "helm", [])
    assert sheet.task == "commonsense:dataset=hellaswag,method=multiple_choice_joint"
    assert sheet.rows["score"].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    assert (sheet.summary.value, sheet.summary.n, sheet.summary.where) == (0.3, 10, "stats.json")
    # ten scores of 0 or 1
    assert sheet.rows["score"].mean() == pytest.approx(0.3, abs=1e-15)
    assert sheet.rows["position"].tolist()[:3] == ["id44874", "id47299", "id45277"]
    assert sheet.rows["option"].tolist() == [1, 1, 1, 3, 3, 3, 1, 0, 3, 1]
    assert sheet.rows["key"].tolist() == [2, 3, 1, 3, 1, 0, 0, 1, 1, 1]
    assert sheet.rows["n_options"].tolist() == [4] * 10
    assert (sheet.rows[["digest", "prompt", "layout"]].nunique() == 10).all()
    assert sheet.test == {"number of shots": "5", "method": "multiple_choice_joint", "split": "valid"}
    assert (sheet.by_position, sheet.dropped, sheet.notes) == (False, {}, ())


def test_other_metrics_of_the_genuine_run():
    path = shared("data", "eval_logs", "helm", NAME)
    sheet, _ = read(path, metrics=("quasi_exact_match",))
    assert (sheet.metric, sheet.summary.value) == ("quasi_exact_match", 0.3)
    with pytest.raises(LogError, match=r"has no metric f1; it has .*exact_match"):
        read(path, metrics=("f1",))


@pytest.mark.parametrize(
    ("name", "task", "model", "subject"),
    [
        ("mmlu:subject=law,method=joint,model=a_b", "mmlu:method=joint,subject=law", "a_b", "law"),
        ("mmlu:model=a_b,model_deployment=c,subject=law", "mmlu:subject=law", "a_b", "law"),
        ("gsm:model=a_b", "gsm", "a_b", None),
        ("gsm", "gsm", None, None),
        ("babi:task=15,flag,model=x", "babi:flag,task=15", "x", None),
    ],
)
def test_names_of_runs(tmp_path, name, task, model, subject):
    sheet, _ = read(run(tmp_path, [scored(1, stat(1))], name=name, model=None))
    assert (sheet.task, sheet.model, sheet.rows["subject"].iloc[0]) == (task, model, subject)
    assert (sheet.run, sheet.origin) == ("suite", str(tmp_path / "suite"))


def test_the_specified_model_counts(tmp_path):
    assert read(run(tmp_path, [scored(1, stat(1))]))[0].model == "org/m"


@pytest.mark.parametrize(
    ("names", "measured", "metric"),
    [
        (["f1_score", "exact_match"], ["exact_match", "f1_score"], "f1_score"),
        (["absent", "f1_score"], ["exact_match", "f1_score"], "f1_score"),
        ([], ["num_references", "exact_match"], "exact_match"),
        ([], ["ifeval"], "ifeval"),
    ],
)
def test_the_metric(tmp_path, names, measured, metric):
    sheet, _ = read(run(tmp_path, [scored(1, *(stat(1, m) for m in measured))], names=names))
    assert sheet.metric == metric


def test_several_metrics_and_no_default(tmp_path):
    path = run(tmp_path, [scored(1, stat(1, "a"), stat(0, "b"), stat(700, "num_prompt_tokens"))], names=())
    with pytest.raises(LogError, match="several metrics: a, b; choose"):
        read(path)
    assert read(path, metrics=("b",))[0].rows["score"].tolist() == [0]


def test_instances_whose_statistics_are_apart(tmp_path):
    sheet, _ = read(run(tmp_path, [scored(1, stat(0.5, "other")), scored(1, stat(1)), scored(2, stat(0))]))
    assert sheet.rows["score"].tolist() == [1, 0]


def test_test_comes_before_valid_and_perturbed_instances_do_not_count(tmp_path):
    typos = {"name": "misspellings", "robustness": True}
    per_instance = [
        scored(1, stat(1, split="valid")),
        scored(2, stat(1)),
        scored(3, stat(0)),
        scored(3, stat(1, perturbation=typos), perturbation=typos),
        scored(2, stat(0, perturbation=typos)),
    ]
    states = [joint(2, "A"), joint(3, "B"), joint(3, "A")]
    states[2]["instance"]["perturbation"] = typos
    whole = [stat(0.25, perturbation=typos), stat(1, split="valid"), stat(0.5), stat(2.0, "num_instances")]
    sheet, problems = read(run(tmp_path, per_instance, states, stats=whole))
    assert (sheet.rows["position"].tolist(), sheet.rows["score"].tolist()) == (["id2", "id3"], [1, 0])
    assert (sheet.summary.value, sheet.summary.n, problems) == (0.5, 2, [])
    assert sheet.dropped == {"instances of other splits": 1, "perturbed instances": 2}
    assert options(sheet) == [[0, 0, 3], [1, 0, 3]]


def test_trials_are_epochs(tmp_path):
    per_instance = [scored(i, stat(float(t == i)), trial=t) for i in (0, 1) for t in (0, 1, 2)]
    states = [joint(i, "A" if t == i else "B", trial=t) for i in (0, 1) for t in (0, 1, 2)]
    sheet, problems = read(run(tmp_path, per_instance, states))
    assert sheet.rows["score"].tolist() == [1 / 3] * 2
    assert (sheet.rows["trials"].tolist(), problems) == ([3, 3], [])


@pytest.mark.parametrize("more", [{}, {"mean": None}, {"mean": None, "count": 2, "sum": 1}, {"mean": None, "count": 0}])
def test_means_or_sums(tmp_path, more):
    known = [scored(1, stat(1)), scored(2, stat(0.5) | more)]
    rows = read(run(tmp_path, known))[0].rows
    assert rows["score"].tolist() == ([1] if more.get("count") == 0 else [1, 0.5])


def test_unscored_and_unscaled_instances(tmp_path):
    sheet, problems = read(run(tmp_path, [scored(1, stat(1)), scored(2, stat(0, "f")), scored(3, stat(7))]))
    assert sheet.rows["position"].tolist() == ["id1"]
    assert sheet.dropped == {"answers without a score": 1}
    assert problems == ["instance id3: metric 'exact_match' is 7, outside 0 to 1"]


def test_letters_are_mapped(tmp_path):
    states = [joint(1, " B\n", key=1), joint(2, "none of them", key=2), joint(3, "Z", key=0, letters="XYZ")]
    sheet, _ = read(run(tmp_path, [scored(1, stat(1)), scored(2, stat(0)), scored(3, stat(0))], states))
    assert options(sheet) == [[1, 1, 3], [-1, 2, 3], [2, 0, 3]]
    assert sheet.notes == ()


def test_the_most_likely_completion_counts(tmp_path):
    state = joint(1, "A", key=2)
    state["result"]["completions"] += [{"text": "C", "logprob": -0.5}, {"text": "B", "logprob": None}]
    assert options(read(run(tmp_path, [scored(1, stat(1))], [state]))[0]) == [[2, 2, 3]]


def test_options_that_contradict_the_score_are_left_out(tmp_path):
    per_instance = [scored(i, stat(v)) for i, v in ((1, 1), (2, 0), (3, 0.5), (4, 1))]
    states = [joint(1, "B"), joint(2, "A"), joint(3, "A"), joint(4, "A")]
    sheet, _ = read(run(tmp_path, per_instance, states))
    assert options(sheet) == [[-1, -1, 0]] * 3 + [[0, 0, 3]]
    assert sheet.notes == ("options left out where they contradict 'exact_match': 3 rows",)


@pytest.mark.parametrize("by_index", [True, False])
def test_one_request_for_each_option(tmp_path, by_index):
    states = apart(1, [-3.0, -1.0, -2.0], key=1, by_index=by_index) + apart(2, [-1.0, -2.0, -3.0], key=2)
    per_instance = [scored(1, stat(1)), scored(2, stat(0), stat(0, "predicted_index"))]
    sheet, problems = read(run(tmp_path, per_instance, states))
    assert (options(sheet), problems) == ([[1, 1, 3], [0, 2, 3]], [])
    # the tokens of the reference, with v and 2 v
    assert [list(x) for x in sheet.rows["logprobs"]] == [[-9, -3, -6], [-3, -6, -9]]


def test_the_predicted_option_comes_before_our_own_reckoning(tmp_path):
    per_instance = [scored(1, stat(1), stat(2, "predicted_index"))]
    assert options(read(run(tmp_path, per_instance, apart(1, [-1.0, -2.0, -3.0], key=2)))[0]) == [[2, 2, 3]]


def test_calibrated_requests_have_no_likelihoods_of_options(tmp_path):
    states = apart(1, [-1.0, -2.0, -3.0], key=2) + apart(1, [-1.0, -2.0, -9.0], key=2, mode="calibration")
    known = read(run(tmp_path / "a", [scored(1, stat(1), stat(2, "predicted_index"))], states))[0]
    assert options(known) == [[2, 2, 3]]
    assert known.rows["logprobs"].tolist() == [None]
    assert options(read(run(tmp_path / "b", [scored(1, stat(1))], states))[0]) == [[-1, -1, 0]]


@pytest.mark.parametrize("damage", ["missing", "text", "logprob", "none"])
def test_options_that_cannot_be_told(tmp_path, damage):
    states = apart(1, [-1.0, -2.0, -3.0])
    tokens = states[1]["result"]["completions"][0]["tokens"]
    if damage == "missing":
        del states[1]
    elif damage == "text":
        tokens[-1]["text"] = "x"
    elif damage == "logprob":
        tokens[-1]["logprob"] = float("nan")
    else:
        states[1]["result"] = None
    sheet, problems = read(run(tmp_path, [scored(1, stat(1))], states))
    assert (options(sheet), problems) == ([[-1, -1, 0]], [])


def test_two_right_references_have_no_key(tmp_path):
    state = joint(1, "A")
    state["instance"]["references"][1]["tags"] = ["correct"]
    assert options(read(run(tmp_path, [scored(1, stat(1))], [state]))[0]) == [[-1, -1, 0]]


def test_texts_from_instances(tmp_path):
    per_instance = [scored(1, stat(1)), scored(1, stat(0), trial=1), scored(2, stat(0))]
    one, _ = read(run(tmp_path / "a", per_instance, instances=[instance(1), instance(2)]))
    other, _ = read(run(tmp_path / "b", per_instance[::2], [joint(1, "A"), joint(2, "B")]))
    assert one.rows["digest"].tolist() == other.rows["digest"].tolist()
    assert one.rows["trials"].tolist() == [2, 1]
    assert (one.by_position, one.notes, options(one)) == (False, (), [[-1, -1, 0]] * 2)


def test_no_texts_at_all(tmp_path):
    sheet, problems = read(run(tmp_path, [scored(1, stat(1)), scored(2, stat(0))]))
    assert sheet.by_position
    assert sheet.notes == ("the run holds no texts, so that its items are told by their ids alone",)
    assert problems == []
    assert sheet.rows["digest"].nunique() == 2


def test_an_instance_without_a_text_is_a_problem(tmp_path):
    sheet, problems = read(run(tmp_path, [scored(1, stat(1)), scored(2, stat(0))], [joint(1, "A")]))
    assert (len(sheet.rows), problems) == (1, ["instance id2: nothing says what it asks"])


@pytest.mark.parametrize("name", ["run_spec", "per_instance_stats"])
@pytest.mark.parametrize(
    ("content", "what"), [(None, "holds no"), ("", "is empty"), ("[{", "is not JSON"), ("3", "is no")]
)
def test_needed_files(tmp_path, name, content, what):
    path = run(tmp_path, [scored(1, stat(1))])
    file = path / f"{name}.json"
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(LogError, match=what):
        read(path)


@pytest.mark.parametrize("name", ["scenario_state", "stats", "instances"])
@pytest.mark.parametrize("content", ["", "[{", "3", "{}", "\x00"])
def test_other_files_that_are_broken_are_problems(tmp_path, name, content):
    path = run(tmp_path, [scored(1, stat(1))])
    (path / f"{name}.json").write_text(content)
    sheet, problems = read(path)
    assert len(sheet.rows) == len(problems) == 1
    assert problems[0].startswith(f"its {name}.json ")


def test_broken_parts_are_problems(tmp_path):
    per_instance = [scored(1, stat(1)), 3, scored(2, {"name": "x"})]
    sheet, problems = read(run(tmp_path, per_instance, [joint(1, "A"), {"instance": []}, joint(1, 3)]))
    assert len(sheet.rows) == 1
    assert [p.split(":")[0] for p in problems] == [
        "per_instance_stats.json, instance 2",
        "per_instance_stats.json, instance 3",
        "scenario_state.json, request 2",
        "scenario_state.json, request 3",
    ]


def test_nothing_but_perturbed_instances(tmp_path):
    with pytest.raises(LogError, match="has no unperturbed instance"):
        read(run(tmp_path, [scored(1, stat(1), perturbation={"name": "x"})]))


WHOLE = {
    "run_spec": spec(),
    "per_instance_stats": [scored(1, stat(1), stat(0, "predicted_index")), scored(2, stat(0)), scored(3, stat(0))],
    "scenario_state": {"request_states": [*apart(1, [-1.0, -2.0, -3.0]), joint(2, "B"), joint(3, "C")]},
    "stats": [stat(1 / 3), stat(3.0, "num_instances")],
}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(contents=mutated(WHOLE))
def test_only_log_errors_escape(contents, tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    for name, content in contents.items() if isinstance(contents, dict) else ():
        (path / f"{name}.json").write_text(json.dumps(content))
    try:
        (sheet,) = helm.read(path, Choices(), Problems())
    except LogError:
        return
    assert sheet.rows["score"].between(0, 1).all()
    assert np.isfinite(sheet.rows["score"]).all()
