"""Wide tables to Responses: one row per model, one column per item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mtlirt.data.columns import names, numbers
from mtlirt.data.responses import Blocks, Domains, Responses, compact
from mtlirt.errors import InputError

EVERYTHING = "all"


def build_wide(df: pd.DataFrame, domains: Domains) -> Responses:
    """See `Responses.from_wide`."""
    if isinstance(df.index, pd.RangeIndex) and len(df.columns) and not pd.api.types.is_numeric_dtype(df.iloc[:, 0]):
        df = df.set_index(df.columns[0])
    if df.empty:
        raise InputError("the table has no rows or no item columns")
    items = pd.Index([str(c) for c in df.columns], dtype=str)
    if items.has_duplicates:
        raise InputError(f"column {items[items.duplicated()][0]!r} appears twice")
    _, models = names(df.index.to_series(), str(df.index.name or "index"))
    if len(models) < len(df):
        text = df.index.map(str)
        raise InputError(f"model {text[text.duplicated()][0]!r} has more than one row; keep one row per model")
    rule = domain_rule(domains)
    codes, unique = pd.factorize(pd.Index([rule(item) for item in items], dtype=str))
    order = np.argsort(codes, kind="stable")
    blocks = []
    for t in range(len(unique)):
        columns = order[codes[order] == t]
        scores = [numbers(df.iloc[:, c], str(df.columns[c]), 0, 1, "0 to 1") for c in columns]
        blocks.append(compact(np.stack(scores, axis=1)))
    frame = pd.DataFrame({"item": items[order], "domain": unique[codes[order]]})
    return from_blocks(models.rename("model"), frame, tuple(unique), tuple(blocks))


def from_blocks(
    models: pd.Index, items: pd.DataFrame, domains: tuple[str, ...], blocks: tuple[np.ndarray, ...]
) -> Responses:
    """Responses of scores alone: items (columns item, domain) in the order of the blocks, no keys, no options."""
    key = pd.Series(pd.NA, index=items.index, dtype="string")
    n_options = pd.Series(pd.NA, index=items.index, dtype="Int64")
    return Responses(models, items.assign(key=key, n_options=n_options), domains, Blocks(blocks))


def domain_rule(domains: Domains) -> Callable[[str], str]:
    """The function from item to domain that `domains` (see `Responses.from_wide`) stands for."""
    if domains is None or isinstance(domains, str):
        return lambda item: domains or EVERYTHING
    if isinstance(domains, Mapping | pd.Series):
        lookup = {str(item): domain for item, domain in domains.items()}
        if len(lookup) < len(domains):
            raise InputError("domains: an item is named more than once")
        return lambda item: _named(item, lookup.get(item))
    if callable(domains):
        return lambda item: _named(item, domains(item))
    raise InputError(
        f"domains must be a mapping or Series from item to domain, a function, a name or None, not a "
        f"{type(domains).__name__}"
    )


def _named(item: str, domain: Any) -> str:
    if domain is None or pd.isna(domain):
        raise InputError(f"domains: no domain is given for item {item!r}")
    return str(domain)
