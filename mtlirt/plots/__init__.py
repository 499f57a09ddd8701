"""Pictures: a frame in, matplotlib Axes out. `plot(type)` of fits, paths and comparisons takes the names as words."""

from mtlirt.plots.domains import heterogeneity, item_accuracy, item_counts
from mtlirt.plots.items import information, item_map, trace
from mtlirt.plots.models import profile, size
from mtlirt.plots.paper import paper_figures
from mtlirt.plots.ranks import rank_flow
from mtlirt.plots.selection import cv, path
from mtlirt.plots.study import study_domains, study_general
from mtlirt.plots.traits import correlation, pca

__all__ = [
    "correlation",
    "cv",
    "heterogeneity",
    "information",
    "item_accuracy",
    "item_counts",
    "item_map",
    "paper_figures",
    "path",
    "pca",
    "profile",
    "rank_flow",
    "size",
    "study_domains",
    "study_general",
    "trace",
]
