"""Public data: from a server on this machine that has the sources' layouts, and from a folder at hand."""

import dataclasses
import hashlib
import io
import json
import runpy
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED, shared

import mtlirt
from mtlirt import InputError
from mtlirt.datasets import catalogue, download, fetch

ITEMS = ("q1", "q2", "q3")


def agents_file(n_agents=4, padding=0):
    lines = [
        {"subject_id": f"agent{i}", "responses": {q: int(i > j) for j, q in enumerate(ITEMS)}, "note": "x" * padding}
        for i in range(n_agents)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def offer(monkeypatch, server, name, contents, **changes):
    """Let the catalogue's set come from the server, with other files."""
    table = dataclasses.replace(catalogue.SETS[name], base=f"{server.url}/raw", **changes)
    monkeypatch.setitem(catalogue.SETS, name, table)
    for path, content in contents.items():
        server.files[f"raw/{path}"] = content
    return table


def offer_agents(monkeypatch, server, content=None, sha256=None):
    content = agents_file() if content is None else content
    file = download.RemoteFile("a/terminal.jsonl", sha256=sha256)
    return offer(
        monkeypatch, server, "terminalbench", {file.path: content}, files=(file,), counts=catalogue.Counts(4, 3, 1)
    )


def test_a_table_is_downloaded_once(server, monkeypatch, tmp_path):
    offer_agents(monkeypatch, server)
    first = fetch("terminalbench")
    assert (first.n_models, list(first.items["item"]), first.domains) == (4, list(ITEMS), ("terminalbench",))
    assert first.block("terminalbench").sum() == 0 + 1 + 2 + 3  # agent i is right where i > j
    assert fetch("terminalbench") == first
    assert fetch("terminalbench", models=["agent3", "agent1"]).n_models == 2
    assert len(server.log) == 1
    assert not list((tmp_path / "cache").rglob("*.part"))


@pytest.mark.parametrize("resumes", [True, False])
def test_a_download_that_breaks_off_is_resumed_or_starts_anew(server, monkeypatch, waits, resumes):
    content = agents_file(padding=100_000)
    offer_agents(monkeypatch, server, content, sha256=hashlib.sha256(content).hexdigest())
    server.faults["raw/a/terminal.jsonl"] = ["cut"]
    server.resumes = resumes
    assert fetch("terminalbench").n_models == 4
    first, second = server.seen("terminal.jsonl")
    assert first is None
    assert int(second.removeprefix("bytes=").rstrip("-")) > 100_000  # most of the two thirds that were sent
    assert waits == [1.0]


def test_a_part_left_by_an_earlier_process_is_resumed(server, monkeypatch, tmp_path):
    content = agents_file()
    offer_agents(monkeypatch, server, content)
    part = tmp_path / "cache" / "terminalbench" / "a" / "terminal.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:50])
    assert fetch("terminalbench").n_models == 4
    assert server.seen("terminal.jsonl") == ["bytes=50-"]


def test_a_busy_server_is_given_the_time_it_asks_for(server, monkeypatch, waits):
    offer_agents(monkeypatch, server)
    server.faults["raw/a/terminal.jsonl"] = [429, 503, 429]
    assert fetch("terminalbench").n_models == 4
    assert waits == [1.0, 1.0, 1.0]


def test_waiting_times():
    assert download.asked_wait({"Retry-After": "7"}) == 7
    assert download.asked_wait({}) is None
    assert download.asked_wait({"Retry-After": "soon"}) is None
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 28 <= download.asked_wait({"Retry-After": later}) <= 30  # the date has whole seconds
    without = download.PassingError("busy")
    assert [download.waiting_time(without, n) for n in (1, 2, 3)] == [1, 2, 4]
    with pytest.raises(InputError, match="asks to wait 3,600 seconds"):
        download.waiting_time(download.PassingError("busy", 3600), 1)


def test_a_server_that_stays_busy(server, monkeypatch, waits):
    offer_agents(monkeypatch, server)
    server.headers = {}
    server.faults["raw/a/terminal.jsonl"] = [503] * 9
    with pytest.raises(
        InputError, match=r"terminal.jsonl: the server is busy \(HTTP 503\) \(5 attempts\); .*MTLIRT_DATA"
    ):
        fetch("terminalbench")
    assert waits == [1, 2, 4, 8]


@pytest.mark.parametrize(("status", "message"), [(404, "there is no such file"), (403, "refuses the file")])
def test_a_file_that_is_not_given(server, monkeypatch, status, message):
    offer_agents(monkeypatch, server)
    server.faults["raw/a/terminal.jsonl"] = [status]
    with pytest.raises(InputError, match=f"a/terminal.jsonl: .*{message}.*{status}"):
        fetch("terminalbench")


def test_offline(server, monkeypatch, waits):
    offer_agents(monkeypatch, server)
    server.server_close()
    with pytest.raises(InputError, match=r"no network: 127.0.0.1:.*MTLIRT_DATA/terminalbench.parquet"):
        fetch("terminalbench")
    assert waits == [1, 2, 4, 8]


def test_a_published_hash_that_does_not_hold(server, monkeypatch, tmp_path):
    offer_agents(monkeypatch, server, sha256="0" * 64)
    with pytest.raises(InputError, match="sha256 that its publisher names; it was thrown away"):
        fetch("terminalbench")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_the_first_hash_is_kept_and_held_to(server, monkeypatch, tmp_path):
    offer_agents(monkeypatch, server)
    fetch("terminalbench")
    folder = tmp_path / "cache" / "terminalbench"
    kept = json.loads((folder / "sha256.json").read_text())
    assert kept == {"a/terminal.jsonl": hashlib.sha256(agents_file()).hexdigest()}
    for file in (*folder.glob("*.parquet"), folder / "a" / "terminal.jsonl"):
        file.unlink()
    server.files["raw/a/terminal.jsonl"] = agents_file(padding=1)
    with pytest.raises(InputError, match=r"sha256 of the first download, kept in .*sha256.json"):
        fetch("terminalbench")
    server.files["raw/a/terminal.jsonl"] = agents_file()
    (folder / "a" / "terminal.jsonl").write_text("spoilt on disk")
    assert fetch("terminalbench").n_models == 4


def test_a_spoilt_table_in_the_cache_is_made_anew(server, monkeypatch, tmp_path):
    offer_agents(monkeypatch, server)
    fetch("terminalbench")
    (table,) = (tmp_path / "cache" / "terminalbench").glob("*.parquet")
    table.write_bytes(table.read_bytes()[:-20])
    assert fetch("terminalbench").n_models == 4
    assert len(server.log) == 1


def test_other_numbers_than_known_are_told(server, monkeypatch):
    offer_agents(monkeypatch, server, agents_file(n_agents=5))
    for _ in range(2):
        with pytest.warns(mtlirt.DataWarning, match="terminalbench: the download has 5 models, not 4, so it is not"):
            fetch("terminalbench")


@pytest.mark.parametrize("line", ["no json", '{"subject_id": "x"}', '{"subject_id": "x", "responses": [1]}'])
def test_agents_in_another_layout(server, monkeypatch, line):
    offer_agents(monkeypatch, server, agents_file() + line.encode())
    with pytest.raises(InputError, match=r"terminal\.jsonl: line 5 has another layout"):
        fetch("terminalbench")


def zipped(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("__MACOSX/._x.json", b"junk")
        archive.writestr("model_outputs_x.json", json.dumps(entries))
    return out.getvalue()


def mmlu_pro_entry(number, pred, answer="B", category="math", options=("1", "2", "3", "N/A")):
    entry = {"question_id": number, "category": category, "options": options, "answer": answer, "pred": pred}
    return {**entry, "question": "?", "answer_index": 1, "model_outputs": "..."}


def offer_mmlu_pro(monkeypatch, server, outputs):
    files = tuple(download.RemoteFile(f"{m}.zip", model=m) for m in outputs)
    contents = {f"{m}.zip": zipped(entries) if isinstance(entries, list) else entries for m, entries in outputs.items()}
    offer(monkeypatch, server, "mmlu_pro", contents, files=files, counts=catalogue.Counts(3, 2, 2, missing=1))


def test_mmlu_pro(server, monkeypatch):
    outputs = {
        "x": [mmlu_pro_entry(7, "B"), mmlu_pro_entry(8, None, "A", "law")],
        "y": [mmlu_pro_entry(7, "C"), mmlu_pro_entry(8, "A", "A", "law")],
        "z": [mmlu_pro_entry(7, "C", answer="C")],  # another version of the item: right by its own key
    }
    offer_mmlu_pro(monkeypatch, server, outputs)
    r = fetch("mmlu_pro")
    assert r.domains == ("math", "law")
    assert list(r.items["key"]) == ["B", "A"]
    assert list(r.items["n_options"]) == [3, 3]
    np.testing.assert_array_equal(r.block("math").ravel(), [1, 0, 1])
    np.testing.assert_array_equal(r.block("law").ravel(), [0, 1, -1])
    np.testing.assert_array_equal(r.option_block("math").ravel(), [1, 2, 2])
    assert fetch("mmlu_pro", tasks=["l*"], models=["y"]).n_answers == 1


def test_only_the_files_of_the_models_asked_for(server, monkeypatch):
    offer_mmlu_pro(monkeypatch, server, {m: [mmlu_pro_entry(7, "B")] for m in "xyz"})
    assert list(fetch("mmlu_pro", models=["y"]).models) == ["y"]
    assert [path for _, path, _ in server.log] == ["raw/y.zip"]
    with pytest.raises(InputError, match="mmlu_pro has no model 'w'; it has x, y, z"):
        fetch("mmlu_pro", models=["w"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs", "is not a zip of JSON lists.*removed from the cache"),
        (zipped([mmlu_pro_entry(7, "B")])[:-40], "is not a zip of JSON lists.*removed from the cache"),
        ([], "holds no answers"),
        ([{"question_id": 7}], "answer 1 has another layout"),
    ],
)
def test_mmlu_pro_that_is_broken(server, monkeypatch, content, message):
    offer_mmlu_pro(monkeypatch, server, {"x": content})
    with pytest.raises(InputError, match=f"x.zip: {message}"):
        fetch("mmlu_pro")


def test_lawbench(server, monkeypatch):
    said = {
        "1-2": ["正确答案：B。", "A或C", "不知道"],
        "2-8": ["[正确答案]E<eoa>", "[正确答案]A<EoA>", "[正确答案]A<eoa>"],
    }
    refr = {"1-2": "正确答案：B。", "2-8": "[正确答案]E<eoa>"}
    files, contents = [], {}
    for task, texts in said.items():
        file = download.RemoteFile(f"m/{task}.json", model="m", task=task)
        answers = {str(i): {"origin_prompt": [], "prediction": t, "refr": refr[task]} for i, t in enumerate(texts)}
        files.append(file)
        cut = "道".encode()
        contents[file.path] = json.dumps(answers, ensure_ascii=False).encode().replace(cut, cut[:2])
    offer(monkeypatch, server, "lawbench", contents, files=tuple(files), counts=catalogue.Counts(1, 6, 2))
    r = fetch("lawbench")
    assert list(r.items["item"]) == ["1-2#0", "1-2#1", "1-2#2", "2-8#0", "2-8#1", "2-8#2"]
    assert r.domains == ("knowledge_qa", "argument_mining")
    np.testing.assert_array_equal(r.block("knowledge_qa"), [[1, 0, 0]])
    np.testing.assert_array_equal(r.option_block("knowledge_qa"), [[1, -1, -1]])
    np.testing.assert_array_equal(r.option_block("argument_mining"), [[4, -1, 0]])  # <EoA> holds an E too
    assert list(r.items["n_options"]) == [4, 4, 4, 5, 5, 5]


def test_the_catalogue_agrees_with_the_data_at_hand():
    assert [f.model for f in catalogue.SETS["mmlu_pro"].files] == sorted(
        pd.read_parquet(shared("data", "mmlu_pro.parquet"))["model"].unique()
    )
    letters = pd.read_parquet(shared("data", "lawbench_options_wide.parquet"))
    assert list(dict.fromkeys(f.model for f in catalogue.SETS["lawbench"].files)) == list(letters.columns[1:])


@pytest.mark.parametrize("name", ["mmlu_pro", "lawbench", "swebench_verified", "terminalbench"])
def test_data_at_hand_are_read_without_network(name, server, monkeypatch):
    shared("data")
    monkeypatch.setenv("MTLIRT_DATA", str(SHARED / "data"))
    r = fetch(name)
    counts = catalogue.SETS[name].counts
    assert (r.n_models, r.n_items, len(r.domains)) == (counts.models, counts.items, counts.domains)
    assert r.n_models * r.n_items - r.n_answers == counts.missing
    assert not server.log


def test_lawbench_at_hand_has_options(monkeypatch):
    shared("data")
    monkeypatch.setenv("MTLIRT_DATA", str(SHARED / "data"))
    r = fetch("lawbench", tasks=["case_analysis"])
    assert r.option_block("case_analysis").shape == (51, 500)
    assert (r.option_block("case_analysis") == -1).mean() > 0.3  # 61 % of all cells name several options or none


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", "_wide.csv.gz"])
def test_kinds_of_tables_at_hand(ending, tmp_path, monkeypatch):
    monkeypatch.setenv("MTLIRT_DATA", str(tmp_path))
    long = pd.DataFrame(
        {"model": ["x", "x", "y", "y"], "domain": "terminalbench", "item": ["a", "b"] * 2, "score": [1, 0, 1, 1]}
    )
    path = tmp_path / f"terminalbench{ending}"
    if "_wide" in ending:
        long.pivot_table(index="model", columns="item", values="score").reset_index().to_csv(path, index=False)
    elif ending == ".jsonl":
        long.to_json(path, orient="records", lines=True)
    else:
        long.to_csv(path, index=False)
    assert fetch("terminalbench") == mtlirt.Responses.from_long(long)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mmlu"}, "there is no set 'mmlu'; there are mmlu_pro, .*open_llm_leaderboard_v2"),
        ({"name": "terminalbench", "models": "agent1"}, "models must be a list of names"),
        ({"name": "terminalbench", "tasks": []}, "tasks must be a list of names"),
        ({"name": "terminalbench", "models": ["nobody"]}, "nobody"),
        ({"name": "terminalbench", "tasks": ["x*"]}, r"no task 'x\*'; there are terminalbench"),
        ({"name": "open_llm_leaderboard_v2"}, "has thousands of models: name those you want"),
    ],
)
def test_arguments_that_cannot_be(arguments, message, server, monkeypatch):
    offer_agents(monkeypatch, server)
    with pytest.raises(InputError, match=message):
        fetch(**arguments)


def test_a_data_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("MTLIRT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="MTLIRT_DATA: there is no folder"):
        fetch("terminalbench")


def test_a_cache_that_cannot_be_written(server, monkeypatch, tmp_path):
    offer_agents(monkeypatch, server)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MTLIRT_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot be written .*MTLIRT_CACHE"):
        fetch("terminalbench")


def test_importing_is_light():
    code = (
        "import sys, mtlirt.datasets; print([m for m in ('pooch', 'requests', 'huggingface_hub') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


RAW = Path(__file__).parents[1] / "data-raw"
FIXED = [s for s in catalogue.SETS.values() if isinstance(s, catalogue.Table)]


@pytest.mark.parametrize("table", FIXED, ids=lambda table: table.name)
def test_the_records_agree_with_the_catalogue(table):
    script, row = (RAW / f"{table.name}.py").read_text(), (RAW / "README.md").read_text()
    for fact in (table.commit, table.repository, table.licence):
        assert fact in script
        assert fact in row
        assert fact in f"{table.base} {fetch.__doc__} {table.commit}"


def test_a_script_writes_the_table(server, monkeypatch, tmp_path, capsys):
    offer_agents(monkeypatch, server)
    out = tmp_path / "terminalbench.parquet"
    monkeypatch.setattr(sys, "argv", ["terminalbench.py", str(out), "--raw", str(tmp_path / "raw")])
    monkeypatch.syspath_prepend(str(RAW))
    runpy.run_path(str(RAW / "terminalbench.py"), run_name="__main__")
    assert "12 answers, 4 models x 3 items" in capsys.readouterr().out
    assert (tmp_path / "raw" / "a" / "terminal.jsonl").read_bytes() == agents_file()
    assert mtlirt.read_responses(out) == fetch("terminalbench")
