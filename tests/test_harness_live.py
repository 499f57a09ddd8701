"""The real lm-evaluation-harness, run offline; what it writes is read back to the figures it prints."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mtlirt.readers.logs import read_logs

ROOT = Path(__file__).parents[1]
N = 40
TASK = """task: arith_local
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 1.0
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    """A Python with lm_eval as constraints.txt pins it, apart from ours."""
    folder = tmp_path_factory.mktemp("harness")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", "lm_eval"]
    subprocess.run(install, check=True, capture_output=True)
    return python


@pytest.fixture(scope="module")
def runs(harness, tmp_path_factory):
    """Five models' logs, and what the harness printed for each: {model: {metric: mean}}."""
    folder = tmp_path_factory.mktemp("runs")
    data = folder / "sums.jsonl"
    rows = [
        {
            "question": f"{i} + {2 * i}?",
            "choices": [str(3 * i), f"{3 * i + 1} or so", "a number", "none"],
            "answer": i % 4,
        }
        for i in range(N)
    ]
    data.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "arith_local.yaml").write_text(TASK.format(data=data))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    printed = {}
    for i in range(5):
        command = [harness, "-m", "lm_eval", "--model", "dummy", "--model_args", f"pretrained=org/m{i}"]
        command += ["--tasks", "arith_local", "--include_path", folder, "--log_samples", "--seed", str(i)]
        command += ["--output_path", folder / "out"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **offline}, check=True)
        printed[f"org/m{i}"] = {
            metric: float(value) for metric, value in re.findall(r"\|(acc|acc_norm) *\|[^|]*\|([\d. ]+)\|", done.stdout)
        }
    return folder / "out", printed


@pytest.mark.parametrize("metric", ["acc", "acc_norm"])
def test_figures_come_back(runs, metric):
    folder, printed = runs
    responses, log = read_logs(folder, metric=metric)
    assert (responses.n_models, responses.n_items, responses.n_answers) == (5, N, 5 * N)
    means = dict(zip(responses.models, responses.scores.mean(axis=1), strict=True))
    # the harness prints four digits, and the means are multiples of 1/40: exact
    assert means == pytest.approx({model: told[metric] for model, told in printed.items()}, abs=1e-12)
    assert log.summaries["verdict"].tolist() == ["confirmed"] * 5
    assert all("guessing" in w or "answered alike" in w for w in log.warnings)
    key = responses.items["key"].tolist()
    assert key == ["ABCD"[i % 4] for i in range(N)]
    option = responses.option_block("arith_local")
    assert ((option == [i % 4 for i in range(N)]) == (responses.block("arith_local") == 1)).all()
    assert responses.probs_block("arith_local") is not None


def test_a_choice_is_asked_for(runs):
    with pytest.raises(ValueError, match="several metrics: acc, acc_norm"):
        read_logs(runs[0])
