"""Simulation studies: the table, resuming, seeds, failures."""

import dataclasses
import functools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

import mtlirt
from mtlirt import HeterogeneityDesign, InputError, run_study, study_table
from mtlirt.core.angle import sines
from mtlirt.simulation.draw import simulate
from mtlirt.simulation.summary import reference_cost

DESIGNS = [HeterogeneityDesign(h0=h0, N=60, sizes=(30, 40), per_size=1) for h0 in (0.1, 0.5)]
FAST = ("separate", "pooled", "mean_score")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def study(folder):
    return run_study(DESIGNS, out=folder, reps=3, estimators=FAST, seed=4)


def without_seconds(frame):
    return frame.drop(columns="seconds")


def test_one_row_per_design_replication_estimator_and_domain(study, folder):
    assert len(study) == 2 * 3 * 3 * 3  # two domains and the general trait
    fields = [f.name for f in dataclasses.fields(HeterogeneityDesign)]
    assert list(study.columns) == [
        "design",
        *fields,
        "replication",
        "estimator",
        "domain",
        "error",
        "sine_error",
        "spearman",
        "kendall",
        "lam",
        "status",
        "seconds",
    ]
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "study.parquet"), study)
    assert set(study["domain"]) == {"d01", "d02", "general"}
    assert (study.loc[study["estimator"] == "pooled", "lam"] == np.inf).all()
    assert (study.loc[study["estimator"] != "mean_score", "status"] == "CONVERGED").all()


def test_errors_are_those_of_the_fit(study):
    data, _ = np.random.SeedSequence(4, spawn_key=(1, 2)).spawn(2)
    simulation = simulate(DESIGNS[1], np.random.default_rng(data))
    fit = mtlirt.fit_mtl(simulation.responses, np.inf)
    row = study[(study["design"] == 1) & (study["replication"] == 2) & (study["estimator"] == "pooled")]
    x, y = fit.theta["d02"], simulation.truth.theta["d02"]
    got = row[row["domain"] == "d02"].iloc[0]
    assert got["error"] == pytest.approx(np.sqrt(((x - y) ** 2).mean()), rel=1e-6)
    assert got["sine_error"] == pytest.approx(sines(y.to_numpy(), x.to_numpy()[None])[0], rel=1e-6)
    assert got["spearman"] == pytest.approx(spearmanr(x, y).statistic, rel=1e-6)
    assert got["kendall"] == pytest.approx(kendalltau(x, y).statistic, rel=1e-6)
    x, y = fit.general, simulation.truth.general
    assert row[row["domain"] == "general"].iloc[0]["error"] == pytest.approx(np.sqrt(((x - y) ** 2).mean()), rel=1e-6)


def test_processes_and_order_do_not_matter(study, tmp_path):
    again = run_study(DESIGNS, out=tmp_path / "two", reps=3, estimators=FAST, seed=4, n_jobs=2)
    pd.testing.assert_frame_equal(without_seconds(again), without_seconds(study), check_exact=True)
    alone = run_study(DESIGNS[:1], out=tmp_path / "alone", reps=1, estimators=FAST, seed=4)
    first = study[(study["design"] == 0) & (study["replication"] == 0)].reset_index(drop=True)
    pd.testing.assert_frame_equal(without_seconds(alone), without_seconds(first), check_exact=True)


def test_a_study_goes_on_and_grows(study, tmp_path):
    how = {"out": tmp_path, "estimators": FAST, "seed": 4}
    run_study(DESIGNS, reps=1, **how)
    (tmp_path / "replications" / "design-1-replication-0.parquet").unlink()  # as if it had been interrupted before
    grown = run_study(DESIGNS, reps=3, **how)
    pd.testing.assert_frame_equal(without_seconds(grown), without_seconds(study), check_exact=True)
    with pytest.raises(InputError, match="seed 4 there, 5 here"):
        run_study(DESIGNS, reps=1, **{**how, "seed": 5})


def _broken(responses):
    raise ValueError("no luck")


def _half(responses):
    return mtlirt.fit_mtl(responses, 1.0)


def test_own_estimators_and_failures(tmp_path):
    study = run_study(DESIGNS[:1], out=tmp_path, reps=2, estimators={"half": _half, "broken": _broken})
    failed = study[study["estimator"] == "broken"]
    assert len(failed) == 2
    assert (failed["status"] == "ValueError: no luck").all()
    assert failed[["domain", "error"]].isna().all().all()
    table = study_table(study, against="half").set_index(["estimator", "trait"])
    assert table.loc[("broken", "general"), "failed"] == 2
    assert table.loc[("half", "general"), "replications"] == 2


@pytest.fixture
def short_cv(monkeypatch):
    """Cross-validation of three lam in two folds."""
    short = functools.partial(mtlirt.cv_mtl, lams=[3.0], folds=2)
    monkeypatch.setattr("mtlirt.simulation.study.cv_mtl", short)
    return short


def test_adam_is_the_reference_of_rmtl_on_two_replications(tmp_path, short_cv):
    designs = [HeterogeneityDesign(h0=h0, N=40, sizes=(20,), per_size=3) for h0 in (0.3, 0.5)]
    study = run_study(designs, out=tmp_path, reps=3, estimators=["rmtl", "adam"])
    adam, rmtl = (study[study["estimator"] == name] for name in ("adam", "rmtl"))
    assert set(zip(adam["design"], adam["replication"], strict=True)) == {(0, 0), (0, 1)}
    same = rmtl[(rmtl["design"] == 0) & (rmtl["replication"] < 2)]
    assert list(adam["lam"]) == list(same["lam"])  # one cross-validation by two solvers
    # one optimum; Adam ends 1e-6 above it in the objective, that is about 1e-3 away in the traits
    np.testing.assert_allclose(adam["error"], same["error"], rtol=0.02)


def _sorted_by_score(responses):
    """A fit whose models and items come in another order."""
    long = responses.to_long().astype(dict.fromkeys(("model", "domain", "item"), str)).sort_values("score")
    return mtlirt.fit_mtl(mtlirt.Responses.from_long(long), np.inf)


def test_estimates_are_matched_by_name(tmp_path):
    ways = {"plain": lambda r: mtlirt.fit_mtl(r, np.inf), "sorted": _sorted_by_score}
    study = run_study(DESIGNS[:1], out=tmp_path, reps=1, estimators=ways)
    wide = study.pivot_table(index="domain", columns="estimator", values="error")
    np.testing.assert_allclose(wide["sorted"], wide["plain"], rtol=1e-3)  # traits of both right to 1e-4


def test_estimates_of_something_else_are_failed_rows(tmp_path):
    ways = {
        "half": lambda r: mtlirt.fit_mtl(r.subset(models=list(r.models[:30])), np.inf),
        "domain": lambda r: mtlirt.fit_mtl(r.subset(domains=["d01"]), np.inf),
        "nothing": lambda r: None,
    }
    study = run_study(DESIGNS[:1], out=tmp_path, reps=1, estimators=ways)
    assert len(study) == 3
    assert study["domain"].isna().all()
    assert study["status"].str.contains("other models or domains|AttributeError").all()
    with pytest.raises(InputError, match="no estimate to draw"):
        mtlirt.plots.study_general(study)


def test_mean_scores_with_gaps(tmp_path):
    design = HeterogeneityDesign(h0=0.1, N=20, sizes=(5,), per_size=2, missing=0.6)
    study = run_study([design], out=tmp_path, reps=2, estimators=["mean_score"])
    assert study["error"].notna().all()


def test_table(study):
    table = study_table(study, against="pooled")
    assert list(table.columns[:4]) == ["design", "h0", "estimator", "trait"]
    row = table[(table["h0"] == 0.5) & (table["estimator"] == "separate") & (table["trait"] == "domains")].iloc[0]
    part = study[(study["design"] == 1) & (study["domain"] != "general")]
    means = part.pivot_table(index="replication", columns="estimator", values="error")
    assert row["mean"] == pytest.approx(means["separate"].mean())
    assert row["se"] == pytest.approx(means["separate"].std() / np.sqrt(3))
    difference = means["separate"] - means["pooled"]
    assert row["difference"] == pytest.approx(difference.mean())
    # Student's t with 2 degrees of freedom: 4.3027
    assert row["high"] == pytest.approx(difference.mean() + 4.302653 * difference.std() / np.sqrt(3))
    same = table[table["estimator"] == "pooled"]
    assert (same["difference"] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimators": ["magic"]}, "no estimator 'magic'"),
        ({"estimators": []}, "at least one estimator"),
        ({"reps": 0}, "reps must"),
        ({"seed": -1}, "seed must"),
        ({"n_jobs": 0}, "--jobs"),
        ({"scheduler": "nonsense"}, "looks like tcp://host:8786"),
        ({"scheduler": 5}, "looks like tcp://host:8786"),
    ],
)
def test_bad_studies(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        run_study(DESIGNS, out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_cost_of_the_reference(study):
    assert reference_cost(study) is None
    seconds = {"rmtl": [1.0, 2.0, 3.0, 2.0], "adam": [40.0, 60.0]}
    rows = [
        {"design": 0, "replication": r, "estimator": name, "domain": domain, "seconds": s}
        for name, values in seconds.items()
        for r, s in enumerate(values)
        for domain in ("d01", "general")
    ]
    text = reference_cost(pd.DataFrame(rows))
    assert text.startswith("adam: 50.0 s a replication, rmtl 1.50 s (medians of the same 2): 33 times.")
    assert "All 4 replications would take adam 0.1 hours" in text  # 4 x 50 s


def test_items_cross_validation_is_another_choice_of_lam(tmp_path, short_cv):
    design = HeterogeneityDesign(h0=0.4, N=40, sizes=(20,), per_size=3)
    study = run_study([design], out=tmp_path, reps=1, estimators=["rmtl", "rmtl_items"], seed=3)
    data, folds = np.random.SeedSequence(3, spawn_key=(0, 0)).spawn(2)
    responses = simulate(design, np.random.default_rng(data)).responses
    cv = short_cv(responses, scheme="items", seed=int(folds.generate_state(1)[0]))
    assert (study.loc[study["estimator"] == "rmtl_items", "lam"] == cv.lam_min).all()


@pytest.mark.parametrize("designs", [[], ["x"], DESIGNS[0].h0])
def test_bad_designs(tmp_path, designs):
    with pytest.raises(InputError, match="designs must be a list"):
        run_study(designs, out=tmp_path / "out")
    with pytest.raises(InputError):
        HeterogeneityDesign(h0="a")
    with pytest.raises(InputError):
        HeterogeneityDesign(h0=0.1, sizes=(10.5,))
    with pytest.raises(InputError, match="simulate draws from"):
        simulate(3, 1)


def test_bad_tables(study):
    with pytest.raises(InputError, match="level must"):
        study_table(study, against="pooled", level=2)
    with pytest.raises(InputError, match="no measure"):
        study_table(study, measure="beauty")
    with pytest.raises(InputError, match="no estimator 'rmtl'"):
        study_table(study)


def test_command_line(tmp_path):
    command = [sys.executable, "-m", "mtlirt", "simulate", "heterogeneity", "--out", str(tmp_path / "out")]
    command += ["--estimator", "pooled", "--estimator", "mean_score", "--reps", "1", "--h0", ".1", ".5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "table.csv")
    assert list(table["h0"].unique()) == [0.1, 0.5]
    for name in ("general.png", "domains.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_parquet(tmp_path / "out" / "study.parquet")) == 2 * 2 * 19
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (again.returncode, "--resume" in again.stderr) == (2, True)
    more = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=300)
    assert more.returncode == 0, more.stderr
    wrong = subprocess.run([*command[:-2], "2.0", "--resume"], capture_output=True, text=True, timeout=300)
    assert (wrong.returncode, "h0 must" in wrong.stderr) == (2, True)
