"""Pictures: what is drawn equals what the frame says."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import mtlirt
from mtlirt import HeterogeneityDesign, InputError
from mtlirt.plots import study_domains, study_general

pyplot.switch_backend("agg")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    designs = [HeterogeneityDesign(h0=h0, N=30, sizes=(20, 30), per_size=2) for h0 in (0.1, 0.3, 0.5)]
    out = tmp_path_factory.mktemp("study")
    return mtlirt.run_study(designs, out=out, reps=4, estimators=["separate", "pooled", "mean_score"])


def medians(ax):
    """Heights of the black median lines, estimator after estimator."""
    lines = [line for line in ax.lines if line.get_color() == "black" and len(line.get_ydata()) == 2]
    return np.array([line.get_ydata()[0] for line in lines]).reshape(3, 3)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_general_errors(study, ax):
    assert study_general(study, ax=ax) is ax
    rows = study[study["domain"] == "general"]
    wanted = rows.pivot_table(index="estimator", columns="h0", values="error", aggfunc="median")
    np.testing.assert_allclose(medians(ax), wanted.loc[["separate", "pooled", "mean_score"]])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.1", "0.3", "0.5"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["separate", "pooled", "mean_score"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("h0", "error, general trait")


def test_domain_errors_are_averaged_over_replications_first(study, ax):
    study_domains(study, measure="sine_error", ax=ax)
    rows = study[study["domain"] != "general"]
    means = rows.groupby(["estimator", "h0", "domain"])["sine_error"].mean().reset_index()
    wanted = means.pivot_table(index="estimator", columns="h0", values="sine_error", aggfunc="median")
    np.testing.assert_allclose(medians(ax), wanted.loc[["separate", "pooled", "mean_score"]])
    assert ax.get_ylabel() == "sine error, domain traits"


def test_failed_replications_and_single_designs(study, ax):
    failed = pd.DataFrame([{"design": 0, "h0": 0.1, "replication": 9, "estimator": "separate", "status": "no luck"}])
    study_domains(pd.concat([study[study["design"] == 0], failed]), ax=ax)
    assert len(ax.get_xticklabels()) == 1


def test_without_axes_a_figure_is_made(study):
    ax = study_general(study)
    assert ax.figure.get_layout_engine() is not None
    pyplot.close(ax.figure)


def test_bad_measure(study):
    with pytest.raises(InputError, match="no measure 'beauty'; there are error, sine_error"):
        study_general(study, measure="beauty")
