"""Paths over lam."""

import math

import numpy as np
import pytest

import mtlirt


@pytest.fixture(scope="module")
def path(small):
    return mtlirt.lambda_path(small.responses, n=6)


def test_path_runs_from_infinity_to_zero(path):
    table = path.table
    assert table["lam"].is_monotonic_decreasing
    assert list(table["lam"].iloc[[0, -1]]) == [math.inf, 0.0]
    assert table["lam_ratio"].iloc[1] == pytest.approx(1)
    assert table["lam_ratio"].iloc[-2] == pytest.approx(0.03)
    ratios = table["lam"].iloc[1:-2].to_numpy() / table["lam"].iloc[2:-1].to_numpy()
    np.testing.assert_allclose(ratios, ratios[0])
    assert (table["status"] == "CONVERGED").all()
    assert list(table["n_fused"].iloc[:2]) == [4, 4]  # at lam_max all four are still fused
    assert table["n_fused"].iloc[-1] == 0


def test_path_is_monotone(path):
    """The least objective rises with lam, and its loss too; both up to the solver's tolerance of 1e-10, here 1e-8."""
    table = path.table.iloc[1:]
    assert (table["objective"].diff().dropna() <= 1e-8 * table["objective"].iloc[1:]).all()
    assert (path.table["loss"].diff().dropna() <= 1e-8 * path.table["loss"].iloc[1:]).all()


def test_ends_of_the_path_are_the_single_fits(path, small):
    for lam in (math.inf, path.table["lam"].iloc[3], 0.0):
        single = mtlirt.fit_mtl(small.responses, lam)
        on_path = path.at(lam)
        assert on_path.objective == pytest.approx(single.objective, rel=1e-9)  # ten times the tolerance
        np.testing.assert_allclose(on_path.theta, single.theta, rtol=0, atol=1e-3)  # root of 1e-10 of 100, by curvature


def test_sines_and_leavers(path):
    sines = path.sines
    assert sines.shape == (8, 4)
    assert (sines.iloc[0] == 0).all()
    for fit, row in zip(path.fits, sines.to_numpy(), strict=True):
        assert (row == 0).sum() >= fit.fused.sum()
    for domain, lam in path.leaves.items():
        assert sines.loc[lam, domain] > 0
        assert (sines.loc[sines.index > lam, domain] == 0).all()
    assert path.leaves.is_monotonic_decreasing


def test_paper_scale(path):
    # 40 models, smallest domain 30 items
    np.testing.assert_allclose(path.table["C_lambda"], path.table["lam"] / (40 / math.sqrt(30)))


def test_both_directions_keep_the_lower_objective(demo, path):
    down, both = mtlirt.lambda_path(demo, n=4), mtlirt.lambda_path(demo, n=4, start="both")
    assert (both.table["objective"] <= down.table["objective"] * (1 + 1e-9)).all()
    assert set(both.table["start"]) <= {"pooled", "separate"}
    assert set(down.table["start"]) == {"pooled"}


def test_lams_of_your_own(small):
    path = mtlirt.lambda_path(small.responses, lams=[1.0, 5.0, 1.0])
    assert list(path.table["lam"]) == [math.inf, 5.0, 1.0, 0.0]
    with pytest.raises(mtlirt.InputError, match=r"nearest is 5\.0"):
        path.at(4.5)
    assert "C_lambda" in repr(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be"),
        ({"ratio": 1.0}, "ratio must"),
        ({"lams": [-1.0]}, "lam must be"),
        ({"start": "middle"}, "start must be one of"),
        ({"C": 0.5}, "C"),
    ],
)
def test_bad_arguments_of_a_path(small, arguments, message):
    with pytest.raises(mtlirt.InputError, match=message):
        mtlirt.lambda_path(small.responses, **arguments)


def test_one_domain_has_no_path(small):
    one = small.responses.subset(domains=["d01"])
    for verb in (mtlirt.lambda_path, mtlirt.cv_mtl, mtlirt.compare_pooling):
        with pytest.raises(mtlirt.InputError, match="one domain"):
            verb(one)
    assert mtlirt.fit_mtl(one).objective == mtlirt.fit_mtl(one, 0).objective


def test_path_with_a_model_that_skipped_a_domain(demo):
    path = mtlirt.lambda_path(demo, lams=[1.0], start="both")
    assert path.at(0).theta.isna().sum().sum() == 1
    assert path.at(1.0).theta.notna().all().all()
    assert (path.table["status"] == "CONVERGED").all()
