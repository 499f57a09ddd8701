"""What the scripts of published sets share: download, tidy, write. The tidying itself is in mtlirt/datasets/tidy.py."""

import argparse
from pathlib import Path

from mtlirt.data.store import write_frame
from mtlirt.datasets.catalogue import SETS
from mtlirt.datasets.download import cache_folder
from mtlirt.datasets.public import tidy_frame


def write_table(name: str, what: str) -> None:
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the table to write, .parquet or .csv")
    parser.add_argument("--raw", type=Path, help="folder of the source's files; those missing are downloaded to it")
    arguments = parser.parse_args()
    table = SETS[name]
    frame = tidy_frame(table, arguments.raw or cache_folder() / name)
    write_frame(arguments.out, frame)
    models, items = frame["model"].nunique(), len(frame[["domain", "item"]].drop_duplicates())
    print(f"{arguments.out}: {len(frame):,} answers, {models} models x {items:,} items")
