"""Details of the Open LLM Leaderboard, version 1, as METHODS 6.1 describes them: made here, none is at hand."""

import json

import numpy as np
import pandas as pd
import pytest
from harness_logs import write_details

from mtlirt.errors import InputError
from mtlirt.readers.logs import read_logs

MMLU = "hendrycksTest-"
LATER = "2023-10-01T00:00:00.000001"


def folder(tmp_path, model):
    return tmp_path / f"details_{model.replace('/', '__')}"


def test_both_generations_are_the_same_items(tmp_path):
    write_details(folder(tmp_path, "org/old"), f"{MMLU}anatomy", [1, 0, 1, 1])
    write_details(folder(tmp_path, "org/new"), f"{MMLU}anatomy", [0, 0, 1, 0], newer=True)
    responses, log = read_logs(tmp_path)
    assert list(responses.models) == ["org/new", "org/old"]
    assert responses.block(f"{MMLU}anatomy").tolist() == [[0, 0, 1, 0], [1, 0, 1, 1]]
    assert responses.items["item"].tolist() == [f"{MMLU}anatomy/{i}" for i in range(4)]
    assert responses.items["key"].tolist() == ["A", "B", "C", "D"]
    assert responses.option_block(f"{MMLU}anatomy").tolist() == [[1, 2, 2, 0], [0, 2, 2, 3]]
    assert responses.blocks.probs is not None
    assert log.warnings == ("2 items are answered alike by all models",)
    assert read_logs(tmp_path, domain_by="subject")[0].domains == ("anatomy",)


def test_subjects_come_from_one_run(tmp_path):
    """The later run has more rows in one subject, but the earlier one has both subjects."""
    here = folder(tmp_path, "org/a")
    write_details(here, f"{MMLU}anatomy", [1, 0])
    write_details(here, f"{MMLU}law", [1, 1])
    write_details(here, f"{MMLU}anatomy", [0, 0, 0, 0], run=LATER)
    write_details(here, "winogrande", [1, 1], run=LATER)
    responses, log = read_logs(tmp_path)
    assert responses.block(f"{MMLU}anatomy").tolist() == [[1, 0]]
    assert responses.sizes.to_dict() == {f"{MMLU}anatomy": 2, f"{MMLU}law": 2, "winogrande": 2}
    assert (~log.files["used"]).sum() == 1


def test_another_text_at_a_position_is_another_test(tmp_path):
    for name in "abc":
        write_details(folder(tmp_path, f"org/{name}"), "winogrande", [1, 0, 1], options=2)
    path = write_details(folder(tmp_path, "org/d"), "winogrande", [1, 0, 1], options=2)
    rows = pd.read_parquet(path)
    rows["hashes"] = [{**h, "example": f"{i:016x}"} for i, h in enumerate(rows["hashes"])]
    rows.to_parquet(path)
    with pytest.raises(InputError, match=r"'org/d', task 'winogrande' .*3 of its 3 positions hold another text"):
        read_logs(tmp_path)
    responses, _ = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["org/a", "org/b", "org/c"]


def test_leaderboard_metric_and_generated_answers(tmp_path):
    """acc_norm for arc; gsm8k's predictions are texts and it has no options; mc2 is a share."""
    here = folder(tmp_path, "org/a")
    write_details(here, "arc:challenge", [1, 0], changes={"acc": 0.0})
    write_details(here, "gsm8k", [1, 0], changes={"choices": None, "predictions": ["18"], "gold": None})
    path = write_details(here, "truthfulqa:mc", [1, 0])
    pd.read_parquet(path).drop(columns=["acc", "acc_norm"]).assign(mc1=[1, 0], mc2=[0.7, 0.25]).to_parquet(path)
    responses, log = read_logs(tmp_path)
    assert dict(zip(log.files["task"], log.files["metric"], strict=True)) == {
        "arc:challenge": "acc_norm",
        "gsm8k": "acc",
        "truthfulqa:mc": "mc2",
    }
    np.testing.assert_array_equal(responses.block("truthfulqa:mc"), [[0.7, 0.25]])
    assert responses.option_block("gsm8k").tolist() == [[-1, -1]]
    binary, _ = read_logs(tmp_path, metric=["mc1", "acc"])
    assert binary.block("truthfulqa:mc").tolist() == [[1, 0]]


def test_results_of_the_run(tmp_path):
    """Versions and means stand at the top of the repository; MMLU before its repair is not mixed in."""
    for name, version in (("a", 1), ("b", 1), ("c", 0)):
        path = write_details(folder(tmp_path, f"org/{name}"), f"{MMLU}law", [1, 0, 1, 1])
        entry = f"harness|{MMLU}law|5"
        results = {"results": {entry: {"acc": 0.75, "acc_norm": 0.75}}, "versions": {entry: version}}
        (path.parents[1] / f"results_{path.parent.name}.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match=r"version differs.*1 in 2 \(org/a, \.\.\.\); 0 in 1 \(org/c\)"):
        read_logs(tmp_path)
    responses, log = read_logs(tmp_path, lenient=True)
    assert list(responses.models) == ["org/a", "org/b"]
    assert log.summaries["verdict"].tolist() == ["confirmed"] * 2


def test_broken_parquet(tmp_path):
    good = write_details(folder(tmp_path, "org/a"), "winogrande", [1, 0])
    bad = write_details(folder(tmp_path, "org/b"), "winogrande", [1, 0])
    bad.write_bytes(bad.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"org__b.*is no parquet file, or is cut off"):
        read_logs(tmp_path)
    assert list(read_logs(tmp_path, lenient=True)[0].models) == ["org/a"]
    good.rename(good.with_name("rows.parquet"))
    with pytest.raises(InputError, match="so its task is not known"):
        read_logs(folder(tmp_path, "org/a"))


def test_quoted_names_and_replaced_colons(tmp_path):
    path = write_details(folder(tmp_path, "org/a"), "winogrande", [1, 0])
    path.rename(path.with_name("details_harness%7Cwinogrande%7C5_2023-08-29T18-20-09.701638.parquet"))
    _, log = read_logs(tmp_path)
    assert log.files[["task", "run"]].to_numpy().tolist() == [["winogrande", "2023-08-29T18-20-09.701638"]]
