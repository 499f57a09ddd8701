"""What a Responses says about itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt.data.responses import Responses, as_float, observed
from mtlirt.data.select import constant_items, constant_models, duplicated_models


@dataclass(frozen=True, repr=False)
class ResponsesSummary:
    """title : one line.  table : frame domain, n_items, n_answers, share_missing, mean_score, n_constant_items.
    facts : further sentences, with counts."""

    title: str
    table: pd.DataFrame
    facts: tuple[str, ...]

    @classmethod
    def of(cls, responses: Responses) -> ResponsesSummary:
        """Summarise."""
        rows = []
        gaps = np.zeros(responses.n_models, dtype=np.int64)
        for domain, block in zip(responses.domains, responses.blocks.scores, strict=True):
            seen = observed(block)
            gaps += ~seen.any(axis=1)
            rows.append(
                {
                    "domain": domain,
                    "n_items": block.shape[1],
                    "n_answers": int(seen.sum()),
                    "share_missing": 1 - seen.mean(),
                    "mean_score": float(np.nanmean(as_float(block))) if seen.any() else np.nan,
                    "n_constant_items": int(constant_items(block).sum()),
                }
            )
        counts = (
            (int((gaps > 0).sum()), "models without any answer in some domain"),
            (int(duplicated_models(responses).sum()), "models whose answers equal those of an earlier model"),
            (int(sum(r["n_constant_items"] for r in rows)), "items that all models answered alike"),
            (int(constant_models(responses).sum()), "models whose scores are all equal"),
        )
        facts = tuple(f"{text}: {n:,}" for n, text in counts if n)
        return cls(repr(responses), pd.DataFrame(rows), facts + responses.notes)

    def __str__(self) -> str:
        table = self.table.to_string(index=False, float_format="{:.3f}".format)
        return "\n".join([self.title, "", table, *(["", *(f"* {f}" for f in self.facts)] if self.facts else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        facts = "".join(f"<li>{escape(f)}</li>" for f in self.facts)
        return f"<p>{escape(self.title)}</p>{self.table.to_html(index=False)}<ul>{facts}</ul>"
