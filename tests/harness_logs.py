"""Writes logs as lm-evaluation-harness and the Open LLM Leaderboard do, small and with known answers."""

import hashlib
import json
from pathlib import Path

import pandas as pd

RUN = "2024-05-06T07-08-09.123456"


def content_of(i, task="sums", options=3, **more):
    return {
        "question": f"{task} {i}?",
        "choices": [f"{task} {i} {k}" for k in range(options)],
        "answer": i % options,
    } | more


def row(i, right, task="sums", options=3, old=False, **changes):
    """A row whose most likely option is the key where `right`, else the one after it."""
    content = content_of(i, task, options)
    key = content["answer"]
    chosen = key if right else (key + 1) % options
    values = [-1.0 if k == chosen else -2.0 - k / 8 for k in range(options)]
    context = f"Q: {content['question']}\nA:"
    out = {"doc_id": i, "doc": content, "target": str(key) if not old else key}
    if old:
        out["arguments"] = [[context, f" {text}"] for text in content["choices"]]
        out["resps"] = [[[v, False]] for v in values]
        out["filtered_resps"] = [[v, False] for v in values]
    else:
        out["arguments"] = {
            f"gen_args_{k}": {"arg_0": context, "arg_1": f" {t}"} for k, t in enumerate(content["choices"])
        }
        out["resps"] = [[[str(v), "False"]] for v in values]
        out["filtered_resps"] = [[str(v), "False"] for v in values]
        out |= {"filter": "none", "metrics": ["acc"]}
        out["doc_hash"] = sha(json.dumps(content, indent=2, ensure_ascii=False))
        out["prompt_hash"] = sha(context)
        out["target_hash"] = sha(str(key))
    return out | {"acc": float(right)} | changes


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write_rows(folder, rows, task="sums", run=RUN, suffix="jsonl"):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{run}.{suffix}"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def write_results(folder, model, means, run=RUN, n=None, version=1.0, shots=0, **config):
    """means : task to mean, for metric acc."""
    content = {
        "results": {task: {"alias": task, "acc,none": mean, "acc_stderr,none": 0.1} for task, mean in means.items()},
        "group_subtasks": {task: [] for task in means},
        "versions": dict.fromkeys(means, version),
        "n-shot": dict.fromkeys(means, shots),
        "higher_is_better": {task: {"acc": True} for task in means},
        "n-samples": {task: {"original": n, "effective": n} for task in means},
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=float16"} | config,
        "model_name": model,
    }
    path = Path(folder) / f"results_{run}.json"
    path.write_text(json.dumps(content))
    return path


def write_model(folder, model, right, task="sums", run=RUN, options=3, old=False, **results):
    """Samples and results of one model; right : one truth for each item."""
    path = write_rows(folder, [row(i, r, task, options, old) for i, r in enumerate(right)], task, run)
    write_results(folder, model, {task: sum(right) / len(right)}, run, len(right), **results)
    return path


def write_details(folder, task, right, run="2023-08-29T18:20:09.701638", newer=False, options=4, changes=()):
    """A parquet file of the Open LLM Leaderboard, version 1, in its older or newer columns."""
    rows = []
    for i, r in enumerate(right):
        content = content_of(i, task, options)
        key = content["answer"]
        chosen = key if r else (key + 1) % options
        values = [-1.0 if k == chosen else -2.0 - k / 8 for k in range(options)]
        text = f"{content['question']}\nAnswer:"
        hashes = {
            name: sha(f"{name} {text}")[:16] for name in ("example", "full_prompt", "input_tokens", "cont_tokens")
        }
        one = {"full_prompt": f"shots\n{text}", "choices": content["choices"], "predictions": values, "hashes": hashes}
        one |= {"input_tokens": [1, 2], "cont_tokens": [3], "truncated": False}
        if newer:
            one |= {
                "example": text,
                "instruction": "",
                "gold_index": [key],
                "metrics": {"acc": float(r), "acc_norm": float(r)},
            }
        else:
            one |= {"query": text, "gold": key, "acc": float(r), "acc_norm": float(r)}
        rows.append(one | dict(changes))
    folder = Path(folder) / run
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"details_harness|{task}|5_{run}.parquet"
    pd.DataFrame(rows).to_parquet(path)
    return path
