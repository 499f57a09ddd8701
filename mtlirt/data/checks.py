"""What must hold before a model can be fitted."""

import numpy as np
import pandas as pd

from mtlirt.data.responses import Responses, observed
from mtlirt.errors import InputError

FEWEST_MODELS = 3
FEWEST_ITEMS = 2


def check_estimable(responses: Responses) -> None:
    """Raise InputError for too few models or items, or a model or item without any answer."""
    if responses.n_models < FEWEST_MODELS:
        raise InputError(
            f"a fit needs at least {FEWEST_MODELS} models, there are {responses.n_models}; "
            "to score new models against fitted items use fit.score()"
        )
    masks = [observed(block) for block in responses.blocks.scores]
    per_item = np.concatenate([m.sum(axis=0) for m in masks])
    for domain, mask in zip(responses.domains, masks, strict=True):
        if (mask.any(axis=0)).sum() < FEWEST_ITEMS:
            raise InputError(f"domain {domain!r} has fewer than {FEWEST_ITEMS} items with an answer; drop or merge it")
        answering = int(mask.any(axis=1).sum())
        if answering < FEWEST_MODELS:
            raise InputError(
                f"domain {domain!r} was answered by fewer than {FEWEST_MODELS} models ({answering}); drop or merge it"
            )
    per_model = np.sum([m.sum(axis=1) for m in masks], axis=0)
    items = responses.items
    _none_empty("models", responses.models[per_model == 0])
    _none_empty("items", pd.Index(items["domain"] + ": " + items["item"])[per_item == 0])


def same_layout(models: pd.Index, items: pd.DataFrame, responses: Responses) -> bool:
    """True if `models` and `items` (columns domain, item) are those of the responses, in the same order."""
    own = responses.items
    return models.equals(responses.models) and all(list(items[c]) == list(own[c]) for c in ("domain", "item"))


def _none_empty(what: str, empty: pd.Index) -> None:
    if len(empty):
        shown = ", ".join(map(repr, empty[:3]))
        raise InputError(
            f"{what} without any answer: {len(empty)} ({shown}{', ...' if len(empty) > 3 else ''}); "
            "drop them with responses.clean(min_answers=1)"
        )
