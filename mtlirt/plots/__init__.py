"""Pictures: a frame in, matplotlib Axes out."""

from mtlirt.plots.study import study_domains, study_general

__all__ = ["study_domains", "study_general"]
