"""Files: kinds, long and wide, column names, and what is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest

from mtlirt import InputError, read_responses

LONG = pd.DataFrame(
    {
        "model": ["007", "007", "x", "x"],
        "domain": ["math", "law", "math", "law"],
        "item": ["1", "1", "1", "1"],
        "score": [1, 0, 0, 1],
    }
)
WIDE = pd.DataFrame({"agent": ["007", "x"], "math.1": [1, 0], "law.1": [0.0, None]})


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.jsonl"])
def test_long_tables_of_all_kinds(tmp_path, name):
    r = read_responses(write(LONG, tmp_path / name))
    assert list(r.models) == ["007", "x"]  # names stay text
    assert list(r.items["item"]) == ["1", "1"]
    assert r.domains == ("math", "law")
    np.testing.assert_array_equal(r.scores, [[1, 0], [0, 1]])


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.jsonl"])
def test_wide_tables_of_all_kinds(tmp_path, name):
    r = read_responses(write(WIDE, tmp_path / name), domains="prefix")
    assert list(r.models) == ["007", "x"]
    assert r.domains == ("math", "law")
    np.testing.assert_array_equal(r.scores, [[1, 0], [0, np.nan]])


def test_own_column_names(tmp_path):
    own = LONG.set_axis(["llm", "subject", "question", "acc"], axis=1)
    path = write(own, tmp_path / "a.csv")
    r = read_responses(path, model="llm", domain="subject", item="question", score="acc")
    assert r.fingerprint == read_responses(write(LONG, tmp_path / "b.csv")).fingerprint
    with pytest.raises(InputError, match="'model'"):
        read_responses(path, score="acc", item="question")


def test_a_changed_name_must_exist(tmp_path):
    path = write(LONG, tmp_path / "a.csv")
    with pytest.raises(InputError, match="'answer'"):
        read_responses(path, option="answer")
    with pytest.raises(InputError, match="'subject'"):
        read_responses(path, domain="subject")


def test_options_are_read_where_present(tmp_path):
    table = LONG.assign(option=["A", "B", "B", "A"], key=["A", "A", "A", "A"], n_options=4, trials=1)
    r = read_responses(write(table, tmp_path / "a.csv"))
    assert r.labels == ("A", "B", "C", "D")
    assert r.option_block("law").tolist() == [[1], [0]]
    unscored = read_responses(write(table.drop(columns="score"), tmp_path / "b.csv"))
    np.testing.assert_array_equal(unscored.scores, r.scores)


def test_long_tables_without_domains(tmp_path):
    table = LONG.drop(columns="domain").assign(item=["math.1", "law.1"] * 2)
    path = write(table, tmp_path / "a.csv")
    assert read_responses(path).domains == ("all",)
    assert read_responses(path, domains="prefix").domains == ("math", "law")
    assert read_responses(path, domains={"math.1": "m", "law.1": "l"}).domains == ("m", "l")


def test_items_without_a_prefix(tmp_path):
    path = write(WIDE.rename(columns={"law.1": "law1"}), tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a\.csv: item 'law1' has no dot"):
        read_responses(path, domains="prefix")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "no such file"),
        ("empty.csv", b"", "empty"),
        ("notes.txt", b"hello", "unknown kind of file"),
        ("binary.csv", bytes(range(256)) * 4, "cannot be read as a table"),
        ("binary.parquet", bytes(range(256)), "cannot be read as a table"),
        ("cut.csv.gz", gzip.compress(b"model,item,score\nx,q,1\n" * 50)[:40], "cannot be read as a table"),
        ("bad.jsonl", b'{"model": "x"\n{', "cannot be read as a table"),
        ("ragged.csv", b"model,item,score\nx,q,1\nx,q,1,2,3\n", "cannot be read as a table"),
        ("head.csv", b"model,domain,item,score\n", "no rows"),
        ("words.csv", b"model,a,b\nx,yes,1\n", "not numbers"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_responses(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_a_folder(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_responses(tmp_path)
