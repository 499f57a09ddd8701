"""Projection onto {mean 0, mean square 1, |value| <= C}."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtlirt.core.projection import _active_set, _bisect, check_box, project, standardise

FEASIBLE = 1e-10  # the docstring's promise for mean and mean square (METHODS 8.1)
IDEMPOTENT = 1e-9  # a second projection re-solves scale and shift from sums that are right to 1e-10


def smallest_box(n):
    return 1.0 if n % 2 == 0 else np.sqrt(n / (n - 1))


def assert_feasible(x, C):
    assert np.isfinite(x).all()
    assert abs(x.mean()) <= FEASIBLE
    assert abs(np.square(x).mean() - 1) <= FEASIBLE
    assert np.abs(x).max() <= C  # exact: the last operation is a clip, or standardising stayed inside


@st.composite
def rows(draw, ties=False):
    """Normal, heavy-tailed (Cauchy) or log-normal rows of 3 to 200 values, ties by rounding to a tenth."""
    n = draw(st.integers(3, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "cauchy", "lognormal"]))
    row = {
        "normal": rng.standard_normal,
        "cauchy": rng.standard_cauchy,
        "lognormal": lambda n: np.exp(2 * rng.standard_normal(n)),
    }[kind](n)
    if ties:
        row = np.round(row, 1)
        row[:3] = [-0.1, 0.0, 0.1]  # at least three different values
    return (row + draw(st.sampled_from([0.0, 3.0]))) * 10.0 ** draw(st.integers(-6, 6))


def box(draw_share, n):
    """From 2 % above the smallest feasible C to 6: at the limit itself no finite scale need exist."""
    low = 1.02 * smallest_box(n)
    return low + draw_share * (6.0 - low)


@given(rows(), st.floats(0, 1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_feasible_order_preserving_and_idempotent(row, share):
    C = box(share, len(row))
    if len(row) == 3:
        C = max(C, 1.42)  # three values always standardise to at most sqrt(2): no tighter box
    x = project(row, C)
    assert_feasible(x, C)
    assert (np.diff(x[np.argsort(row)]) >= -1e-12).all()  # clip and scale are monotone, up to rounding
    np.testing.assert_allclose(project(x, C), x, rtol=0, atol=IDEMPOTENT)


@given(rows(ties=True), st.floats(0, 1))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_ties_stay_feasible(row, share):
    C = 2.0 + 4.0 * share
    assert_feasible(project(row, C), C)


@given(rows(), st.floats(0, 1), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_permutation_equivariance(row, share, seed):
    C = 1.5 + 4.5 * share
    order = np.random.default_rng(seed).permutation(len(row))
    # both are solutions of one equation solved to 1e-10 in mean and norm; only the order of summation differs
    np.testing.assert_allclose(project(row[order], C), project(row, C)[order], rtol=0, atol=1e-8)


@given(rows(), st.floats(0, 1))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_active_set_agrees_with_bisection(row, share):
    C = 1.3 + 4.7 * share
    row = standardise(row[None])[0]
    closed = _active_set(row, C)
    if np.abs(row).max() <= C or closed is None:
        assert_feasible(project(row, C), C)
        return
    nested = _bisect(row, C)
    assert nested is not None
    # both solve for shift and scale with mean and mean square right to 1e-10; heavy tails lose two digits
    np.testing.assert_allclose(closed, nested, rtol=0, atol=1e-8)


def test_active_set_is_the_usual_path():
    """The closed form, not the bisection, solves ordinary clipped rows."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(50):
        row = standardise(rng.standard_t(2, (1, 80)))[0]
        if np.abs(row).max() > 3:
            found += _active_set(row, 3.0) is not None
    assert found >= 20  # most of the 50 rows leave the box; fewer would mean a lost fast path


@given(st.integers(0, 10**6), st.floats(1.5, 6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_present_masks(seed, C):
    rng = np.random.default_rng(seed)
    traits = rng.standard_t(2, (3, 40))
    present = rng.random((3, 40)) < rng.uniform(0.2, 1)
    present[:, :5] = True
    out = project(traits, C, present)
    poisoned = project(np.where(present, traits, 0.5 * traits.max()), C, present)
    for x, kept, row, other in zip(out, present, traits, poisoned, strict=True):
        assert (x[~kept] == 0).all()
        assert_feasible(x[kept], C)
        np.testing.assert_allclose(x[kept], project(row[kept], C), rtol=0, atol=1e-9)  # same rows, other sums
        np.testing.assert_allclose(x, other, rtol=0, atol=1e-9)  # what is absent does not count


def test_slack_box_is_plain_standardisation():
    rng = np.random.default_rng(0)
    row = rng.standard_normal(50)
    plain = (row - row.mean()) / row.std()
    np.testing.assert_allclose(project(row, 4.0), plain, rtol=0, atol=1e-14)  # rounding of two sums of 50
    np.testing.assert_array_equal(project(row, 4.0), project(row, 100.0))


def test_shapes_and_input_untouched():
    traits = np.random.default_rng(1).standard_t(2, (4, 60))
    before = traits.copy()
    out = project(traits, 3.0)
    assert out.shape == (4, 60)
    np.testing.assert_array_equal(traits, before)
    for row, x in zip(traits, out, strict=True):
        # the row alone has the same sums up to their order
        np.testing.assert_allclose(project(row, 3.0), x, rtol=0, atol=1e-12)


def test_clipped_result_is_an_affine_map_inside_the_box():
    row = np.random.default_rng(3).standard_t(1.5, 60)
    x = project(row, 2.0)
    inside = np.abs(x) < 2.0
    assert 0 < (~inside).sum() < 30
    slope, shift = np.polyfit(row[inside], x[inside], 1)
    assert slope > 0
    np.testing.assert_allclose(np.clip(slope * row + shift, -2, 2), x, rtol=0, atol=1e-9)  # polyfit


@pytest.mark.parametrize("C", [2.0, 3.0, 4.0])
@pytest.mark.parametrize("n_tied", [2, 3, 6])
def test_tied_extremes(C, n_tied):
    """Many models at one extreme value stay tied, at C."""
    n = 200
    row = np.random.default_rng(n_tied).standard_normal(n)
    row[:n_tied] = 40.0
    x = project(row, C)
    assert_feasible(x, C)
    assert (x[:n_tied] == C).all()


def test_two_tied_groups_keep_their_standardisation():
    x = project(np.repeat([0.0, 1.0], [15, 5]), 2.0)
    # shares 3/4 and 1/4: values -1/sqrt(3) and sqrt(3), by hand; rounding of 20 terms
    np.testing.assert_allclose(x, np.repeat([-1 / np.sqrt(3), np.sqrt(3)], [15, 5]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [51, 200])
def test_one_model_apart_from_a_tie_is_feasible(n):
    """All but one tied has no solution by shift and scale: the fallback parts the ties."""
    x = project(np.repeat([0.0, 1.0], [n - 1, 1]), 4.0)
    assert_feasible(x, 4.0)
    assert x[-1] == x.max()


@pytest.mark.parametrize(
    ("n", "C"),
    [(10, 0.999), (11, 1.0), (11, 1.048), (3, 1.22), (10, 0.0), (10, -1.0), (10, np.nan), (10, np.inf)],
)
def test_box_too_small(n, C):
    with pytest.raises(ValueError, match="C must be at least"):
        check_box(C, n)


@pytest.mark.parametrize(("n", "C"), [(10, 0.999), (11, 1.048), (3, 1.22), (200, 0.5)])
def test_project_raises_for_an_infeasible_box(n, C):
    with pytest.raises(ValueError, match="C must be at least"):
        project(np.random.default_rng(0).standard_normal(n), C)


@pytest.mark.parametrize(("n", "C"), [(10, 1.0), (11, np.sqrt(1.1)), (3, np.sqrt(1.5)), (200, 4.0)])
def test_smallest_box_passes_the_check(n, C):
    """Even N: half at +1 and half at -1. Odd N: one at 0, so C**2 (N - 1) = N."""
    check_box(C, n)
    x = np.repeat([C, -C], n // 2) if n % 2 == 0 else np.concatenate([np.repeat([C, -C], n // 2), [0.0]])
    if n != 200:
        assert abs(np.square(x).mean() - 1) < 1e-14  # rounding: the tightest vector itself


def test_even_n_smallest_box_splits_at_the_median():
    row = np.random.default_rng(2).standard_normal(10)
    x = project(row, 1.0)
    np.testing.assert_allclose(x, np.where(row > np.median(row), 1.0, -1.0), rtol=0, atol=1e-15)  # one ulp


@pytest.mark.parametrize("value", [0.0, 1.0, -1e8, 0.1])
def test_constant_rows_raise(value):
    with pytest.raises(ValueError, match="all equal"):
        project(np.full(7, value), 4.0)
    with pytest.raises(ValueError, match="all equal"):
        project(np.stack([np.arange(7.0), np.full(7, value)]), 4.0)


def test_constant_where_present_and_not_finite_raise():
    traits = np.array([[1.0, 1.0, 1.0, 5.0]])
    with pytest.raises(ValueError, match="all equal"):
        project(traits, 4.0, np.array([[True, True, True, False]]))
    with pytest.raises(ValueError, match="not finite"):
        project(np.array([1.0, 2.0, np.nan]), 4.0)


def test_small_spread_about_a_large_mean():
    x = project(np.array([2.999999, 3.0, 3.000001, 3.000001]), 2.0)
    assert_feasible(x, 2.0)


def test_odd_n_smallest_box():
    x = project(np.random.default_rng(0).standard_normal(9), np.sqrt(9 / 8))
    assert_feasible(x, np.sqrt(9 / 8))


def test_tied_models_are_parted_where_the_box_leaves_no_other_way():
    """One model apart from 50 ties: at most 16 of the squared norm of 51 fits into it, the ties carry the rest."""
    row = np.repeat([0.0, 1.0], [50, 1])
    assert_feasible(project(row, 4.0), 4.0)
