"""Reading many lm-evaluation-harness logs: rate and peak memory of the whole import, one process and two.

40 models x 50 tasks x 200 rows by default: 2,000 files with log-likelihoods of four options, about 2.5 kB a row,
made in a temporary folder. Run: python -m benchmarks.logs
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import clock, machine, memory_of_all

RUN = "2024-05-06T07-08-09.123456"
CONTEXT = "The following are multiple choice questions. " + "Some words of a question and its answer. " * 8


def write_logs(folder: Path, models: int, tasks: int, rows: int) -> int:
    """Writes the logs and says how many bytes they have."""
    rng = np.random.default_rng(0)
    for m in range(models):
        here = folder / f"org__model{m}"
        here.mkdir()
        means = {}
        for t in range(tasks):
            task, key = f"task{t:02d}", np.arange(rows) % 4
            logprobs = rng.normal(-9, 1, (rows, 4))
            logprobs[np.arange(rows), key] += m / models * 2
            right = logprobs.argmax(axis=1) == key
            means[task] = float(right.mean())
            text = "\n".join(_row(task, i, logprobs[i], int(key[i]), bool(right[i])) for i in range(rows))
            (here / f"samples_{task}_{RUN}.jsonl").write_text(text + "\n")
        (here / f"results_{RUN}.json").write_text(json.dumps(_results(f"org/model{m}", means, rows)))
    return sum(p.stat().st_size for p in folder.rglob("*.json*"))


def _row(task: str, i: int, logprobs: np.ndarray, key: int, right: bool) -> str:
    question = f"{task}, question {i}: which of these? "
    content = {"question": question, "choices": [f"answer {i} {k}" for k in range(4)], "answer": key}
    arguments = {f"gen_args_{k}": {"arg_0": CONTEXT + question, "arg_1": f" answer {i} {k}"} for k in range(4)}
    answers = [[str(x), "False"] for x in logprobs]
    return json.dumps(
        {
            "doc_id": i,
            "doc": content,
            "target": str(key),
            "arguments": arguments,
            "resps": [[a] for a in answers],
            "filtered_resps": answers,
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": hashlib.sha256(question.encode()).hexdigest(),
            "prompt_hash": hashlib.sha256((CONTEXT + question).encode()).hexdigest(),
            "target_hash": hashlib.sha256(str(key).encode()).hexdigest(),
            "acc": float(right),
        }
    )


def _results(model: str, means: dict[str, float], rows: int) -> dict[str, object]:
    return {
        "results": {task: {"acc,none": mean} for task, mean in means.items()},
        "group_subtasks": {task: [] for task in means},
        "versions": dict.fromkeys(means, 1),
        "n-shot": dict.fromkeys(means, 5),
        "n-samples": {task: {"original": rows, "effective": rows} for task in means},
        "model_name": model,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--rows", type=int, default=200)
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "logs"
        folder.mkdir()
        size = write_logs(folder, options.models, options.tasks, options.rows)
        files = options.models * options.tasks
        print(f"{files:,} files, {files * options.rows:,} rows, {size / 2**30:.2f} GiB")
        for jobs in (1, 2):
            out = Path(name) / f"answers{jobs}.parquet"
            command = [sys.executable, "-m", "mtlirt", "import", folder, "-o", out, "--jobs", str(jobs), "--quiet"]
            with memory_of_all() as peak, clock() as work:
                subprocess.run([str(c) for c in command], check=True)
            rate = files * options.rows / work.wall
            print(
                f"{jobs} of 2 cores: {work.wall:.1f} s, {work.cpu:.1f} CPU s, {rate:,.0f} rows/s, "
                f"{size / 2**20 / work.wall:.0f} MiB/s, peak {peak[0]:.2f} GiB"
            )


if __name__ == "__main__":
    main()
