"""The figures and tables of the R-MTL paper's section 6, for any answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from mtlirt.data import Responses
from mtlirt.data.info import align_info
from mtlirt.data.store import replacing, write_frame
from mtlirt.errors import InputError
from mtlirt.plots.traits import correlation
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.results.tables import SCORE_COLUMNS
from mtlirt.selection.compare import PoolingComparison
from mtlirt.selection.cv_result import CVResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Result = Fit | NominalFit | CVResult | PoolingComparison

_TOP = 20  # models in table 2
_DOTS_PER_INCH = 200


def paper_figures(
    result: Result, out: str | Path, responses: Responses | None = None, model_info: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Write the figures and tables of the R-MTL paper's section 6 into a folder, as far as the result holds them.

    figure2_item_counts.png, figure3_item_accuracy.png, figure4_correlation.png (of mean scores), figure7_pca.png,
    figure8_rank_flow.png, table1_heterogeneity.csv, table2_top.csv (the 20 models with the highest general trait, their
    ranks under the regimes, and what is known of them), and besides them size.png, path.png and cv.png.

    Parameters
    ----------
    result : Fit or NominalFit, CVResult, or PoolingComparison. Ranks under other regimes need a CVResult or a
        comparison of the 2PL.
    out : folder, made if it is not there. Files of these names are replaced, and removed where they are left out now.
    responses : optional, the answers that were fitted: their model_info is used if no other is given.
    model_info : optional frame with a row for each model, in a column model or the index. Its column size, in billions
        of parameters, is what size.png needs.

    Returns
    -------
    Frame with name, file, and reason: empty, or why there is no such file.

    Raises
    ------
    InputError if `out` is a file or cannot be written, for another kind of result, for answers of other models, or
    arguments of another type.

    >>> import matplotlib, mtlirt, tempfile
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = mtlirt.plots.paper_figures(fit, folder)
    >>> made.loc[made["name"] == "path", "reason"].item()
    'path: a Fit holds no path; pass a CVResult of cv_mtl(responses), or a comparison'
    """
    if not isinstance(result, Fit | NominalFit | CVResult | PoolingComparison):
        raise InputError(f"paper_figures: needs a fit, a CVResult or a PoolingComparison, not {type(result).__name__}")
    if isinstance(result, CVResult) and isinstance(result.fit, Fit):
        result = PoolingComparison(result, _TOP)
    fit = _fit(result)
    if responses is not None and not isinstance(responses, Responses):
        raise InputError(f"paper_figures: responses must be Responses, not {type(responses).__name__}")
    if model_info is not None and not isinstance(model_info, pd.DataFrame):
        raise InputError(f"paper_figures: model_info must be a frame, not {type(model_info).__name__}")
    if responses is not None and not fit.models.isin(responses.models).all():
        raise InputError("paper_figures: responses lack models that were fitted")
    if model_info is None and responses is not None:
        model_info = responses.model_info
    info = align_info(model_info, fit.models)
    folder = _folder(out)
    rows = []
    for file, make in _contents(result, fit, info).items():
        name = file.split(".")[0].split("_", 1)[-1]
        try:
            content = make()
        except InputError as error:
            (folder / file).unlink(missing_ok=True)
            rows.append((name, "", str(error)))
        else:
            _write(folder / file, content)
            rows.append((name, file, ""))
    return pd.DataFrame(rows, columns=["name", "file", "reason"])


def _fit(result: Result) -> Fit | NominalFit:
    if isinstance(result, PoolingComparison):
        return result.cv.fit
    return result.fit if isinstance(result, CVResult) else result


def _contents(
    result: Result, fit: Fit | NominalFit, info: pd.DataFrame | None
) -> dict[str, Callable[[], Axes | pd.DataFrame]]:
    """What makes each file; raises InputError where it cannot be made."""
    return {
        "figure2_item_counts.png": lambda: result.plot("item_counts"),
        "figure3_item_accuracy.png": lambda: result.plot("item_accuracy"),
        "figure4_correlation.png": lambda: correlation(fit.data.mean_score),
        "figure7_pca.png": lambda: result.plot("pca"),
        "figure8_rank_flow.png": lambda: _chosen(result, "rank_flow"),
        "table1_heterogeneity.csv": fit.heterogeneity,
        "table2_top.csv": lambda: _top(result, fit, info),
        "size.png": lambda: result.plot("size", size=_sizes(info)),
        "path.png": lambda: _chosen(result, "path"),
        "cv.png": lambda: _chosen(result, "cv"),
    }


def _chosen(result: Result, word: str) -> Axes:
    """The picture of how lam was chosen; InputError that says what to pass instead of the result."""
    if isinstance(result, Fit | NominalFit):
        holds = "no other regimes" if word == "rank_flow" else "no path" if word == "path" else "no held-out losses"
        advice = "pass a CVResult of cv_mtl(responses), or a comparison"
        if isinstance(result, NominalFit):
            advice = (
                "only the 2PL's regimes are compared" if word == "rank_flow" else "pass cv_mtl(responses, model='nrm')"
            )
        raise InputError(f"{word}: a {type(result).__name__} holds {holds}; {advice}")
    if word == "rank_flow" and isinstance(result, CVResult):
        raise InputError("rank_flow: only the 2PL's regimes are compared; this CVResult is of an option model")
    return result.plot(word)


def _top(result: Result, fit: Fit | NominalFit, info: pd.DataFrame | None) -> pd.DataFrame:
    """The models with the highest general trait: scores, ranks under the other regimes, and facts."""
    table = fit.scores()[SCORE_COLUMNS].set_index("model")
    if isinstance(result, PoolingComparison):
        table = table.join(result.ranks[["complete", "separate"]].add_suffix("_rank"))
    if info is not None:
        table = table.join(info.add_prefix("info:"))
    return table.sort_values("general_rank", kind="stable").head(_TOP).reset_index()


def _sizes(info: pd.DataFrame | None) -> pd.Series:
    if info is None or "size" not in info:
        raise InputError("size: needs model_info with a column size, billions of parameters")
    return info["size"]


def _folder(out: str | Path) -> Path:
    if not isinstance(out, str | Path):
        raise InputError(f"paper_figures: out must be the path of a folder, not {type(out).__name__}")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be a folder ({error.strerror})") from error
    return folder


def _write(path: Path, content: Axes | pd.DataFrame) -> None:
    """The file is complete or not there."""
    if isinstance(content, pd.DataFrame):
        write_frame(path, content)
        return
    from matplotlib import pyplot

    figure = content.figure.figure
    assert figure is not None
    try:
        with replacing(path) as stage:
            figure.savefig(stage, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        pyplot.close(figure)
