"""Pictures: a frame in, matplotlib Axes out. `plot(type)` of fits, paths and comparisons takes the names as words."""

from mtlirt.plots.items import trace
from mtlirt.plots.models import profile
from mtlirt.plots.selection import cv, path
from mtlirt.plots.study import study_domains, study_general

__all__ = ["cv", "path", "profile", "study_domains", "study_general", "trace"]
