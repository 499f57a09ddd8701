"""Which of a log's scores counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mtlirt.readers.fields import LogError

# the Open LLM Leaderboard's own choices, version 2 before version 1
_LEADERBOARD = (
    (r"leaderboard_mmlu_pro", "acc"),
    (r"leaderboard_(bbh|musr|gpqa)_.*", "acc_norm"),
    (r"leaderboard_math_.*", "exact_match"),
    (r"leaderboard_ifeval", "prompt_level_strict_acc"),
    (r"arc[_:]challenge", "acc_norm"),
    (r"hellaswag", "acc_norm"),
    (r"(mmlu|hendrycksTest)([_-].*)?", "acc"),
    (r"truthfulqa[_:]mc", "mc2"),
    (r"truthfulqa_mc[12]", "acc"),
    (r"winogrande", "acc"),
    (r"gsm8k", "acc"),
)


@dataclass(frozen=True)
class Choices:
    """What the user chose.

    metrics, filters : names, the first that a log has is taken.
    failed_is_wrong : whether a sample that ended with an error or at a limit counts as wrong; else it is missing.
    """

    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    failed_is_wrong: bool = False

    def metric(self, task: str, names: Sequence[str], default: str | None = None) -> str:
        """The metric: the user's, the log's own first one, the leaderboard's for a known task, or the only one."""
        if not names:
            raise LogError("has no metric with one number from 0 to 1 for each item")
        if not self.metrics:
            default = leaderboard_metric(task) if default is None else default
            if default is not None and default in names:
                return default
        return _pick("metric", self.metrics, names)

    def filter(self, names: Sequence[str]) -> str:
        """The filter: the user's, or the only one; a log without filters has "none" whatever was asked."""
        return names[0] if list(names) == ["none"] else _pick("filter", self.filters, names)


def leaderboard_metric(task: str) -> str | None:
    """The metric by which the Open LLM Leaderboard ranks this task, or None."""
    return next((metric for pattern, metric in _LEADERBOARD if re.fullmatch(pattern, task)), None)


def _pick(what: str, wanted: Sequence[str], names: Sequence[str]) -> str:
    chosen = next((name for name in wanted if name in names), None)
    if chosen is not None:
        return chosen
    if not wanted and len(names) == 1:
        return names[0]
    missing = f"has no {what} {', '.join(wanted)}; it has" if wanted else f"has several {what}s:"
    raise LogError(f"{missing} {', '.join(sorted(names)[:20])}; choose one with --{what}")
