"""Pictures: what is drawn equals the frame."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy.special import expit

import mtlirt
from mtlirt import InputError, plots
from mtlirt.plots.ranks import flows, tiers

pyplot.switch_backend("agg")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def fit(small):
    return mtlirt.fit_mtl(small.responses, lam=1.0)


@pytest.fixture(scope="module")
def nominal():
    return mtlirt.fit_nrm(choices())


def choices(models=30, items=12):
    """Answers to items with four options in two domains; better models choose the key more often."""
    rng = np.random.default_rng(3)
    rows = []
    for i, j in itertools.product(range(models), range(items)):
        right = rng.random() < expit(3 * i / models - 1)
        option = "A" if right else "BCD"[rng.integers(3)]
        rows.append((f"m{i:02d}", "odd" if j % 2 else "even", f"q{j:02d}", option, "A", 4))
    table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key", "n_options"])
    return mtlirt.Responses.from_long(table, score=None, option="option", key="key", n_options="n_options")


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


# domains


def test_item_counts(fit, ax):
    assert plots.item_counts(fit.items, ax=ax) is ax
    counts = fit.items["domain"].value_counts()
    assert [bar.get_width() for bar in ax.patches] == counts.tolist()
    assert labels(ax.yaxis) == list(counts.index)
    assert [text.get_text() for text in ax.texts] == [str(n) for n in counts]
    assert ax.yaxis_inverted()


def test_item_accuracy(fit, ax):
    plots.item_accuracy(fit.items, ax=ax)
    medians = fit.items.groupby("domain")["mean_score"].median().sort_values(ascending=False, kind="stable")
    assert labels(ax.yaxis) == list(medians.index)
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_color() == "black" and line.get_linestyle() != "None"]
    np.testing.assert_allclose(drawn, medians)


def test_heterogeneity(fit, ax):
    table = fit.heterogeneity()
    table.loc[3, ["sine", "rho", "fused"]] = 0.0, 1.0, True
    plots.heterogeneity(table.iloc[::-1], ax=ax)
    assert labels(ax.yaxis) == table["domain"].tolist()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], table["sine"])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), table["rho"])
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [("fused", 3)]


def test_negative_rank_correlations_are_in_sight(fit, ax):
    plots.heterogeneity(fit.heterogeneity().assign(rho=-0.5), ax=ax)
    assert ax.get_xlim() == (-0.5, 1)


# traits


def test_correlation(ax):
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 200))
    near = 0.1 * rng.normal(size=(2, 200))
    traits = pd.DataFrame({"a": u, "x": v, "b": u + near[0], "y": v + near[1]})
    plots.correlation(traits, ax=ax)
    order = labels(ax.yaxis)
    assert labels(ax.xaxis) == order
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset("ab"), frozenset("xy")}
    wanted = traits.corr().loc[order, order]
    np.testing.assert_allclose(ax.images[0].get_array(), wanted)
    between = wanted.to_numpy()[np.triu_indices(4, 1)]
    low, middle, high = (f"{x:.2f}".replace("0.", ".") for x in np.quantile(between, [0, 0.5, 1]))
    assert ax.get_title() == f"median {middle}, from {low} to {high}"
    assert len(ax.texts) == 16


def test_correlation_with_a_constant_domain(ax):
    rng = np.random.default_rng(0)
    traits = pd.DataFrame({"a": rng.normal(size=20), "b": rng.normal(size=20), "same": 1.0})
    plots.correlation(traits, ax=ax)
    assert len(ax.texts) == 4


def test_pca_places_vectors_in_their_plane(ax):
    """Traits e0, e0 + e1 and so on: the distances of points are those of the unit vectors, projected."""
    rng = np.random.default_rng(1)
    theta = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
    general = theta.mean(axis=1)
    plots.pca(theta, general, groups=pd.Series(["g", "h", "g", "h"], list("abcd")), ax=ax)
    unit = pd.concat([theta, general], axis=1).to_numpy()
    unit = (unit - unit.mean(axis=0)) / (unit.std(axis=0) * np.sqrt(len(unit)))
    centred = unit - unit[:, :4].mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(centred[:, :4] @ centred[:, :4].T)
    wanted = np.abs(vectors[:, [-1, -2]].T @ centred)
    drawn = [np.column_stack(line.get_data()) for line in ax.lines]
    places = np.empty((5, 2))
    places[[0, 2]], places[[1, 3]], places[[4]] = drawn
    np.testing.assert_allclose(np.abs(places.T), wanted, atol=1e-10)
    shares = 100 * values[[-1, -2]] / values.sum()
    assert ax.get_xlabel() == f"first component ({shares[0]:.0f} % of the variance)"
    assert ax.get_ylabel() == f"second component ({shares[1]:.0f} % of the variance)"
    assert sorted(text.get_text() for text in ax.texts) == list("abcd")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["g", "h", "general trait"]


# models


def test_profile(fit, ax):
    models = [fit.models[3], fit.models[8]]
    plots.profile(fit.scores(), models, ax=ax)
    order = fit.theta.loc[models[0]].sort_values(ascending=False).index
    assert labels(ax.yaxis) == list(order)
    median, *drawn = ax.lines
    np.testing.assert_allclose(median.get_xdata(), fit.theta[order].median())
    for line, model in zip(drawn, models, strict=True):
        np.testing.assert_allclose(line.get_xdata(), fit.theta.loc[model, order])
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends.T, fit.theta[order].quantile([0.05, 0.95]))


def test_profile_of_the_traits_alone_is_the_same(fit, ax):
    plots.profile(fit.theta, fit.models[0], ax=ax)
    other = plots.profile(fit.scores(se=True), fit.models[0], ax=Figure().subplots())
    for one, two in zip(ax.lines, other.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


def test_size(ax):
    rng = np.random.default_rng(2)
    billions = pd.Series(10 ** rng.uniform(0, 2, 300), [f"m{i}" for i in range(300)])
    general = np.log10(billions) - 1 + 0.1 * rng.normal(size=300)
    general["m7"], billions["m8"], billions["m9"] = 9.0, np.nan, -1.0
    plots.size(general, billions.sample(frac=1, random_state=1), ax=ax)
    points, smooth = ax.lines
    known = billions.drop(["m8", "m9"])
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([known, general[known.index]]))
    # the smooth follows the line from which points were drawn to two standard errors of a mean of some 30 of them
    assert np.abs(smooth.get_ydata() - (np.log10(smooth.get_xdata()) - 1))[20:-20].max() < 2 * 0.1 / np.sqrt(30) + 0.01
    assert ax.texts[0].get_text() == "m7"
    assert len(ax.texts) <= 5
    assert ax.get_title(loc="left") == "2 of 300 models have no known size"


def test_models_near_the_smooth_are_not_named(ax):
    """All are .1 off a line, by turns above and below, so none is farther off than the others."""
    billions = pd.Series(10 ** np.linspace(0, 2, 300))
    plots.size(np.log10(billions) + np.resize([0.1, -0.1], 300), billions, ax=ax)
    assert not ax.texts


@pytest.mark.parametrize("sizes", [[7.0] * 90 + [1, 2, 3, 8, 9, 10, 11, 12, 13, 14], [7.0] * 50 + [13.0] * 50])
def test_size_with_many_ties(ax, sizes):
    names = [f"m{i}" for i in range(100)]
    plots.size(pd.Series(np.linspace(-1, 1, 100), names), pd.Series(sizes, names), ax=ax)
    assert np.isfinite(ax.lines[1].get_ydata()).all()


def test_size_of_equal_models_has_no_smooth(ax):
    plots.size(pd.Series([1.0, 2.0, 3.0]), pd.Series([7.0, 7.0, 7.0]), ax=ax)
    assert len(ax.lines) == 1


def test_rank_flow(ax):
    rng = np.random.default_rng(4)
    chosen = pd.Series(np.arange(1, 104), [f"m{i}" for i in range(103)])
    noisy = {name: (chosen + rng.normal(size=103) * 9).rank() for name in ("complete", "mean_score")}
    ranks = pd.DataFrame({"chosen": chosen, **noisy}).astype("Float64")
    ranks.loc["extra"] = [pd.NA, 1, 1]
    plots.rank_flow(ranks, ax=ax)
    assert [text.get_text().split("\n")[0] for text in ax.get_xticklabels()] == [
        "complete pooling",
        "chosen lam",
        "mean score",
    ]
    counts = [flows(chosen, noisy[name]) for name in ("complete", "mean_score")]
    assert len(ax.collections) == sum((table > 0).to_numpy().sum() for table in counts)
    for table in counts:
        assert table.to_numpy().sum() == 103
        np.testing.assert_array_equal(table.sum(axis=1), tiers(chosen).value_counts().sort_index())
    for end in (0, 1):
        assert sum(np.ptp(_ends(band)[end]) for band in ax.collections) == pytest.approx(2 * 103)
    assert [round(bar.get_height()) for bar in ax.patches] == 3 * list(tiers(chosen).value_counts().sort_index())


def _ends(band):
    """Upper and lower side of a band at its left and its right end."""
    corners = band.get_paths()[0].vertices
    at_ends = [corners[np.isclose(corners[:, 0], x), 1] for x in (corners[:, 0].min(), corners[:, 0].max())]
    return [(y.min(), y.max()) for y in at_ends]


@pytest.mark.parametrize(("column", "noise"), [(0, 0.0), (0, 20.0), (2, 20.0)])
def test_bands_fill_their_boxes(ax, column, noise):
    """At both ends of a side the bands tile the ten boxes they join, without gap or overlap."""
    chosen = pd.Series(np.arange(1.0, 51.0))
    other = (chosen + noise * np.random.default_rng(8).normal(size=50)).rank()
    plots.rank_flow(pd.DataFrame({"chosen": chosen, "complete": other, "mean_score": other}), ax=ax)
    boxes = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches)[::3]
    side = [band for band in ax.collections if (band.get_paths()[0].vertices[:, 0].mean() > 1) == (column == 2)]
    for end in zip(*map(_ends, side), strict=True):
        pieces = sorted(end)
        joined = [pieces[0]]
        for low, high in pieces[1:]:
            if np.isclose(low, joined[-1][1]):
                joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
        np.testing.assert_allclose(joined, boxes)


# items


def test_trace_of_right_answers(fit, ax):
    coef = fit.coef().iloc[[0, 40, 80]]
    plots.trace(coef, ax=ax)
    for line, row in zip(ax.lines, coef.itertuples(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), expit(row.a * line.get_xdata() + row.d))
        assert row.item in line.get_label()
    assert ax.get_ylabel() == "P(right)"


def test_trace_of_options(nominal, ax):
    coef = nominal.coef().query("domain == 'even' and item == 'q04'")
    plots.trace(coef, ax=ax)
    curves = nominal.curves("even", "q04", ax.lines[0].get_xdata())
    for line, option in zip(ax.lines, curves.columns, strict=True):
        np.testing.assert_allclose(line.get_ydata(), curves[option])
        assert (line.get_color() == "black") == (option == "A")
    assert "A, the key" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_information_of_domains_and_items(fit, ax):
    coef = fit.coef()
    plots.information(coef, ax=ax)
    at = ax.lines[0].get_xdata()
    p = expit(np.multiply.outer(at, coef["a"].to_numpy()) + coef["d"].to_numpy())
    each = pd.DataFrame((coef["a"].to_numpy() ** 2 * p * (1 - p)).T)
    wanted = each.groupby(coef["domain"].to_numpy()).sum().T
    for line in ax.lines:
        np.testing.assert_allclose(line.get_ydata(), wanted[line.get_label()])
    single = plots.information(coef.iloc[[5]], by="item", ax=Figure().subplots())
    np.testing.assert_allclose(single.lines[0].get_ydata(), each.iloc[5])


def test_information_of_options(nominal, ax):
    plots.information(nominal.coef(), ax=ax)
    at = np.linspace(-4, 4, 161)
    for k in (0, 60, 160):
        table = nominal.information(at[k])
        tops = [
            area.get_paths()[0].vertices[:, 1][area.get_paths()[0].vertices[:, 0] == at[k]].max()
            for area in ax.collections
        ]
        assert tops == pytest.approx([table["binary"].sum(), table["nominal"].sum()])


def test_item_map(fit, ax):
    items = fit.items.copy()
    items.loc[:3, ["a", "at_bound"]] = 0.0, True
    items.loc[7:8, ["a", "at_bound"]] = 4.0, True
    plots.item_map(items, ax=ax)
    inside, flat, bound = (line.get_xydata() for line in ax.lines)
    np.testing.assert_array_equal(flat, items.loc[items["a"] == 0, ["d", "a"]])
    np.testing.assert_array_equal(bound, items.loc[items["at_bound"] & (items["a"] > 0), ["d", "a"]])
    assert len(inside) + len(flat) + len(bound) == len(items)
    assert ax.get_legend().get_texts()[1].get_text() == f"slope 0 ({len(flat)})"


# selection


def test_path(cv, ax):
    sines = cv.path.sines
    plots.path(sines.sample(frac=1, random_state=0), lam=3.0, ax=ax)
    lines = {line.get_label(): line for line in ax.lines if len(line.get_xdata()) == len(sines)}
    assert set(lines) == set(sines.columns)
    for domain, line in lines.items():
        np.testing.assert_allclose(line.get_ydata(), sines[domain])
        np.testing.assert_allclose(line.get_xdata()[1:-1], np.log10(sines.index[1:-1]))
    left, right = ax.get_xlim()
    x = line.get_xdata()
    assert left > x[0] > x[1]
    assert right < x[-1] < x[-2]
    assert any(np.allclose(line.get_xdata(), np.log10(3.0)) for line in ax.lines)
    assert labels(ax.xaxis)[-2:] == ["∞\ncomplete\npooling", "0\nseparate\ndomains"]


def test_names_stand_where_domains_leave(cv, ax):
    plots.path(cv.path.sines, ax=ax)
    assert {text.get_text(): 10 ** text.xy[0] for text in ax.texts} == pytest.approx(cv.path.leaves.to_dict())


@pytest.mark.parametrize(("lam", "end"), [(np.inf, 0), (0, -1)])
def test_chosen_lam_at_an_end(cv, ax, lam, end):
    plots.path(cv.path.sines, lam=lam, ax=ax)
    curve = next(line for line in ax.lines if len(line.get_xdata()) == len(cv.lams))
    marked = next(line for line in ax.lines if line.get_color() == "black")
    assert marked.get_xdata()[0] == curve.get_xdata()[end]


def test_path_of_the_ends_alone(ax):
    sines = pd.DataFrame({"a": [0.0, 0.4], "b": [0.0, 0.2]}, index=[np.inf, 0.0])
    plots.path(sines, ax=ax)
    assert len(labels(ax.xaxis)) == 2


def test_cv(cv, ax):
    plots.cv(cv.table, ax=ax)
    inner, ends = (box.lines[0] for box in ax.containers)
    table = cv.table
    np.testing.assert_allclose(inner.get_xydata(), np.column_stack([np.log10(table["lam"][1:-1]), table["mean"][1:-1]]))
    np.testing.assert_allclose(ends.get_ydata(), table["mean"].iloc[[0, -1]])
    bars = np.array([segment[:, 1] for segment in ax.containers[0].lines[2][0].get_segments()])
    np.testing.assert_allclose(np.ptp(bars, axis=1), 2 * table["se"][1:-1])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(f"lam = {cv.lam_min:.4g}".replace("inf", "infinity") in word for word in words)
    assert [text.get_text() for text in ax.texts][: len(table)] == table["n_fused"].astype(str).tolist()


def test_cv_finds_the_choices_in_the_table(cv, ax):
    alone = plots.cv(cv.table, ax=ax)
    told = plots.cv(cv.table, lam_min=cv.lam_min, lam_1se=cv.lam_1se, ax=Figure().subplots())
    for one, two in zip(alone.lines, told.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


def test_cv_marks_the_most_pooling_within_one_standard_error(ax):
    """The smallest loss is .50 at lam = 2, its standard error .03; 8 and 4 lie within it, infinity does not."""
    lams, mean = [np.inf, 8.0, 4.0, 2.0, 1.0, 0.0], [0.60, 0.52, 0.51, 0.50, 0.51, 0.70]
    plots.cv(pd.DataFrame({"lam": lams, "mean": mean, "se": 0.03, "n_fused": 1}), ax=ax)
    marked = {line.get_linestyle(): 10 ** line.get_xdata()[0] for line in ax.lines if line.get_label()[0] != "_"}
    assert {line: lam for line, lam in marked.items() if line != "--"} == pytest.approx({"-": 2.0, ":": 8.0})
    level = next(line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--")
    assert level == pytest.approx(0.53)


def test_cv_leaves_out_lams_without_a_mean(cv, ax):
    table = cv.table.copy()
    table.loc[1, "mean"] = np.nan
    plots.cv(table, ax=ax)
    assert len(ax.containers[0].lines[0].get_xdata()) == len(table) - 3


# input that cannot be drawn


def test_too_many_items(fit, nominal):
    with pytest.raises(InputError, match="trace draws up to 6 items, not 140 items"):
        plots.trace(fit.coef())
    with pytest.raises(InputError, match="the options of one item, not 12 items"):
        plots.trace(nominal.coef())
    with pytest.raises(InputError, match="up to 6 items one by one, not 140"):
        plots.information(fit.coef(), by="item")
    with pytest.raises(InputError, match="no row of its key"):
        plots.information(nominal.coef().query("not right"))


def test_cv_without_losses(cv):
    with pytest.raises(InputError, match="no row has a number in each of lam, mean, se"):
        plots.cv(cv.table.assign(mean=np.nan))
    with pytest.raises(InputError, match="no mean loss at lam = 7"):
        plots.cv(cv.table, lam_min=7.0)
    assert not pyplot.get_fignums()
