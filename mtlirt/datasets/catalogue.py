"""The sets that `fetch` knows: where they are, under which licence, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from mtlirt.datasets import tidy
from mtlirt.datasets.download import RemoteFile

_RAW = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Counts:
    """Numbers of a complete set, to compare a download with."""

    models: int
    items: int
    domains: int
    missing: int = 0


@dataclass(frozen=True)
class Table:
    """A set of files that a commit fixes.

    Attributes
    ----------
    name, repository, licence : as users see them.
    commit, base : the commit, and the address that the files' paths are relative to.
    files : what to download.
    to_long : from pairs of file and local copy to the long table.
    counts : of the complete set.
    """

    name: str
    repository: str
    licence: str
    commit: str
    base: str
    files: tuple[RemoteFile, ...]
    to_long: Callable[[tidy.Files], pd.DataFrame]
    counts: Counts


@dataclass(frozen=True)
class Details:
    """A family of repositories on the Hub, one a model, that `mtlirt.readers.logs.read_logs` understands.

    Attributes
    ----------
    name, licence : as users see them.
    repository : its name, with {key} for the organisation and the model, joined by "__".
    folders : names of a model's folder that tell the reader whose answers they are; the first is the repository's.
    format : the reader's word for its files.
    file : pattern of the names of files of answers, with groups task and stamp.
    beside : a file that may lie beside them, or at the top, and says more about a run, with {stamp} for its time.
    tasks : those that are meant where none is named, None for all.
    newest : whether of each task only the run with the latest time stamp is wanted; else the reader chooses.
    """

    name: str
    licence: str
    repository: str
    folders: tuple[str, ...]
    format: str
    file: str
    beside: str
    tasks: tuple[str, ...] | None
    newest: bool


def _github(name: str, repository: str, commit: str) -> dict[str, str]:
    return {"name": name, "repository": repository, "commit": commit, "base": f"{_RAW}/{repository}/{commit}"}


_MMLU_PRO = """
DeepSeek-Coder-V2 Llama-2-13b-hf Llama-2-70b-hf Llama-2-7b-hf Meta-Llama-3-70B Meta-Llama-3-8B Meta-Llama-3_1-70B
Meta-Llama-3_1-70B-Instruct Meta-Llama-3_1-8B Meta-Llama-3_1-8B-Instruct Mistral-7B-Instruct-v0.1
Mistral-7B-Instruct-v0.2 Mistral-7B-v0.1 Mistral-7B-v0.2-hf Mixtral-8x7B-Instruct-v0.1 Mixtral-8x7B-v0.1
Phi-3-mini-4k-instruct Qwen1.5-110B Qwen1.5-72B-Chat Qwen1.5-7B-Chat Yi-34B Yi-6B Yi-6b-Chat c4ai-command-r-v01
gemini-1.5-flash-002 gemini-1.5-pro-002 gemma-7b jamba-1.5-large mathstral-7B
"""

_LAWBENCH = """
GPT-3.5-turbo-0613 GPT4 alpaca-7b-hf baichuan-13b-base-hf baichuan-13b-chat-hf baichuan-7b-hf belle-2-13b-hf
chatglm2-6b-hf chatlaw-13b-hf chatlaw-33b-hf chinese-alpaca-2-7b-hf chinese-llama-2-7b-hf freewilly2_70b-hf
fuzi-mingcha-7b-hf gogpt-7b hanfei-1.0-7b-hf internlm-7b-hf internlm-chat-7b-8k-hf internlm-chat-7b-hf
lawgpt-7b-beta1.0-hf lawgpt-7b-beta1.1-hf lawyer-llama-13b-hf lexilaw-6b-hf llama-13b llama-2-13b llama-2-13b-chat
llama-2-70b llama-2-70b-chat llama-2-7b llama-2-7b-chat llama-2-chinese-13b-hf llama-2-chinese-7b-hf llama-30b
llama-65b llama-7b moss-moon-003-base-hf moss-moon-003-sft-hf mpt-7b-hf mpt-instruct-7b-hf qwen-7b-chat-hf qwen-7b-hf
tigerbot-base-7b-hf tigerbot-sft-7b-hf vicuna-13b-hf vicuna-33b-hf vicuna-7b-hf wisdom-interrogatory-7b-hf
wizardlm-7b-hf xverse-13b-hf yulan-chat-2-13b-fp16-hf ziya-llama-13b-hf
"""

_AGENTS = "dariakryvosheieva/agent-psychometrics"

_TABLES = (
    Table(
        **_github("mmlu_pro", "TIGER-AI-Lab/MMLU-Pro", "964a136e98ff17f81b0cd11c15c70784f6ee4378"),
        licence="Apache-2.0",
        files=tuple(RemoteFile(f"eval_results/model_outputs_{m}_5shots.zip", model=m) for m in _MMLU_PRO.split()),
        to_long=tidy.mmlu_pro,
        counts=Counts(models=29, items=12_032, domains=14, missing=1_713),
    ),
    Table(
        **_github("swebench_verified", _AGENTS, "8cbebf324a137c33a49120a8eab1216546498b60"),
        licence="MIT",
        files=(RemoteFile("out/chris_irt/swebench_verified.jsonl"),),
        to_long=partial(tidy.agents, domain="swebench_verified"),
        counts=Counts(models=134, items=500, domains=1),
    ),
    Table(
        **_github("terminalbench", _AGENTS, "3d28b557baf8eaae60740085dd3c2c4e94cede86"),
        licence="MIT",
        files=(RemoteFile("out/chris_irt/terminal_bench_2.0.jsonl"),),
        to_long=partial(tidy.agents, domain="terminalbench"),
        counts=Counts(models=112, items=89, domains=1),
    ),
    Table(
        **_github("lawbench", "open-compass/LawBench", "94e0f4108b0043adac9e365d31a7cd7521a26779"),
        licence="Apache-2.0",
        files=tuple(
            RemoteFile(f"predictions/zero_shot/{m}/{t}.json", model=m, task=t)
            for m in _LAWBENCH.split()
            for t in ("1-2", "3-6", "2-8")
        ),
        to_long=tidy.lawbench,
        counts=Counts(models=51, items=1_500, domains=3),
    ),
)

_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT[\d.:_-]+)"
_DETAILS = (
    Details(
        name="open_llm_leaderboard_v1",
        licence="see the repositories and the benchmarks",
        repository="open-llm-leaderboard-old/details_{key}",
        folders=("details_{key}",),
        format="openllm-v1",
        file=rf"details_(?P<task>.+)_{_STAMP}\.parquet",
        beside="results_{stamp}.json",
        tasks=("arc", "gsm8k", "hellaswag", "mmlu", "truthfulqa", "winogrande"),
        newest=False,
    ),
    Details(
        name="open_llm_leaderboard_v2",
        licence="see the repositories and the benchmarks",
        repository="open-llm-leaderboard/{key}-details",
        folders=("{key}-details", "{key}"),
        format="openllm-v2",
        file=rf"samples_leaderboard_(?P<task>.+)_{_STAMP}\.jsonl?",
        beside="results_{stamp}.json",
        tasks=None,
        newest=True,
    ),
)

SETS: dict[str, Table | Details] = {s.name: s for s in (*_TABLES, *_DETAILS)}
