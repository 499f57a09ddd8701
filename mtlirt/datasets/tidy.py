"""Published files to one long table: columns model, domain, item, score, and option, key, n_options where known.

Each function takes pairs of a `RemoteFile` and its local copy; `catalogue` says which function belongs to which set.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt.datasets.download import RemoteFile
from mtlirt.errors import InputError

Files = Sequence[tuple[RemoteFile, Path]]
_LETTERS = "ABCDEFGHIJ"
_LAW = {"1-2": ("knowledge_qa", "ABCD"), "3-6": ("case_analysis", "ABCD"), "2-8": ("argument_mining", "ABCDE")}


def mmlu_pro(files: Files) -> pd.DataFrame:
    """Zips of JSON lists, one zip a model, one object an item.

    Fields: question_id (item), category (domain), options, answer (the right letter), pred (the letter read from the
    model's text, null where none could be read). score is pred == answer, and 0 without pred: the authors draw a random
    option there. The models were given versions of the items that differ in a few places; key and n_options are those
    of most models.
    """
    rows = [(file.model, *row) for file, path in files for row in _mmlu_pro_rows(path)]
    table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key", "n_options"])
    table.insert(3, "score", (table["option"] == table["key"]).astype("int8"))
    for column in ("key", "n_options"):
        table[column] = table["item"].map(_most_common(table, column))
    return _compact(table.drop_duplicates(ignore_index=True))


def _mmlu_pro_rows(path: Path) -> Iterator[tuple[str, int, str | None, str, int]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.namelist() if m.endswith(".json") and not m.startswith("__MACOSX")]
            content = [entry for m in sorted(members) for entry in json.loads(archive.read(m))]
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, TypeError, RuntimeError) as error:
        raise broken(path, f"is not a zip of JSON lists ({error})") from error
    if not content:
        raise broken(path, "holds no answers")
    for number, entry in enumerate(content, start=1):
        try:
            options = [option for option in entry["options"] if option != "N/A"]
            option = entry["pred"] if entry["pred"] in tuple(_LETTERS) else None
            yield entry["category"], int(entry["question_id"]), option, entry["answer"], len(options)
        except (KeyError, TypeError, ValueError) as error:
            raise _another(path, f"answer {number} ", error) from error


def _most_common(table: pd.DataFrame, column: str) -> pd.Series:
    """For each item the value of `column` that most rows have."""
    counts = table.groupby(["item", column], sort=True).size().sort_values(kind="stable").reset_index()
    return counts.drop_duplicates("item", keep="last").set_index("item")[column]


def agents(files: Files, domain: str) -> pd.DataFrame:
    """JSON lines, one line an agent (the model): subject_id, and responses, an object from item to 0 or 1."""
    rows = []
    for _, path in files:
        for number, line in enumerate(_text(path).splitlines(), start=1):
            try:
                entry = json.loads(line)
                rows += [(entry["subject_id"], domain, item, score) for item, score in entry["responses"].items()]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise _another(path, f"line {number} ", error) from error
    return _compact(pd.DataFrame(rows, columns=["model", "domain", "item", "score"]).astype({"score": "int8"}))


def lawbench(files: Files) -> pd.DataFrame:
    """JSON objects from position to answer, one file a model and task: prediction (the model's text), refr (the key).

    The option is the one letter among the task's that the text contains; "+" where it contains several, "-" where none.
    score is 1 where that letter is the key, else 0, as LawBench scores. Item "1-2#0" is the first of task 1-2.
    """
    rows = []
    for file, path in files:
        domain, letters = _LAW[str(file.task)]
        content = _json(path)
        for position in sorted(content, key=int):
            try:
                chosen = [c for c in letters if c in content[position]["prediction"]]
                key = next(c for c in content[position]["refr"] if c in letters)
            except (KeyError, TypeError, StopIteration) as error:
                raise _another(path, f"answer {position} ", error) from error
            option = chosen[0] if len(chosen) == 1 else "+" if chosen else "-"
            rows.append((file.model, domain, f"{file.task}#{position}", option, key, len(letters)))
    table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key", "n_options"])
    table.insert(3, "score", (table["option"] == table["key"]).astype("int8"))
    return _compact(table)


def lawbench_wide(letters: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """The same long table from a wide one (column item, then one column of letters a model) and a table of items.

    The items' columns: item, domain, n_options, and the key as key or answer.
    """
    long = letters.melt("item", var_name="model", value_name="option")
    facts = items.rename(columns={"answer": "key"})[["item", "domain", "key", "n_options"]]
    long = long.merge(facts, on="item", validate="many_to_one")
    return long.assign(score=(long["option"] == long["key"]).astype("int8"))


def broken(path: Path, what: str) -> InputError:
    """The error for a file that cannot be used; the file goes, so that the next call fetches it anew."""
    path.unlink(missing_ok=True)
    return InputError(f"{path}: {what}; it was removed from the cache, so that trying again downloads it anew")


def _another(path: Path, what: str, error: Exception) -> InputError:
    return InputError(f"{path}: {what}has another layout than this version of mtlirt knows ({error!r})")


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_text(path))
        _ = [int(position) for position in content]
    except (ValueError, TypeError) as error:
        raise broken(path, f"is not a JSON object of answers ({error})") from error
    return content


def _text(path: Path) -> str:
    """Texts of models may be cut within a character; what is looked for in them are plain letters."""
    return path.read_text(encoding="utf-8", errors="replace")


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names and letters as categories, in order of first appearance."""
    for column in {"model", "domain", "option", "key"} & {*table.columns}:
        table[column] = pd.Categorical(table[column], categories=table[column].dropna().unique())
    return table
