"""The paper's figures in one call: what is written, what is left out and why."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.image import imread
from test_plot_types import choices

import mtlirt
from mtlirt import InputError
from mtlirt.plots import paper_figures

pyplot.switch_backend("agg")
FILES = [
    "figure2_item_counts.png",
    "figure3_item_accuracy.png",
    "figure4_correlation.png",
    "figure7_pca.png",
    "figure8_rank_flow.png",
    "table1_heterogeneity.csv",
    "table2_top.csv",
    "size.png",
    "path.png",
    "cv.png",
]


@pytest.fixture(scope="module")
def comparison(demo):
    return mtlirt.compare_pooling(demo, lams=[11.0], folds=3)


@pytest.fixture
def info(demo):
    models = demo.models
    return pd.DataFrame({"model": models, "size": np.arange(1.0, len(models) + 1), "family": "f"})


def written(folder):
    return sorted(path.name for path in folder.iterdir())


def test_all_of_a_cross_validation(comparison, info, tmp_path):
    made = paper_figures(comparison.cv, tmp_path / "new" / "paper", model_info=info)
    assert list(made.columns) == ["name", "file", "reason"]
    assert made["file"].tolist() == FILES
    assert (made["reason"] == "").all()
    assert written(tmp_path / "new" / "paper") == sorted(FILES)
    for file in FILES:
        if file.endswith(".png"):
            assert np.ptp(imread(tmp_path / "new" / "paper" / file)) > 0
    assert not pyplot.get_fignums()


def test_tables(comparison, demo, info, tmp_path):
    paper_figures(comparison, str(tmp_path), demo.with_model_info(info))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / FILES[5]), comparison.cv.fit.heterogeneity())
    top = pd.read_csv(tmp_path / FILES[6])
    ranks = comparison.ranks.astype("int64")
    assert len(top) == 20
    assert top["general_rank"].is_monotonic_increasing
    for column, regime in (("general", "chosen"), ("complete", "complete"), ("mean_score", "mean_score")):
        assert top[f"{column}_rank"].tolist() == ranks.loc[top["model"], regime].tolist()
    assert top["info:size"].tolist() == info.set_index("model").loc[top["model"], "size"].tolist()


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [("fit", {"rank_flow", "size", "path", "cv"}), ("nominal", {"pca", "rank_flow", "size", "path", "cv"})],
)
def test_what_is_not_there_is_left_out_with_the_reason(comparison, tmp_path, kind, left_out):
    result = comparison.cv.path.at(0) if kind == "fit" else mtlirt.fit_nrm(choices())
    made = paper_figures(result, tmp_path).set_index("name")
    assert set(made.index[made["file"] == ""]) == left_out
    assert ((made["reason"] != "") == (made["file"] == "")).all()
    assert "cv_mtl(responses" in made.loc["cv", "reason"]
    assert "model_info with a column size" in made.loc["size", "reason"]
    assert written(tmp_path) == sorted(made.loc[made["file"] != "", "file"])
    assert not pyplot.get_fignums()


def test_figures_of_an_earlier_result_do_not_stay(comparison, tmp_path):
    for name in (*FILES, "mine.txt"):
        (tmp_path / name).write_text("mine")
    paper_figures(comparison.cv.path.at(0), tmp_path)
    assert not {"cv.png", "path.png", "size.png", "figure8_rank_flow.png"} & set(written(tmp_path))
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_folders_and_results_that_are_refused(cv, small, tmp_path):
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/below"):
        with pytest.raises(InputError, match="cannot be a folder"):
            paper_figures(cv, tmp_path / out)
    with pytest.raises(InputError, match="not Path"):
        paper_figures(cv.path, tmp_path / "new")
    with pytest.raises(InputError, match="lack models"):
        paper_figures(cv, tmp_path / "new", small.responses.subset(models=small.responses.models[:9]))
    for wrong, message in (
        ({"responses": small.responses.to_long()}, "responses must be Responses, not DataFrame"),
        ({"model_info": {"size": 7}}, "model_info must be a frame, not dict"),
        ({"out": 3}, "out must be the path of a folder, not int"),
    ):
        with pytest.raises(InputError, match=message):
            paper_figures(cv, **{"out": tmp_path / "new", **wrong})
    assert not (tmp_path / "new").exists()


def test_advice_is_of_the_kind_of_result(cv, tmp_path):
    def reasons(result):
        return paper_figures(result, tmp_path).set_index("name")["reason"]

    of_fit = reasons(cv.path.at(0))
    assert all("a Fit holds no" in of_fit[name] for name in ("rank_flow", "path", "cv"))
    assert of_fit["rank_flow"].endswith("pass a CVResult of cv_mtl(responses), or a comparison")
    options = mtlirt.cv_mtl(choices(models=40, items=24), lams=[5.0], folds=2, model="nrm")
    of_options = reasons(options)
    assert (
        of_options["rank_flow"] == "rank_flow: only the 2PL's regimes are compared; this CVResult is of an option model"
    )
    assert of_options["path"] == of_options["cv"] == ""


def test_a_file_that_cannot_be_written(cv, tmp_path):
    (tmp_path / FILES[0]).mkdir()
    with pytest.raises(InputError, match=f"{FILES[0]}: cannot be written"):
        paper_figures(cv, tmp_path)
    assert written(tmp_path) == [FILES[0]]
    assert not pyplot.get_fignums()
