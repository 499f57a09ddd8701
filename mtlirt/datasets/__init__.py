"""Answers to try things on: a bundled demo, and public data fetched on demand."""

from importlib import resources

from mtlirt.data import Responses
from mtlirt.datasets.public import fetch as fetch
from mtlirt.readers.tables import read_responses


def demo() -> Responses:
    """Simulated answers of 120 invented models to 260 items in 6 domains; nothing to download.

    Columns of the table: model (family and size in billions of parameters), domain (reading, mathematics, law, coding,
    biology, chess), item, score (0 or 1). The domains have 30 to 60 items, 4 % of the answers are missing, one model
    did not take coding, some items do not discriminate, and the trait of "chess" is far from the others' (a sine of
    .8 from their centre). Made by data-raw/demo.py.

    >>> demo().sizes.to_dict()
    {'reading': 60, 'mathematics': 50, 'law': 40, 'coding': 40, 'biology': 30, 'chess': 40}
    """
    with resources.as_file(resources.files(__name__) / "demo.parquet") as path:
        return read_responses(path)
