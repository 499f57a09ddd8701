"""`Responses`: scores of N models on J items, each item in one domain."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from mtlirt.data.summary import ResponsesSummary

Domains = Mapping[str, str] | pd.Series | Callable[[str], str] | str | None


@dataclass(frozen=True)
class Blocks:
    """Arrays by domain. scores : (N, J_t) int8 with -1 for missing, or float64 with NaN.

    option : (N, J_t) int16 codes, -1 missing.  trials : (N, J_t) int32, 0 where missing.
    probs : (N, sum of n_options) float32, NaN missing, the columns of an item side by side.
    """

    scores: tuple[np.ndarray, ...]
    option: tuple[np.ndarray, ...] | None = None
    trials: tuple[np.ndarray, ...] | None = None
    probs: tuple[np.ndarray, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Responses:
    """Answers of N models to J items. Make one with `from_long`, `from_wide` or `mtlirt.read_responses`.

    Attributes
    ----------
    models : Index of N names, in order of first appearance.
    items : frame of J rows in storage order (domain after domain): item, domain, key (label of the right option),
        n_options. The same item id in two domains is two items.
    domains : names in order of first appearance.
    blocks : arrays by domain; see `block`, `option_block`, `probs_block`, `trials_block`.
    labels : labels of the option codes 0, 1, ..., empty without options.
    model_info : frame of facts about the models (size, family, date, ...), indexed by model, or None.
    notes : sentences that say what was dropped or recoded on the way, with counts.

    >>> table = pd.DataFrame({"model": ["x", "y"], "domain": "math", "item": "q1", "score": [1, 0]})
    >>> Responses.from_long(table)
    Responses: 2 models x 1 items in 1 domains, 2 answers (0.0% missing)
    """

    models: pd.Index
    items: pd.DataFrame
    domains: tuple[str, ...]
    blocks: Blocks
    labels: tuple[str, ...] = ()
    model_info: pd.DataFrame | None = None
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def from_long(
        cls,
        df: pd.DataFrame,
        *,
        model: str = "model",
        domain: str | None = "domain",
        item: str = "item",
        score: str | None = "score",
        option: str | None = None,
        probs: str | None = None,
        logprobs: str | None = None,
        key: str | None = None,
        n_options: str | None = None,
        trials: str | None = None,
        model_info: pd.DataFrame | None = None,
    ) -> Responses:
        """From a table with one row per answer.

        Parameters
        ----------
        model, domain, item, score : column names. domain=None puts all items into one domain "all". Scores lie in
            [0, 1]; missing scores are missing answers. score=None with option and key takes option == key, with probs
            and key whether the most probable option is the key.
        option, key : chosen and right option, letters A-Z or 0-based whole numbers. "+" (several) and "-" (none) are
            missing, and counted in the notes.
        probs : list column (or lists written as JSON text) with the probabilities of all options, n_options of them.
        logprobs : the same as log-probabilities, or log-likelihoods, of the options; scaled to sum 1 over the options.
            An option without a value has probability 0.
        n_options : number of options of the item; where not given, one more than the largest code seen, or the
            length of probs.
        trials : number of runs of which the score is the share right; kept, and fitted as a fraction.
        model_info : facts about the models, indexed by model or with a column "model".

        Raises
        ------
        InputError for a missing column, names or numbers that cannot be used, an answer given twice with different
        scores, keys or numbers of options that differ within an item.
        """
        from mtlirt.data.build import build_long

        columns = {
            "model": model,
            "domain": domain,
            "item": item,
            "score": score,
            "option": option,
            "probs": probs,
            "logprobs": logprobs,
            "key": key,
            "n_options": n_options,
            "trials": trials,
        }
        return build_long(df, columns, model_info)

    @classmethod
    def from_wide(cls, df: pd.DataFrame, domains: Domains) -> Responses:
        """From a table with one row per model and one column per item.

        Parameters
        ----------
        df : the index names the models; a leading column that is not numeric is taken as the index if there is none.
        domains : domain of each item: a mapping or Series from item to domain, a function of the item's name, one name
            for all, or None for one domain "all".

        >>> table = pd.DataFrame({"math.q1": [1, 0], "law.q1": [1, 1]}, index=["x", "y"])
        >>> Responses.from_wide(table, domains=lambda item: item.split(".")[0]).domains
        ('math', 'law')
        """
        from mtlirt.data.wide import build_wide

        return build_wide(df, domains)

    @property
    def n_models(self) -> int:
        """Number of models N."""
        return len(self.models)

    @property
    def n_items(self) -> int:
        """Number of items J."""
        return len(self.items)

    @cached_property
    def n_answers(self) -> int:
        """Number of answers."""
        return int(sum(observed(block).sum() for block in self.blocks.scores))

    @property
    def sizes(self) -> pd.Series:
        """Number of items per domain."""
        counts = [block.shape[1] for block in self.blocks.scores]
        return pd.Series(counts, index=pd.Index(self.domains, name="domain", dtype=str), name="n_items")

    def block(self, domain: str) -> np.ndarray:
        """(N, J_t) scores of a domain, not to be written to: int8 with -1 for missing where every score is 0 or 1, else
        float64 with NaN."""
        view = self.blocks.scores[self._position(domain)].view()
        view.flags.writeable = False
        return view

    def option_block(self, domain: str) -> np.ndarray | None:
        """(N, J_t) int16 option codes of a domain, -1 for missing; None without options."""
        return None if self.blocks.option is None else self.blocks.option[self._position(domain)]

    def trials_block(self, domain: str) -> np.ndarray | None:
        """(N, J_t) int32 numbers of runs of a domain, 0 for missing; None if they were not given."""
        return None if self.blocks.trials is None else self.blocks.trials[self._position(domain)]

    def probs_block(self, domain: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Probabilities (N, sum of n_options) of a domain and the offsets (J_t + 1) of its items' columns; or None."""
        if self.blocks.probs is None:
            return None
        counts = self.items.loc[self.items["domain"] == domain, "n_options"].fillna(0).to_numpy(dtype=np.int64)
        return self.blocks.probs[self._position(domain)], np.concatenate([[0], np.cumsum(counts)])

    def _position(self, domain: str) -> int:
        from mtlirt.errors import InputError

        if domain not in self.domains:
            raise InputError(f"there is no domain {domain!r}; there are {', '.join(self.domains[:10])}")
        return self.domains.index(domain)

    @property
    def scores(self) -> np.ndarray:
        """(N, J) float64 scores in storage order with NaN for missing, built anew at each call."""
        return np.concatenate([as_float(block) for block in self.blocks.scores], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is an answer: names, scores, options, keys, probabilities, runs."""
        digest = hashlib.sha256()
        names = [list(self.models), list(self.items["domain"]), list(self.items["item"]), list(self.labels)]
        names += [[str(x) for x in self.items[c]] for c in ("key", "n_options")]
        for part in names:
            digest.update("\x1f".join(part).encode())
            digest.update(b"\x1e")
        for kind in ("scores", "option", "trials", "probs"):
            for block in getattr(self.blocks, kind) or ():
                digest.update(f"{kind}{block.dtype}{block.shape}".encode())
                digest.update(np.ascontiguousarray(block).tobytes())
        return digest.hexdigest()

    def to_long(self) -> pd.DataFrame:
        """One row per model and item, model after model, missing answers included.

        Columns model, domain, item (categorical), score, and option, probs, key, n_options, trials where known.
        `model_info` travels in the frame's attrs, so that a parquet file of it reads back with the same fingerprint.
        """
        from mtlirt.data.build import to_long

        return to_long(self)

    def summary(self) -> ResponsesSummary:
        """Sizes, missing answers, constant and identical rows; prints itself."""
        from mtlirt.data.summary import ResponsesSummary

        return ResponsesSummary.of(self)

    def subset(
        self,
        models: Collection[str] | None = None,
        items: Collection[str] | Collection[tuple[str, str]] | np.ndarray | None = None,
        domains: Collection[str] | None = None,
    ) -> Responses:
        """Keep some models, items and domains, in the order they are stored.

        Parameters
        ----------
        models, domains : names.
        items : item ids, (domain, item) pairs, or a boolean mask over the rows of `items`.

        Raises
        ------
        InputError for unknown names, or if nothing is left.
        """
        from mtlirt.data.select import item_mask, model_mask, take

        return take(self, model_mask(self, models), item_mask(self, items, domains))

    def clean(self, constant: bool = False, duplicates: bool = False, min_answers: int = 0) -> Responses:
        """Drop what you name; the counts are added to `notes`.

        Parameters
        ----------
        constant : drop items that all models answered alike (all right or all wrong).
        duplicates : drop models whose answers equal those of an earlier model, gaps included.
        min_answers : drop models and items with fewer answers than this.
        """
        from mtlirt.data.select import clean

        return clean(self, constant, duplicates, min_answers)

    def with_notes(self, *notes: str) -> Responses:
        """The same answers with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def with_model_info(self, model_info: pd.DataFrame | None) -> Responses:
        """The same answers with facts about the models, as in `from_long`; unchanged for None."""
        from mtlirt.data.info import align_info

        return self if model_info is None else replace(self, model_info=align_info(model_info, self.models))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Responses) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        missing = 1 - self.n_answers / max(1, self.n_models * self.n_items)
        return (
            f"Responses: {self.n_models:,} models x {self.n_items:,} items in {len(self.domains)} domains, "
            f"{self.n_answers:,} answers ({missing:.1%} missing)"
        )


def observed(block: np.ndarray) -> np.ndarray:
    """Boolean mask of the answered cells of a score block."""
    return block >= 0 if block.dtype == np.int8 else ~np.isnan(block)


def as_float(block: np.ndarray) -> np.ndarray:
    """A score block as float64 with NaN for missing."""
    return np.where(block < 0, np.nan, block) if block.dtype == np.int8 else block


def compact(block: np.ndarray) -> np.ndarray:
    """A float score block as int8 with -1 for missing if every score is 0 or 1."""
    missing = np.isnan(block)
    if not ((block == 0) | (block == 1) | missing).all():
        return np.ascontiguousarray(block)
    return np.where(missing, -1, block).astype(np.int8)


def trim_labels(labels: tuple[str, ...], items: pd.DataFrame, blocks: Blocks) -> tuple[str, ...]:
    """The labels that the items' numbers of options leave room for; none without options and keys."""
    if blocks.option is None and not items["key"].notna().any():
        return ()
    return labels[: int(items["n_options"].fillna(0).max())]
