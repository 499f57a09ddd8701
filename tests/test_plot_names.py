"""Pictures with 56 domains of long names, names that would cover each other, and input that cannot be drawn."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

from mtlirt import InputError, plots
from mtlirt.plots.names import name_points
from mtlirt.plots.style import short

pyplot.switch_backend("agg")
MANY = [f"leaderboard_{'very_' * (k % 9)}long_benchmark_name_{k:02d}_of_a_subject$_{k}" for k in range(56)]


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def clashes(texts):
    """Pairs of texts that meet, but for half a pixel of rounding; lines that lead to them do not count."""
    boxes = [Text.get_window_extent(text).padded(-0.5) for text in texts if text.get_text()]
    return sum(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def many_items():
    rng = np.random.default_rng(5)
    return pd.DataFrame({"domain": np.repeat(MANY, 5), "mean_score": rng.random(280)})


def many_traits():
    rng = np.random.default_rng(6)
    return pd.DataFrame(rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 56)), columns=MANY)


def many_sines():
    rng = np.random.default_rng(7)
    rise = np.sort(rng.random((8, 56)), axis=0) * (np.arange(8)[:, None] > rng.integers(0, 5, 56))
    return pd.DataFrame(rise, index=[np.inf, 64, 32, 16, 8, 4, 2, 0], columns=MANY)


def sines(**columns):
    return pd.DataFrame({"domain": ["a"], "sine": 0.5, "rho": 0.9, "fused": False}).assign(**columns)


def slopes(**columns):
    return pd.DataFrame({"domain": ["a"], "item": "q", "a": 1.0, "d": 0.0, "at_bound": False}).assign(**columns)


def losses(**columns):
    return pd.DataFrame({"lam": [4.0, 2.0], "mean": [0.6, 0.5], "se": 0.1, "n_fused": 1}).assign(**columns)


DRAWN = {
    "item_counts": lambda ax: plots.item_counts(many_items(), ax=ax),
    "item_accuracy": lambda ax: plots.item_accuracy(many_items(), ax=ax),
    "heterogeneity": lambda ax: plots.heterogeneity(
        pd.DataFrame({"domain": MANY, "sine": 0.5, "rho": 0.9, "fused": False}), ax=ax
    ),
    "profile": lambda ax: plots.profile(many_traits(), 0, ax=ax),
    "correlation": lambda ax: plots.correlation(many_traits(), ax=ax),
    "pca": lambda ax: plots.pca(many_traits(), many_traits().mean(axis=1), ax=ax),
    "path": lambda ax: plots.path(many_sines(), ax=ax),
}


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", DRAWN)
def test_names_of_56_domains_do_not_meet(name, given):
    ax = DRAWN[name](Figure(figsize=(7, 7)).subplots() if given else None)
    ax.figure.draw_without_rendering()
    assert clashes(ax.get_yticklabels()) == 0
    assert clashes(ax.get_xticklabels()) == 0
    assert clashes(ax.texts) == 0
    assert max(len(text) for text in labels(ax.yaxis)) <= 36 + 1  # a sign more for each "$"
    if not given:
        edge = ax.figure.get_window_extent()
        assert all(edge.x0 <= text.get_window_extent().x0 for text in ax.get_yticklabels())


def test_short_names():
    assert short("law") == "law"
    assert short("x" * 40 + "end", 11) == "xxxxx…xxend"
    assert short("costs $ and $") == r"costs \$ and \$"
    assert short("two\nlines") == "two lines"
    assert short("_hidden") == " _hidden"
    assert short("") == " "


@pytest.mark.parametrize(("models", "named"), [(5, 5), (80, 1)])
def test_names_beside_one_point_keep_off_each_other(models, named):
    """Five names find room around a point; of 80 those that find none are left out."""
    ax = Figure().subplots()
    points = np.full((models, 2), 0.5)
    name_points(ax, points, [f"model {k}" for k in range(models)], ["black"] * models, points)
    ax.figure.draw_without_rendering()
    assert clashes(ax.texts) == 0
    assert named <= len(ax.texts) < max(models, 6)


REFUSED = {
    "no frame": (lambda: plots.item_counts([1, 2]), "item_counts: needs a frame, not list"),
    "no column": (lambda: plots.item_accuracy(pd.DataFrame({"domain": ["a"]})), "no column 'mean_score'"),
    "no rows": (lambda: plots.item_counts(pd.DataFrame({"domain": []})), "item_counts: the frame is empty"),
    "one domain": (lambda: plots.correlation(many_traits().iloc[:, :1]), "correlation: needs 2 domains or more"),
    "words": (lambda: plots.correlation(many_items()), "column 'domain' holds no numbers"),
    "constant": (lambda: plots.correlation(many_traits() * 0), "no two domains vary"),
    "one trait": (
        lambda: plots.pca(pd.DataFrame({d: range(9) for d in "abc"}), pd.Series(range(9))),
        "all domains share one trait",
    ),
    "two models": (lambda: plots.pca(many_traits().head(2), pd.Series([0.0, 1.0])), "needs 3 models"),
    "no group": (
        lambda: plots.pca(many_traits(), many_traits().mean(axis=1), pd.Series({MANY[0]: "g"})),
        f"groups has none for domain '{MANY[1][:9]}",
    ),
    "groups": (
        lambda: plots.pca(many_traits(), many_traits().mean(axis=1), pd.Series(MANY, MANY)),
        "up to 8 groups can be told apart, not 56",
    ),
    "model": (lambda: plots.profile(many_traits(), "nobody"), "profile: there is no model 'nobody'"),
    "models": (lambda: plots.profile(many_traits(), list(range(7))), "name 1 to 6 models, not 7"),
    "no size": (lambda: plots.size(pd.Series([1.0]), pd.Series(["7B"])), "size: size must be a Series of numbers"),
    "sizes": (lambda: plots.size(pd.Series([1.0] * 4), pd.Series([1, 2, -1, 0])), "needs 3 models .* not 2"),
    "regime": (lambda: plots.rank_flow(pd.DataFrame({"chosen": [1]})), "rank_flow: .* no column 'complete'"),
    "few": (
        lambda: plots.rank_flow(pd.DataFrame(dict.fromkeys(["complete", "chosen", "mean_score"], range(9)))),
        "needs 10 models",
    ),
    "lam": (lambda: plots.path(many_sines(), lam=-1.0), "lam must be"),
    "lams": (lambda: plots.path(pd.concat([many_sines()] * 2)), "a lam has more than one row"),
    "no lams": (lambda: plots.path(many_sines().set_axis(list("abcdefgh"))), "lam must be"),
    "no slope": (lambda: plots.trace(pd.DataFrame({"domain": ["a"], "item": ["q"]})), "trace: .* no column 'a'"),
    "by": (lambda: plots.information(pd.DataFrame(), by="model"), "by must be one of"),
    "map": (lambda: plots.item_map(many_items()), "item_map: the frame has no column 'at_bound'"),
    "text": (lambda: plots.heterogeneity(sines(sine="much")), "column 'sine' holds no numbers but"),
    "text slopes": (lambda: plots.item_map(slopes(a="steep")), "column 'a' holds no numbers"),
    "trace of text": (lambda: plots.trace(slopes(a="steep")), "trace: column 'a' holds no numbers"),
    "no mean": (lambda: plots.item_accuracy(many_items().assign(mean_score=np.nan)), "no row has a number in .*mean_s"),
    "no numbers": (lambda: plots.correlation(many_traits() * np.nan), "the frame holds no number"),
    "a constant": (lambda: plots.pca(many_traits().assign(x=1.0), many_traits().sum(axis=1)), "'x' is the same for"),
    "list of groups": (lambda: plots.pca(many_traits(), many_traits().sum(axis=1), ["g"]), "groups must be a Series"),
    "no general": (lambda: plots.pca(many_traits(), None), "general must be a Series of numbers, not NoneType"),
    "general": (lambda: plots.pca(many_traits(), many_traits()), "general must be a Series of numbers, not DataFrame"),
    "twice": (lambda: plots.size(pd.Series([1.0, 2.0], ["m", "m"]), pd.Series([1.0], ["m"])), "more than one .* 'm'"),
    "size twice": (lambda: plots.size(pd.Series([1.0], ["m"]), pd.Series([1.0, 2], ["m", "m"])), "size has more than"),
    "no se": (lambda: plots.cv(losses(se=np.nan)), "no row has a number in each of lam, mean, se"),
    "no se at best": (lambda: plots.cv(losses(se=[0.1, np.nan])), "at lam = 2 has no standard error"),
    "ranks of text": (
        lambda: plots.rank_flow(pd.DataFrame("first", range(10), ["complete", "chosen", "mean_score"])),
        "rank_flow: column 'complete' holds no numbers",
    ),
    "no study": (lambda: plots.study_general(None), "study_general: needs a frame, not NoneType"),
    "no study of domains": (lambda: plots.study_domains(many_items()), "study_domains: .* no column 'design'"),
    "hollow": (lambda: plots.profile(many_traits(), 0, hollow=[True]), "hollow must be a frame"),
    "rows": (lambda: plots.profile(pd.concat([many_traits()] * 2), 0), "more than one row for model .*0"),
    "empty model": (lambda: plots.profile(many_traits().mul(np.r_[np.nan, np.ones(39)], axis=0), 0), "0 has no number"),
    "truths": (lambda: plots.pca(many_traits() > 0, many_traits().sum(axis=1)), "holds no numbers"),
    "infinite": (lambda: plots.pca(many_traits() / 0.0, many_traits().sum(axis=1)), "holds an infinite value"),
    "domain twice": (lambda: plots.profile(pd.concat([many_traits()] * 2, axis=1), 0), "more than one column 'leader"),
    "no domain": (lambda: plots.item_counts(pd.DataFrame({"domain": [None, None]})), "no row has a domain"),
    "axes": (lambda: plots.item_map(slopes(), ax="top"), "ax must be matplotlib Axes, not str"),
    "list of lists": (lambda: plots.profile(many_traits(), [[0]]), r"there is no model \[0\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_input_that_cannot_be_drawn(case):
    draw, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        draw()
    assert not pyplot.get_fignums()
