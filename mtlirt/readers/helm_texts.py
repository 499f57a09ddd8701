"""What a HELM run showed the model and what it answered: scenario_state.json, or at least instances.json."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mtlirt.readers.fields import Field, LogError, Problems, load, number, take
from mtlirt.readers.sheet import Answer, digest

INSTANCE = (
    Field("id", "id", "text", required=True),
    Field("input", "input", "any", required=True),
    Field("references", "references", "list"),
    Field("perturbation", "perturbation", "any"),
)
STATE = (
    Field("instance", "instance", "object", required=True),
    Field("trial", "train_trial_index", "whole"),
    Field("mapping", "output_mapping", "object"),
    Field("reference", "reference_index", "whole"),
    Field("mode", "request_mode", "text"),
    Field("prompt", "request.prompt", "text"),
    Field("completions", "result.completions", "list"),
)
REFERENCE = (Field("output", "output", "any", required=True), Field("tags", "tags", "list"))
COMPLETION = (
    Field("text", "text", "text"),
    Field("logprob", "logprob", "any"),
    Field("tokens", "tokens", "list"),
)
TOKEN = (Field("text", "text", "text", required=True), Field("logprob", "logprob", "any"))
_CORRECT = "correct"


@dataclass
class Shown:
    """One instance in one trial.

    references : texts, in the order of the data set.  correct : places of the right ones.
    mapping : letters shown and the texts they stand for, where all options are in one request.
    chosen : what was answered there.
    apart : log-probabilities of the tokens of a reference, by its place, where each has its own request.
    calibrated : whether these were compared with ones without the question.
    """

    text: str
    references: list[str]
    correct: list[int]
    prompts: list[str] = field(default_factory=list)
    mapping: dict[str, str] = field(default_factory=dict)
    chosen: str | None = None
    apart: dict[int, list[float]] = field(default_factory=dict)
    calibrated: bool = False

    def fill(self, plain: Answer, predicted: float | None) -> Answer:
        """The answer with hashes and options. predicted : the place that HELM found most likely, if it says so."""
        answer = plain._replace(
            digest=digest(self.text, *sorted(self.references)),
            prompt=digest(*self.prompts) if any(self.prompts) else 0,
            layout=digest(*(self.mapping.values() or self.references)),
        )
        if len(self.mapping) > 1:
            return self._from_letters(answer)
        return self._from_requests(answer, predicted) if len(self.references) > 1 else answer

    def _from_letters(self, answer: Answer) -> Answer:
        right = {self.references[i] for i in self.correct}
        keys = [place for place, text in enumerate(self.mapping.values()) if text in right]
        if len(keys) != 1:
            return answer
        letters = list(self.mapping)
        option = letters.index(self.chosen) if self.chosen in letters else -1
        return answer._replace(option=option, key=keys[0], n_options=len(letters))

    def _from_requests(self, answer: Answer, predicted: float | None) -> Answer:
        n = len(self.references)
        if len(self.correct) != 1 or sorted(self.apart) != list(range(n)):
            return answer
        spans = [self.apart[i] for i in range(n)]
        logprobs = [sum(s) for s in spans] if all(spans) and not self.calibrated else None
        option = int(predicted) if predicted is not None and 0 <= predicted < n else -1
        if option < 0 and logprobs is not None:
            option = int(np.argmax([x / len(s) for x, s in zip(logprobs, spans, strict=True)]))
        if option < 0:
            return answer
        return answer._replace(option=option, key=self.correct[0], n_options=n, logprobs=logprobs)


Texts = dict[tuple[str, int | None], Shown]


def texts_of(path: Path, problems: Problems) -> Texts:
    """By instance and trial, where None stands for every trial; {} if the run has no texts."""
    shown: Texts = {}
    for place, record in _records(path / "scenario_state.json", "request_states", problems):
        try:
            _add_request(shown, record)
        except LogError as error:
            problems.add(0, f"scenario_state.json, request {place}: {error}")
    if shown:
        return shown
    for place, record in _records(path / "instances.json", None, problems):
        try:
            instance = take(INSTANCE, record)
            if instance["perturbation"] is None:
                shown[instance["id"], None] = _instance(instance)
        except LogError as error:
            problems.add(0, f"instances.json, instance {place}: {error}")
    return shown


def _records(path: Path, key: str | None, problems: Problems) -> Iterator[tuple[int, Any]]:
    """The list in a file, or under a key in it, numbered from 1; nothing if there is no such file."""
    if not path.exists():
        return
    try:
        content = load(path)
        content = content.get(key) if key is not None and isinstance(content, dict) else content
        if not isinstance(content, list):
            raise LogError(f"holds no list of {path.stem if key is None else key}")
    except LogError as error:
        problems.add(0, f"its {path.name} {error}")
        return
    yield from enumerate(content, start=1)


def _instance(values: dict[str, Any]) -> Shown:
    references = [take(REFERENCE, r) for r in values["references"] or ()]
    return Shown(
        text=_text(values["input"]),
        references=[_text(r["output"]) for r in references],
        correct=[i for i, r in enumerate(references) if _CORRECT in (r["tags"] or ())],
    )


def _text(content: Any) -> str:
    """An input or output: a text, or in later versions an object with one."""
    if isinstance(content, str):
        return content
    return str(take((Field("text", "text", "text", required=True),), content)["text"])


def _add_request(shown: Texts, record: Any) -> None:
    state = take(STATE, record)
    values = take(INSTANCE, state["instance"])
    if values["perturbation"] is not None:
        return
    key = (values["id"], state["trial"] or 0)
    if key not in shown:
        shown[key] = _instance(values)
    one = shown[key]
    if state["mode"] == "calibration":
        one.calibrated = True
        return
    one.prompts.append(state["prompt"] or "")
    completion = _best(state["completions"])
    if state["mapping"]:
        if not all(isinstance(text, str) for text in state["mapping"].values()):
            raise LogError("'output_mapping' holds something other than texts")
        one.mapping = state["mapping"]
        one.chosen = (completion["text"] or "").strip() if completion else None
    elif completion:
        place = len(one.apart) if state["reference"] is None else state["reference"]
        if 0 <= place < len(one.references):
            one.apart[place] = _span(completion["tokens"] or [], one.references[place].strip())


def _best(completions: list[Any] | None) -> dict[str, Any] | None:
    """The most likely completion, which is the one that HELM scores."""
    taken = [take(COMPLETION, c) for c in completions or ()]
    return max(taken, key=lambda c: -math.inf if (x := number(c["logprob"])) is None else x, default=None)


def _span(tokens: list[Any], reference: str) -> list[float]:
    """Log-probabilities of the last tokens, which spell the reference; [] if they do not."""
    text, logprobs = "", list[float]()
    for record in reversed(tokens):
        token = take(TOKEN, record)
        text = token["text"] + text
        value = number(token["logprob"])
        if value is None or len(text.strip()) > len(reference):
            break
        logprobs.append(value)
        if text.strip() == reference:
            return logprobs
    return []
