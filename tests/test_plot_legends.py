"""Legends inside the figure, Axes that keep their room, lines told apart, names that the font cannot draw."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from test_plot_names import MANY, many_items, many_sines, many_traits

import mtlirt
from mtlirt import plots
from mtlirt.plots.style import legend_above, short
from mtlirt.plots.traits import _two

pyplot.switch_backend("agg")
WIDE = [f"{'W' * 40}{k:02d}" for k in range(56)]
LEAST_WIDTH = 0.4  # of the figure's, which the Axes keep whatever names stand beside them


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


def coef(names):
    a = np.linspace(0.3, 2, 56)
    return pd.DataFrame({"domain": names, "item": names, "a": a, "d": 0.0, "at_bound": False})


def options(names):
    rows = {"domain": names[0], "item": names[1], "option": names[:10], "a": np.linspace(-1, 1, 10), "c": 0.0}
    return pd.DataFrame({**rows, "right": np.arange(10) == 9})


def losses():
    rows = {"lam": [np.inf, 8, 4, 0], "mean": [0.6, 0.5, 0.49, 0.7], "se": 0.02, "n_fused": [56, 9, 3, 0]}
    return pd.DataFrame(rows)


def study(names):
    rows = {"design": 0, "replication": [0, 1] * 7, "estimator": np.repeat(names[:7], 2), "domain": "general"}
    return pd.DataFrame({**rows, "error": np.arange(14.0)})


def traits(names):
    frame = many_traits().set_axis(names, axis=1)
    return frame.set_axis([f"{name} as a model" for name in names[:40]], axis=0)


DRAWN = {
    "heterogeneity": lambda names: plots.heterogeneity(
        pd.DataFrame({"domain": names, "sine": 0.5, "rho": 0.9, "fused": False})
    ),
    "item_counts": lambda names: plots.item_counts(many_items().replace(dict(zip(MANY, names, strict=True)))),
    "item_accuracy": lambda names: plots.item_accuracy(many_items().replace(dict(zip(MANY, names, strict=True)))),
    "profile": lambda names: plots.profile(traits(names), list(traits(names).index[:6])),
    "profile of few": lambda names: plots.profile(traits(names).iloc[:, :3], list(traits(names).index[:6])),
    "trace": lambda names: plots.trace(coef(names).head(6)),
    "trace of options": lambda names: plots.trace(options(names)),
    "information": lambda names: plots.information(coef(names)),
    "item_map": lambda names: plots.item_map(coef(names)),
    "correlation": lambda names: plots.correlation(traits(names)),
    "pca": lambda names: plots.pca(
        traits(names), traits(names).mean(axis=1), pd.Series([names[k % 8] for k in range(56)], names)
    ),
    "path": lambda names: plots.path(many_sines().set_axis(names, axis=1), lam=9.0),
    "cv": lambda names: plots.cv(losses()),
    "study": lambda names: plots.study_general(study(names)),
}


@pytest.mark.parametrize("names", [MANY, WIDE], ids=["many", "wide"])
@pytest.mark.parametrize("name", DRAWN)
def test_legends_lie_in_the_figure_and_axes_keep_their_room(name, names):
    ax = DRAWN[name](names)
    ax.figure.draw_without_rendering()
    edge, legend = ax.figure.bbox, ax.get_legend()
    assert ax.get_window_extent().width >= LEAST_WIDTH * edge.width
    assert ax.get_window_extent().height >= LEAST_WIDTH * edge.height
    if legend is not None:
        box = legend.get_window_extent()
        assert edge.x0 <= box.x0
        assert box.x1 <= edge.x1
        assert box.y1 <= edge.y1


def test_a_legend_that_is_too_wide_for_one_column_gets_smaller_letters():
    ax = Figure(figsize=(3, 3)).subplots()
    ax.plot([0, 1], label="W" * 60)
    legend = legend_above(ax, 3)
    assert legend.get_window_extent().width <= ax.get_window_extent().width
    assert legend.get_texts()[0].get_text() == "W" * 60


def look(line):
    return line.get_color(), line._dash_pattern


def test_lines_are_told_apart():
    ax = plots.trace(coef(MANY).head(6), ax=Figure().subplots())
    assert len({str(line._dash_pattern) for line in ax.lines}) == 6
    many = pd.DataFrame({"domain": "d", "item": "q", "option": range(37), "a": 1.0, "c": 0.0})
    ax = plots.trace(many.assign(right=many["option"] == 0), ax=Figure().subplots())
    assert len({str(look(line)) for line in ax.lines}) == 37


@pytest.mark.parametrize(("domains", "entry"), [(56, "50 other domains"), (7, "1 other domain"), (6, None)])
def test_pale_lines_have_an_entry(domains, entry):
    path = plots.path(many_sines().iloc[:, :domains], ax=Figure().subplots())
    curves = plots.information(coef(MANY).head(domains), ax=Figure().subplots())
    said = [text.get_text() for text in curves.get_legend().get_texts()]
    assert said[6:] == ([entry] if entry else [])
    legend = path.get_legend()
    assert (legend.get_texts()[0].get_text() if legend else None) == entry


def test_the_dashed_line_of_cv_has_an_entry():
    ax = plots.cv(losses(), ax=Figure().subplots())
    assert "one standard error above the smallest loss" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_signs_that_the_font_lacks():
    """Tests run with warnings as errors, as matplotlib's of a missing glyph."""
    assert short("law \N{PARTY POPPER}\N{CJK UNIFIED IDEOGRAPH-6CD5}") == "law □□"
    assert short("Größe α") == "Größe α"
    assert short("a\N{PARTY POPPER}\N{VARIATION SELECTOR-16}b").startswith("a□")
    names = [f"{name} \N{PARTY POPPER}" for name in MANY]
    for name in ("heterogeneity", "profile", "trace", "trace of options", "information", "correlation", "pca", "study"):
        DRAWN[name](names).figure.draw_without_rendering()


def test_signs_stay_where_svg_leaves_them_to_the_browser():
    with pyplot.rc_context({"svg.fonttype": "none"}):
        assert short("\N{PARTY POPPER}") == "\N{PARTY POPPER}"


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(6.5, 7.5, {"6.6", "7", "7.4"}), (2, 19, {"2", "5", "10"}), (7, 72, {"10", "20", "50"}), (1, 1000, {"1", "1000"})],
)
def test_sizes_are_plain_numbers(low, high, wanted):
    models = [f"m{k}" for k in range(20)]
    general = pd.Series(np.linspace(-1, 1, 20), models)
    ax = plots.size(general, pd.Series(np.geomspace(low, high, 20), models), ax=Figure().subplots())
    ax.figure.draw_without_rendering()
    labels = {text.get_text() for text in ax.get_xticklabels()}
    assert wanted <= labels
    assert not any(text.get_text() for text in ax.get_xticklabels(minor=True))


@pytest.mark.parametrize(("noise", "lowest"), [(0.0, 0.9), (0.01, 0.9), (1.0, None)])
def test_colours_of_correlations_end_at_one(noise, lowest):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(99, 1)) + noise * rng.normal(size=(99, 4)), columns=list("abcd"))
    image = plots.correlation(frame, ax=Figure().subplots()).images[0]
    assert image.get_clim() == (pytest.approx(lowest or frame.corr().min().min()), 1)


def test_numbers_below_one_lose_their_zero_and_no_others():
    assert [_two(x) for x in (0.834, -0.5, 10.5, 1.0, 0.0)] == [".83", "-.50", "10.50", "1.00", ".00"]


def test_components_have_one_scale():
    ax = plots.pca(many_traits(), many_traits().mean(axis=1), ax=Figure(figsize=(9, 3)).subplots())
    ax.figure.draw_without_rendering()
    (x0, y0), (x1, y1) = ax.transData.transform([[0, 0], [0.1, 0.1]])
    assert x1 - x0 == pytest.approx(y1 - y0)


# profile


@pytest.fixture(scope="module")
def fit(small):
    return mtlirt.fit_mtl(small.responses, lam=1.0)


def rows(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_profile_of_scored_answers_has_domains_only(fit, small):
    scored = fit.score(small.responses)
    ax = plots.profile(scored, fit.models[0], ax=Figure().subplots())
    assert set(rows(ax)) == set(fit.domains)
    assert ax.get_xlabel() == "trait (standard deviations)"


def test_profile_of_shares_is_not_called_traits(fit):
    ax = plots.profile(fit.scores("expected"), fit.models[0], ax=Figure().subplots())
    assert ax.get_xlabel() == "score"


def test_domains_named_like_columns(small):
    table = small.responses.to_long()
    odd = ["model", "general", "mean_score", "se:x", "n_answers", "borrowed", "domain:y"]
    names = dict(zip(small.responses.domains, odd, strict=False))
    table["domain"] = table["domain"].astype(str).map(lambda d: names.get(d, d))
    fit = mtlirt.fit_mtl(mtlirt.Responses.from_long(table), lam=1.0)
    for ax in (fit.plot("profile"), plots.profile(fit.scores(se=True), fit.models[0])):
        assert set(rows(ax)) == set(fit.domains)


def test_traits_without_answers_or_on_a_bound_are_hollow(small):
    table = small.responses.to_long()
    model, domain = small.responses.models[3], small.responses.domains[1]
    fit = mtlirt.fit_mtl(
        mtlirt.Responses.from_long(table[(table["model"] != model) | (table["domain"] != domain)]), 1.0
    )
    ax = fit.plot("profile", model=model, ax=Figure().subplots())
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    drawn = [rows(ax)[k] for k in np.flatnonzero(~np.isnan(hollow[0].get_xdata()))]
    assert drawn == [domain]
    assert ax.get_legend().get_texts()[-1].get_text() == "without answers, or on a bound"
    told = pd.DataFrame({domain: [True]}, index=[model])
    plain = plots.profile(fit.theta, model, ax=Figure().subplots())
    marked = plots.profile(fit.theta, model, hollow=told, ax=Figure().subplots())
    assert len(marked.lines) == len(plain.lines) + 2
    C = fit.settings["C"]
    bound = fit.theta.copy()
    bound.loc[model] = C
    ax = replace(fit, theta=bound).plot("profile", model=model, ax=Figure().subplots())
    hollow = next(line for line in ax.lines if line.get_markerfacecolor() == "white")
    assert (hollow.get_xdata() == C).all()
