"""Details repositories on a server on this machine that answers as the Hub does."""

import builtins
import io
import json
import sys
import types

import pandas as pd
import pytest
from harness_logs import write_model
from loopback import COMMIT

import mtlirt
from mtlirt import InputError
from mtlirt.datasets import fetch

V1, V2 = "open_llm_leaderboard_v1", "open_llm_leaderboard_v2"
OLD, NEW = "2024-06-16T18-29-35.123456", "2024-06-17T02-10-00.000001"


@pytest.fixture
def read(monkeypatch):
    """In place of the reader: notes what it is given."""
    calls = []

    def read_logs(paths, **options):
        calls.append(([*map(str, paths)], options))
        table = pd.DataFrame({"model": ["x"], "item": ["q"], "score": [1]})
        return mtlirt.Responses.from_long(table, domain=None), None

    monkeypatch.setitem(sys.modules, "mtlirt.readers.logs", types.SimpleNamespace(read_logs=read_logs))
    return calls


def sample(task, stamp=NEW, model="org__m", ending="json"):
    return f"{model}/samples_leaderboard_{task}_{stamp}.{ending}"


def v2(server, *names, model="org__m", content=b'{"doc_id": 0}\n'):
    files = dict.fromkeys(("README.md", *names), content)
    server.repositories[f"open-llm-leaderboard/{model}-details"] = files
    return files


def names(call):
    return [path.rsplit("/", 1)[1] for path in call[0]]


def test_version_2_takes_the_newest_run_of_each_task_asked_for(server, read, tmp_path):
    v2(server, sample("mmlu_pro", OLD), sample("mmlu_pro"), sample("bbh_snarks"), sample("ifeval", ending="jsonl"))
    fetch(V2, models=["org/m"], tasks=["mmlu_pro", "bbh_*"])
    (call,) = read
    assert call[1] == {"format": "openllm-v2"}
    assert names(call) == [f"samples_leaderboard_bbh_snarks_{NEW}.json", f"samples_leaderboard_mmlu_pro_{NEW}.json"]
    assert all(path.startswith(str(tmp_path / "cache" / V2 / "org__m-details")) for path in call[0])
    assert all(path.rsplit("/", 2)[1] == "org__m" for path in call[0])
    assert not server.seen(f"ifeval_{NEW}.jsonl")


def test_all_tasks_of_several_models(server, read):
    v2(server, sample("mmlu_pro"), sample("ifeval", ending="jsonl"))
    v2(server, sample("ifeval", model="other__n"), model="other__n")
    fetch(V2, models=["org/m", "other/n", "org/m"])
    assert len(read[0][0]) == 3
    with pytest.raises(InputError, match=r"other__n-details: there is no task 'mmlu_pro'; there are ifeval"):
        fetch(V2, models=["org/m", "other/n"], tasks=["mmlu_pro"])


def detail(task, stamp=NEW):
    return f"{stamp}/details_harness|{task}|5_{stamp}.parquet"


@pytest.fixture(scope="session")
def parquet():
    out = io.BytesIO()
    pd.DataFrame({"acc": [0.0, 1.0] * 500}).to_parquet(out)
    return out.getvalue()


def v1(server, files):
    server.repositories["open-llm-leaderboard-old/details_org__m"] = files


@pytest.mark.parametrize("task", ["mmlu", "hendrycksTest-*", "harness|hendrycksTest-*"])
def test_version_1_takes_all_runs(server, read, parquet, task):
    wanted = [detail("hendrycksTest-anatomy", OLD), detail("hendrycksTest-anatomy"), detail("hendrycksTest-virology")]
    v1(server, dict.fromkeys([*wanted, detail("arc:challenge"), "results.json"], parquet))
    fetch(V1, models=["org/m"], tasks=[task])
    assert read[0][1] == {"format": "openllm-v1"}
    assert sorted(names(read[0])) == sorted(w.split("/")[1] for w in wanted)


def test_what_is_there_is_not_downloaded_again(server, read):
    v2(server, sample("mmlu_pro"))
    for _ in range(2):
        fetch(V2, models=["org/m"])
    assert len(server.seen(f"mmlu_pro_{NEW}.json")) == 1


def test_a_download_that_breaks_off_is_resumed(server, read, waits, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)  # its client keeps whole chunks only
    content = b'{"doc_id": 0}\n' * 200_000
    path = sample("mmlu_pro")
    v2(server, path, content=content)
    server.faults[f"datasets/open-llm-leaderboard/org__m-details/resolve/{COMMIT}/{path}"] = ["cut"]
    fetch(V2, models=["org/m"])
    first, second = server.seen(path)
    assert first is None
    assert second.startswith("bytes=")
    with open(read[0][0][0], "rb") as file:
        assert file.read() == content


def test_a_busy_server_is_given_the_time_it_asks_for(server, read, waits):
    v2(server, sample("mmlu_pro"))
    server.faults["api/datasets/open-llm-leaderboard/org__m-details"] = [429, 429]
    fetch(V2, models=["org/m"])
    assert waits == [1.0, 1.0]


def test_a_server_that_stays_busy(server, read, waits):
    v2(server, sample("mmlu_pro"))
    server.headers = {}
    server.faults["api/datasets/open-llm-leaderboard/org__m-details"] = [503] * 9
    with pytest.raises(InputError, match=r"the server is busy \(HTTP 503\) \(5 attempts\); try again later"):
        fetch(V2, models=["org/m"])
    assert waits == [1, 2, 4, 8]


def test_a_repository_that_is_not_there(server, read):
    with pytest.raises(InputError, match=r"open-llm-leaderboard/org__m-details: there is no such repository"):
        fetch(V2, models=["org/m"])


def test_a_gated_repository(server, read):
    v2(server, sample("mmlu_pro"))
    server.gated.add("open-llm-leaderboard/org__m-details")
    with pytest.raises(InputError, match=rf"{server.url}/datasets/open-llm-.*: is gated; accept the terms .*HF_TOKEN"):
        fetch(V2, models=["org/m"])


def test_a_file_that_is_listed_but_not_there(server, read):
    v2(server, sample("mmlu_pro"))[sample("ifeval")] = None
    with pytest.raises(InputError, match=r"there is no file 'org__m/samples_leaderboard_ifeval_.*' any more"):
        fetch(V2, models=["org/m"])


def test_a_repository_without_answers(server, read):
    v2(server)
    with pytest.raises(
        InputError, match=r"org__m-details: holds no file of answers as open_llm_leaderboard_v2 has them"
    ):
        fetch(V2, models=["org/m"])


def test_a_truncated_parquet_is_removed_and_fetched_anew(server, read, parquet, tmp_path):
    name = detail("gsm8k")
    v1(server, {name: parquet[:-30]})
    with pytest.raises(
        InputError, match=r"details_harness\|gsm8k.*: is not a whole parquet file .*removed from the cache"
    ):
        fetch(V1, models=["org/m"])
    assert not list((tmp_path / "cache" / V1).rglob("details_*.parquet"))
    v1(server, {name: parquet})
    fetch(V1, models=["org/m"])
    assert len(names(read[0])) == 1


def test_a_hash_that_does_not_hold(server, read, parquet, tmp_path):
    name = detail("gsm8k")
    v1(server, {name: parquet})
    server.hashes[name] = "0" * 64
    with pytest.raises(InputError, match=r"gsm8k.*: does not have the sha256 that the Hub names; it was removed"):
        fetch(V1, models=["org/m"])
    assert not list((tmp_path / "cache" / V1).rglob("details_*.parquet"))


def test_truncated_lines(server, read):
    v2(server, sample("ifeval"), content=b'[{"doc_id": 0}, {"doc_')
    with pytest.raises(InputError, match=r"ifeval_.*json: ends within an answer"):
        fetch(V2, models=["org/m"])


def test_offline(server, read, waits):
    v2(server, sample("mmlu_pro"), sample("ifeval"))
    fetch(V2, models=["org/m"], tasks=["ifeval"])
    server.shutdown()
    server.server_close()
    fetch(V2, models=["org/m"], tasks=["ifeval"])
    assert read[1] == read[0]
    with pytest.raises(InputError, match=r"no network: .* of open-llm-.* 1 of 2 files are not in the cache"):
        fetch(V2, models=["org/m"])
    with pytest.raises(InputError, match=rf"no network: .*MTLIRT_DATA/{V2}/other__n-details/"):
        fetch(V2, models=["other/n"])
    assert waits == []


@pytest.mark.parametrize("folder", ["org__m", "org__m-details"])
def test_files_at_hand(folder, server, read, tmp_path, monkeypatch):
    monkeypatch.setenv("MTLIRT_DATA", str(tmp_path))
    path = tmp_path / V2 / folder / sample("mmlu_pro")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    fetch(V2, models=["org/m"])
    assert read[0][0] == [str(path)]
    assert not server.log
    with pytest.raises(InputError, match="there is no folder other__n-details or other__n of the model 'other/n'"):
        fetch(V2, models=["other/n"])


def test_without_the_extra(server, read, monkeypatch):
    true_import = builtins.__import__

    def no_hub(name, *rest):
        if name.startswith("huggingface_hub"):
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_hub)
    with pytest.raises(InputError, match=r"pip install 'mtlirt\[hub\]'"):
        fetch(V2, models=["org/m"])


def test_the_listing_is_kept_beside_the_files(server, read, tmp_path):
    v2(server, sample("mmlu_pro"))
    fetch(V2, models=["org/m"])
    kept = json.loads((tmp_path / "cache" / V2 / "org__m-details" / "listing.json").read_text())
    assert kept == {"commit": COMMIT, "files": {"README.md": None, sample("mmlu_pro"): None}}


def test_what_lies_beside_the_answers_comes_along(server, read):
    beside = [f"org__m/results_{stamp}.json" for stamp in (OLD, NEW)]
    v2(server, sample("mmlu_pro", OLD), sample("mmlu_pro"), *beside)
    fetch(V2, models=["org/m"])
    assert names(read[0]) == [f"results_{NEW}.json", f"samples_leaderboard_mmlu_pro_{NEW}.json"]


def test_version_2_is_read(server, tmp_path):
    """The files that the harness writes, through the true reader: right answers 1, 1, 0 and 0, 1, 1."""
    for model, right in (("org/a", [1, 1, 0]), ("org/b", [0, 1, 1])):
        key = model.replace("/", "__")
        path = write_model(tmp_path / "made" / key, model, right, task="leaderboard_mmlu_pro")
        results = path.with_name(path.name.replace("samples_leaderboard_mmlu_pro", "results")).with_suffix(".json")
        server.repositories[f"open-llm-leaderboard/{key}-details"] = {
            f"{key}/{p.name.removesuffix('l')}": p.read_bytes() for p in (path, results)
        }
    r = fetch(V2, models=["org/a", "org/b"], tasks=["mmlu_pro"])
    assert list(r.models) == ["org/a", "org/b"]
    assert r.scores.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_version_1_is_read(server):
    """Two runs of one model, keys 0 and 1: the reader takes the later run, right and wrong."""
    files = {}
    for stamp, chosen in ((OLD, [1, 0]), (NEW, [0, 0])):
        table = pd.DataFrame({"query": ["one?", "two?"], "choices": [["x", "y"]] * 2, "gold": [0, 1]})
        table["predictions"] = [[-1.0, -2.0] if c == 0 else [-2.0, -1.0] for c in chosen]
        table["acc"] = [float(c == g) for c, g in zip(chosen, table["gold"], strict=True)]
        table["hashes"] = [{"example": h, "full_prompt": h} for h in ("ab" * 8, "cd" * 8)]
        out = io.BytesIO()
        table.to_parquet(out)
        files[detail("hendrycksTest-anatomy", stamp)] = out.getvalue()
    v1(server, files)
    r = fetch(V1, models=["org/m"], tasks=["mmlu"])
    assert list(r.models) == ["org/m"]
    assert r.scores.tolist() == [[1, 0]]
