"""plot(type) of results: every word for every kind of result that claims it, and what the others answer."""

import inspect

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from test_plot_types import choices

import mtlirt
from mtlirt import InputError, plots
from mtlirt.plots.words import WORDS

pyplot.switch_backend("agg")
FIT = ["heterogeneity", "item_counts", "item_accuracy", "correlation", "pca", "profile", "size", "trace", "information"]
BINARY = [*FIT, "item_map"]
SERVED = {
    "fit": BINARY,
    "separate": BINARY,
    "gaps": BINARY,
    "joint nominal": FIT,
    "nominal": [word for word in FIT if word != "pca"],
    "llm": [word for word in FIT if word != "pca"],
    "path": ["path"],
    "cv": [*BINARY, "path", "cv"],
    "comparison": [*BINARY, "path", "cv", "rank_flow"],
}


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def results(small, cv, demo):
    comparison = mtlirt.compare_pooling(demo, lams=[11.0], folds=3)  # at 11 two domains have left the general trait
    return {
        "fit": lambda: mtlirt.fit_mtl(small.responses, lam=1.0),
        "separate": lambda: cv.path.at(0),
        "pooled": lambda: cv.path.fits[0],
        "gaps": lambda: mtlirt.fit_mtl(without_one_domain(small.responses), lam=0),
        "joint nominal": lambda: mtlirt.fit_mtl_nrm(three_domains(), lam=0),
        "nominal": lambda: mtlirt.fit_nrm(choices()),
        "llm": lambda: mtlirt.fit_llm_nrm(choices()),
        "path": lambda: cv.path,
        "cv": lambda: comparison.cv,
        "comparison": lambda: comparison,
    }


def three_domains():
    table = choices(items=18).to_long()
    table["domain"] = table["item"].map(lambda item: f"d{int(item[1:]) % 3}")
    return mtlirt.Responses.from_long(table, score=None, option="option", key="key", n_options="n_options")


def without_one_domain(responses):
    table = responses.to_long()
    first = (table["model"] == responses.models[0]) & (table["domain"] == responses.domains[1])
    return mtlirt.Responses.from_long(table[~first])


@pytest.mark.filterwarnings("ignore::mtlirt.ConvergenceWarning")
@pytest.mark.parametrize("kind", SERVED)
def test_every_word_that_a_result_claims(results, demo, kind):
    result = results[kind]()
    for word in SERVED[kind]:
        how = {}
        if word == "size":
            models = demo.models if kind in ("cv", "comparison") else result.models
            how = {"size": pd.Series(np.arange(1.0, len(models) + 1), models)}
        ax = Figure().subplots()
        assert result.plot(word, ax=ax, **how) is ax, word
        ax.figure.draw_without_rendering()
    with pytest.raises(InputError, match="there is no type 'nonsense'; of this result there are ") as caught:
        result.plot("nonsense")
    claimed = str(caught.value).split("there are ")[1].split(", ")
    assert set(claimed) == set(SERVED[kind]) | ({"pca"} if kind in ("nominal", "llm") else set())


@pytest.mark.parametrize(
    ("kind", "default"),
    [("fit", "heterogeneity"), ("path", "path"), ("cv", "cv"), ("comparison", "rank_flow")],
)
def test_defaults(results, kind, default):
    result = results[kind]()
    one, two = result.plot(), result.plot(default)
    assert isinstance(one, Axes)
    assert (one.get_xlabel(), one.get_ylabel()) == (two.get_xlabel(), two.get_ylabel())
    assert len(one.lines) == len(two.lines)


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("fit", "path", r"'path' cannot be drawn from a Fit; run lambda_path\(responses\).plot\(\)"),
        ("fit", "cv", r"run cv_mtl\(responses\).plot\(\)"),
        ("cv", "rank_flow", r"from a CVResult; run compare_pooling\(responses, cv=...\).plot\(\)"),
        ("path", "pca", r"path.at\(lam\).plot"),
        ("nominal", "item_map", "cannot be drawn from a NominalFit; .* take 'trace'"),
        ("nominal", "pca", "pca: needs 3 domains or more"),
        ("pooled", "pca", "pca: all domains share one trait"),
        ("fit", "size", r"plot\('size', size=...\)"),
    ],
)
def test_words_that_need_something_else(results, kind, word, message):
    with pytest.raises(InputError, match=message):
        results[kind]().plot(word)
    assert not pyplot.get_fignums()


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        ("fit", lambda fit: fit.plot(["trace"]), r"there is no type \['trace'\]; of this result there are"),
        ("fit", lambda fit: fit.plot("trace", items=3), "items must be a name or a list of names, not 3"),
        ("fit", lambda fit: fit.plot("trace", items=[["q"]]), r"there is no item \['q'\]"),
        ("fit", lambda fit: fit.plot("trace", domain=["d"]), r"there is no domain \['d'\]"),
        ("fit", lambda fit: fit.plot("trace", colour="red"), "no option 'colour'; its options are domain, items, ax"),
        (
            "fit",
            lambda fit: fit.plot("item_map", colour="red"),
            "'item_map' has no option 'colour'; it has none but ax",
        ),
        ("fit", lambda fit: fit.plot("pca", groups=["a"]), "pca: groups must be a Series, not list"),
        ("path", lambda path: path.plot(lam_min=1.0), "'path' has no option 'lam_min'; its options are lam, ax"),
        (
            "fit",
            lambda fit: fit.plot("study_domains"),
            r"from a Fit; draw it from a study: plots.study_domains\(study\)",
        ),
    ],
)
def test_options_that_are_not_there(results, kind, call, message):
    with pytest.raises(InputError, match=message):
        call(results[kind]())
    assert not pyplot.get_fignums()


def test_words_are_the_names_of_the_functions():
    assert set(WORDS) == set(plots.__all__) - {"paper_figures", "study_general", "study_domains"}
    for name in WORDS:
        assert inspect.signature(getattr(plots, name)).parameters["ax"].default is None


def test_words_of_fits_are_in_the_docstring():
    documented = mtlirt.Fit.plot.__doc__
    assert all(f'"{word}"' in documented for word in BINARY)


def test_path_of_a_cross_validation_marks_lam_min(cv):
    ax = cv.plot("path", ax=Figure().subplots())
    curve = next(line for line in ax.lines if len(line.get_xdata()) == len(cv.lams))
    marked = [line for line in ax.lines if line.get_color() == "black"]
    assert [line.get_xdata()[0] for line in marked] == [curve.get_xdata()[cv.chosen]]


def test_items_to_trace(results):
    fit = results["fit"]()
    steepest = fit.plot("trace", ax=Figure().subplots())
    inside = fit.items[~fit.items["at_bound"]]
    first = inside.loc[inside.groupby("domain")["a"].idxmax()].nlargest(6, "a")
    assert all(item in line.get_label() for item, line in zip(first["item"], steepest.lines, strict=False))
    assert len(steepest.lines) == 6
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in steepest.lines}) == 6
    single = fit.plot("trace", domain=fit.domains[0], ax=Figure().subplots())
    wanted = inside[inside["domain"] == fit.domains[0]].nlargest(6, "a")["item"]
    assert all(item in line.get_label() for item, line in zip(wanted, single.lines, strict=True))
    item = fit.items.iloc[7]
    one = fit.plot("trace", domain=item["domain"], items=item["item"], ax=Figure().subplots())
    assert [item["item"] in line.get_label() for line in one.lines] == [True]
    with pytest.raises(InputError, match="no domain 'alchemy'"):
        fit.plot("trace", domain="alchemy")
    with pytest.raises(InputError, match="no item 'q' in domain"):
        fit.plot("information", domain=item["domain"], items=["q"])


def test_options_to_trace(results):
    fit = results["nominal"]()
    best = fit.information().query("domain == 'odd'").nlargest(1, "nominal")["item"].item()
    ax = fit.plot("trace", domain="odd", ax=Figure().subplots())
    assert ax.get_legend().get_title().get_text() == f"{best} (odd)"


def test_profile_of_the_best_model_if_none_is_named(results):
    fit = results["fit"]()
    ax = fit.plot("profile", ax=Figure().subplots())
    assert ax.get_legend().get_texts()[-1].get_text() == fit.general.idxmax()
