"""mtlirt: item response theory for benchmark domains.

One score per domain, one general score, item parameters, and how far the domains agree. Everything public is here and
is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mtlirt._version import __version__ as __version__

_WHERE = {
    "Adam": "mtlirt.solvers.adam",
    "Block": "mtlirt.solvers.block",
    "CVResult": "mtlirt.selection.cv_result",
    "ConvergenceWarning": "mtlirt.errors",
    "DataWarning": "mtlirt.errors",
    "Fit": "mtlirt.results.fit",
    "FitError": "mtlirt.errors",
    "HeterogeneityDesign": "mtlirt.simulation.heterogeneity",
    "InputError": "mtlirt.errors",
    "AdamOptions": "mtlirt.solvers.adam_options",
    "LLMNRMDesign": "mtlirt.simulation.llm_nrm",
    "LLMSolver": "mtlirt.solvers.llm_nrm",
    "LeaderboardDesign": "mtlirt.simulation.leaderboard",
    "LineMedian": "mtlirt.core.angle",
    "MtlirtError": "mtlirt.errors",
    "NominalFit": "mtlirt.results.nominal",
    "Path": "mtlirt.selection.path",
    "PoolingComparison": "mtlirt.selection.compare",
    "ReadLog": "mtlirt.readers.read_log",
    "Responses": "mtlirt.data",
    "Simulation": "mtlirt.simulation.draw",
    "Status": "mtlirt.solvers.solution",
    "compare_channels": "mtlirt.selection.channels",
    "compare_pooling": "mtlirt.selection.compare",
    "cv_mtl": "mtlirt.selection.cv",
    "fit_llm_nrm": "mtlirt.models.llm_nrm",
    "fit_mtl": "mtlirt.models.mtl",
    "fit_mtl_nrm": "mtlirt.models.nrm",
    "fit_nrm": "mtlirt.models.nrm",
    "fusion_thresholds": "mtlirt.models.mtl",
    "lambda_path": "mtlirt.selection.path",
    "line_median": "mtlirt.core.angle",
    "load": "mtlirt.results.store",
    "progress": "mtlirt._progress",
    "rates_designs": "mtlirt.simulation.rates",
    "rates_table": "mtlirt.simulation.rates",
    "read_logs": "mtlirt.readers.logs",
    "read_responses": "mtlirt.readers.tables",
    "run_study": "mtlirt.simulation.study",
    "score_nrm": "mtlirt.results.ability",
    "simulate": "mtlirt.simulation.draw",
    "simulate_llm_nrm": "mtlirt.simulation.options",
    "study_table": "mtlirt.simulation.summary",
}
_MODULES = ("datasets", "plots")

__all__ = [
    "Adam",
    "AdamOptions",
    "Block",
    "CVResult",
    "ConvergenceWarning",
    "DataWarning",
    "Fit",
    "FitError",
    "HeterogeneityDesign",
    "InputError",
    "LLMNRMDesign",
    "LLMSolver",
    "LeaderboardDesign",
    "LineMedian",
    "MtlirtError",
    "NominalFit",
    "Path",
    "PoolingComparison",
    "ReadLog",
    "Responses",
    "Simulation",
    "Status",
    "compare_channels",
    "compare_pooling",
    "cv_mtl",
    "datasets",
    "fit_llm_nrm",
    "fit_mtl",
    "fit_mtl_nrm",
    "fit_nrm",
    "fusion_thresholds",
    "lambda_path",
    "line_median",
    "load",
    "plots",
    "progress",
    "rates_designs",
    "rates_table",
    "read_logs",
    "read_responses",
    "run_study",
    "score_nrm",
    "simulate",
    "simulate_llm_nrm",
    "study_table",
]

if TYPE_CHECKING:
    from mtlirt import datasets, plots
    from mtlirt._progress import progress
    from mtlirt.core.angle import LineMedian, line_median
    from mtlirt.data import Responses
    from mtlirt.errors import ConvergenceWarning, DataWarning, FitError, InputError, MtlirtError
    from mtlirt.models.llm_nrm import fit_llm_nrm
    from mtlirt.models.mtl import fit_mtl, fusion_thresholds
    from mtlirt.models.nrm import fit_mtl_nrm, fit_nrm
    from mtlirt.readers.logs import read_logs
    from mtlirt.readers.read_log import ReadLog
    from mtlirt.readers.tables import read_responses
    from mtlirt.results.ability import score_nrm
    from mtlirt.results.fit import Fit
    from mtlirt.results.nominal import NominalFit
    from mtlirt.results.store import load
    from mtlirt.selection.channels import compare_channels
    from mtlirt.selection.compare import PoolingComparison, compare_pooling
    from mtlirt.selection.cv import cv_mtl
    from mtlirt.selection.cv_result import CVResult
    from mtlirt.selection.path import Path, lambda_path
    from mtlirt.simulation.draw import Simulation, simulate
    from mtlirt.simulation.heterogeneity import HeterogeneityDesign
    from mtlirt.simulation.leaderboard import LeaderboardDesign
    from mtlirt.simulation.llm_nrm import LLMNRMDesign
    from mtlirt.simulation.options import simulate_llm_nrm
    from mtlirt.simulation.rates import rates_designs, rates_table
    from mtlirt.simulation.study import run_study
    from mtlirt.simulation.summary import study_table
    from mtlirt.solvers.adam import Adam
    from mtlirt.solvers.adam_options import AdamOptions
    from mtlirt.solvers.block import Block
    from mtlirt.solvers.llm_nrm import LLMSolver
    from mtlirt.solvers.solution import Status


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    elif name in _MODULES:
        value = import_module(f"mtlirt.{name}")
    else:
        raise AttributeError(f"module 'mtlirt' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
