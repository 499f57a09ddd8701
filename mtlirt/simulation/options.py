"""Answers by option drawn from a known LLM-NRM, as `Responses`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt.core.llm_nrm import LLMParameters
from mtlirt.core.options import OptionGroup
from mtlirt.data import Responses
from mtlirt.data.columns import option_labels
from mtlirt.data.responses import Blocks
from mtlirt.data.wide import EVERYTHING
from mtlirt.simulation.draw import generator
from mtlirt.simulation.llm_nrm import LLMNRMDesign, draw

_LETTERS = 26  # items with more options have numbers


@dataclass(frozen=True, eq=False)
class OptionSimulation:
    """responses : the answers.  truth : the parameters they were drawn from, theta standardised and log s centred."""

    responses: Responses
    truth: LLMParameters


def simulate_llm_nrm(design: LLMNRMDesign, seed: int | np.random.Generator) -> OptionSimulation:
    """Draw answers by option. The same seed gives the same answers.

    Models are named "m001", ..., items "i0001", ..., all in one domain. In the soft channel `responses` has the
    probabilities of all options, and the most probable one as the chosen option; in the hard channel the chosen option
    alone. The score is (option == key).

    >>> simulate_llm_nrm(LLMNRMDesign(N=10, J=20), seed=1).responses
    Responses: 10 models x 20 items in 1 domains, 200 answers (0.0% missing)
    """
    truth, groups = draw(design, generator(seed))
    models = pd.Index([f"m{i:0{len(str(design.N))}d}" for i in range(1, design.N + 1)], name="model")
    return OptionSimulation(_responses(models, groups, design.channel == "soft"), truth)


def _responses(models: pd.Index, groups: list[OptionGroup], soft: bool) -> Responses:
    N, J = len(models), sum(len(group.items) for group in groups)
    key, n_options = np.zeros((2, J), dtype=np.int64)
    for group in groups:
        key[group.items], n_options[group.items] = group.key, group.target.shape[1]
    largest = int(n_options.max())
    labels = option_labels(largest, letters=largest <= _LETTERS)
    offset = np.concatenate([[0], np.cumsum(n_options)])
    option = np.full((N, J), -1, dtype=np.int16)
    probs = np.full((N, offset[-1]) if soft else (0, 0), np.nan, dtype=np.float32)
    for group in groups:
        answered = group.target.max(axis=1) > 0
        option[:, group.items] = np.where(answered, group.target.argmax(axis=1), -1).T
        if soft:
            columns = offset[group.items][:, None] + np.arange(group.target.shape[1])
            probs[:, columns] = np.where(answered[:, None], group.target, np.nan).transpose(2, 0, 1)
    scores = np.where(option < 0, -1, option == key).astype(np.int8)
    items = pd.DataFrame(
        {
            "item": [f"i{j:0{len(str(J))}d}" for j in range(1, J + 1)],
            "domain": EVERYTHING,
            "key": pd.Series([labels[k] for k in key], dtype="string"),
            "n_options": pd.Series(n_options, dtype="Int64"),
        }
    )
    blocks = Blocks((scores,), option=(option,), probs=(probs,) if soft else None)
    return Responses(models, items, (EVERYTHING,), blocks, labels)
