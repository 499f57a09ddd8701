"""What a report refuses: evidence of another fit, damaged files, places that cannot be written."""

import json

import numpy as np
import pytest
from test_cli import run
from test_report import RECORD

import mtlirt
from mtlirt.report import Evidence, facts


@pytest.fixture(scope="module")
def cv(small):
    return mtlirt.cv_mtl(small.responses, lams=[3.0], folds=3)


@pytest.fixture
def folder(small, cv, tmp_path):
    """What `fit` leaves."""
    for name, content in Evidence.of(cv.fit, cv, small.responses, RECORD).files().items():
        if isinstance(content, str):
            (tmp_path / name).write_text(content, encoding="utf-8")
        else:
            content.to_csv(tmp_path / name, index=False)
    cv.fit.save(tmp_path / "fit")
    return tmp_path


@pytest.mark.parametrize("path", ["", ".", "nul\0", "half\ud800", 3])
def test_places_that_are_no_file(cv, path):
    with pytest.raises(mtlirt.InputError, match="path"):
        cv.fit.report(path)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cv": 3}, "cv must be a CVResult"),
        ({"responses": 3}, "responses must be Responses"),
        ({"log": {"files": None}}, "log is no record of an import"),
        ({"log": 3}, "log is no record of an import"),
    ],
)
def test_arguments_of_other_types(cv, tmp_path, how, message):
    with pytest.raises(mtlirt.InputError, match=message):
        cv.fit.report(tmp_path / "r.html", **how)


def test_a_cross_validation_of_another_model(golden_options, tmp_path):
    cv = mtlirt.cv_mtl(golden_options, lams=[1.0], folds=2)
    for fit in (mtlirt.fit_nrm(golden_options), mtlirt.fit_mtl_nrm(golden_options, 1.0)):
        with pytest.raises(mtlirt.InputError, match="a cross-validation of another model"):
            fit.report(tmp_path / "r.html", cv=cv)


def test_other_answers(small, cv, tmp_path):
    frame = small.responses.to_long()
    frame.loc[0, "score"] = 1 - frame.loc[0, "score"]
    other = mtlirt.Responses.from_long(frame)
    with pytest.raises(mtlirt.InputError, match="other answers than the fit's"):
        cv.fit.report(tmp_path / "r.html", responses=other)
    frame.loc[0, "score"] = np.nan
    with pytest.raises(mtlirt.InputError, match="other answers than the fit's"):
        cv.fit.report(tmp_path / "r.html", responses=mtlirt.Responses.from_long(frame))


def drop_last(text):
    return "\n".join(text.splitlines()[:-1]) + "\n"


def repeat_last(text):
    return text + text.splitlines()[-1] + "\n"


def head_only(text):
    return text.splitlines()[0] + "\n"


def rename_first(text):
    head, first, *rest = text.splitlines()
    column = 1 if head.startswith("lam") else 0
    cells = first.split(",")
    cells[column] = "nobody"
    return "\n".join([head, ",".join(cells), *rest]) + "\n"


@pytest.mark.parametrize("name", ["per_domain", "sines", "ranks", "checks"])
@pytest.mark.parametrize("damage", [drop_last, repeat_last, head_only, rename_first])
def test_frames_of_another_fit(folder, cv, name, damage):
    path = folder / f"{name}.csv"
    path.write_text(damage(path.read_text()))
    with pytest.raises(mtlirt.InputError, match=rf"{name}\.csv: (is not of this fit|repeats|holds no rows)"):
        facts(cv.fit, Evidence.read(folder))


@pytest.mark.parametrize("damage", [repeat_last, head_only, rename_first])
def test_a_damaged_curve(folder, cv, damage):
    path = folder / "cv.csv"
    text = path.read_text().replace("\n0.0,", "\nnan,") if damage is rename_first else damage(path.read_text())
    path.write_text(text)
    with pytest.raises(mtlirt.InputError, match=r"cv\.csv"):
        facts(cv.fit, Evidence.read(folder))


def test_ranks_of_other_answers_by_the_same_models(folder, small, cv):
    frame = small.responses.to_long()
    frame["score"] = 1 - frame["score"]
    other = mtlirt.fit_mtl(mtlirt.Responses.from_long(frame), cv.fit.lam)
    with pytest.raises(mtlirt.InputError, match=r"ranks\.csv: is not of this fit, its mean scores"):
        facts(other, Evidence(ranks=Evidence.read(folder).ranks))


def settings_gone(folder):
    path = folder / "fit" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "settings": {}}))


def huge_number(folder):
    (folder / "reading.json").write_text(json.dumps(RECORD).replace('"rows": 3', '"rows": 1e400'))


def infinite_loss(folder):
    path = folder / "cv.csv"
    frame = path.read_text().splitlines()
    cells = frame[1].split(",")
    cells[frame[0].split(",").index("mean")] = "inf"
    path.write_text("\n".join([frame[0], ",".join(cells), *frame[2:]]) + "\n")


@pytest.mark.parametrize(
    ("damage", "name"), [(settings_gone, "manifest.json"), (huge_number, "reading.json"), (infinite_loss, "cv.csv")]
)
def test_a_damaged_folder_is_bad_input(folder, damage, name):
    damage(folder)
    done = run("report", folder, "-o", folder / "r.html")
    assert (done.returncode, name in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
    assert not (folder / "r.html").exists()
