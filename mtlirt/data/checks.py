"""What must hold before a model can be fitted."""

import numpy as np
import pandas as pd

from mtlirt.data.responses import Responses, observed
from mtlirt.errors import InputError

_FEWEST_MODELS = 3
_FEWEST_ITEMS = 2


def check_estimable(responses: Responses) -> None:
    """Raise InputError for too few models or items, or a model or item without any answer."""
    if responses.n_models < _FEWEST_MODELS:
        raise InputError(
            f"a fit needs at least {_FEWEST_MODELS} models, there are {responses.n_models}; "
            "to score new models against fitted items use fit.score()"
        )
    masks = [observed(block) for block in responses.blocks.scores]
    per_item = np.concatenate([m.sum(axis=0) for m in masks])
    for domain, mask in zip(responses.domains, masks, strict=True):
        if (mask.any(axis=0)).sum() < _FEWEST_ITEMS:
            raise InputError(f"domain {domain!r} has fewer than {_FEWEST_ITEMS} items with an answer; drop or merge it")
        answering = int(mask.any(axis=1).sum())
        if answering < _FEWEST_MODELS:
            raise InputError(
                f"domain {domain!r} was answered by fewer than {_FEWEST_MODELS} models ({answering}); drop or merge it"
            )
    per_model = np.sum([m.sum(axis=1) for m in masks], axis=0)
    items = responses.items
    _none_empty("models", responses.models[per_model == 0])
    _none_empty("items", pd.Index(items["domain"] + ": " + items["item"])[per_item == 0])


def _none_empty(what: str, empty: pd.Index) -> None:
    if len(empty):
        shown = ", ".join(map(repr, empty[:3]))
        raise InputError(
            f"{what} without any answer: {len(empty)} ({shown}{', ...' if len(empty) > 3 else ''}); "
            "drop them with responses.clean(min_answers=1)"
        )
