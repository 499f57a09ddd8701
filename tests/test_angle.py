"""Sines and the median of lines (METHODS 1.8, 8.6, 8.7)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mtlirt.core.angle import line_median, line_median_with_gaps, nearby_line_median, sines

ROUNDING = 1e-12  # sums of at most 20 sines of order 1 from products of length 60


def lines_near(rng, T, N, spread, df=None):
    """T centred rows about one centre; heavy-tailed deviations with `df`."""
    noise = rng.standard_normal((T, N)) if df is None else rng.standard_t(df, (T, N))
    theta = rng.standard_normal(N) + spread * noise
    return theta - theta.mean(axis=1, keepdims=True)


def value_at(line, thetas, weights):
    return float(weights @ sines(line, thetas))


def same_line(x, y):
    return sines(x, y[None])[0]


def brute_force(thetas, weights, rng, starts):
    """Smallest local minimum of BFGS over coefficients in an orthonormal basis of the span."""
    units = thetas / np.linalg.norm(thetas, axis=1)[:, None]
    points = units @ np.linalg.qr(units.T)[0]

    def f(c):
        length = np.linalg.norm(c)
        e = c / length
        along = points @ e
        sine = np.linalg.norm(points - along[:, None] * e, axis=1) + 1e-300
        gradient = -(weights * along / sine) @ points
        return weights @ sine, (gradient - (gradient @ e) * e) / length

    centre = points.sum(axis=0)
    best = np.inf
    for k in range(starts):
        jitter = rng.standard_normal(len(centre)) * np.linalg.norm(centre)
        best = min(best, minimize(f, centre + (0.05, 0.3, 2.0)[k % 3] * jitter, jac=True, method="BFGS").fun)
    return best


@pytest.mark.parametrize("angle", [1e-1, 1e-4, 1e-9])
def test_sines_of_small_angles(angle):
    rng = np.random.default_rng(0)
    x, y = lines_near(rng, 2, 60, 1.0)
    y -= (y @ x) / (x @ x) * x
    y *= np.linalg.norm(x) / np.linalg.norm(y)
    turned = np.cos(angle) * x + np.sin(angle) * y
    got = sines(x, np.stack([turned, -3.0 * turned, y]))
    # absolute error a few eps: relative error 1e-15 / angle; 1e-7 leaves a factor of 10 at 1e-9
    np.testing.assert_allclose(got[:2], np.sin(angle), rtol=max(1e-16 / angle, 1e-14), atol=3e-16)
    assert got[2] == pytest.approx(1.0, abs=1e-14)  # rounding


def test_sines_never_exceed_one_and_ignore_scale():
    rng = np.random.default_rng(1)
    general, theta = rng.standard_normal(8), rng.standard_normal((500, 8))
    got = sines(general, theta)
    assert got.max() <= 1.0
    cosine = theta @ general / np.linalg.norm(general) / np.linalg.norm(theta, axis=1)
    np.testing.assert_allclose(got**2 + cosine**2, 1.0, rtol=0, atol=1e-14)  # Pythagoras, rounding
    np.testing.assert_allclose(sines(-7 * general, 1e5 * theta), got, rtol=0, atol=1e-14)  # rounding


def test_majority_cluster_wins():
    rng = np.random.default_rng(2)
    x, y = lines_near(rng, 2, 30, 0.5)
    median = line_median(np.stack([x, y, x, y, x]))
    assert median.vertex in (0, 2, 4)
    assert median.unique
    assert same_line(median.line, x) < 1e-14  # the line itself, rounding
    assert median.value == pytest.approx(2 * same_line(x, y), rel=1e-12)  # rounding


@pytest.mark.parametrize("T", [3, 4, 7])
def test_circle_gives_a_data_line(T):
    """In a two-dimensional span the sum of sines is concave between data lines."""
    rng = np.random.default_rng(T)
    basis = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    for _ in range(10):
        angles = rng.uniform(0, np.pi, T)
        thetas = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ basis
        median = line_median(thetas)
        assert median.vertex is not None
        assert same_line(median.line, thetas[median.vertex]) < 1e-14  # rounding
        fine = np.linspace(0, np.pi, 2000)
        on_circle = np.stack([np.cos(fine), np.sin(fine)], axis=1) @ basis
        assert median.value <= min(value_at(u, thetas, np.ones(T)) for u in on_circle) + ROUNDING


def test_one_line():
    theta = lines_near(np.random.default_rng(3), 1, 20, 1.0)
    median = line_median(5 * theta)
    assert (median.vertex, median.unique) == (0, True)
    assert median.value == pytest.approx(0.0, abs=1e-14)  # rounding
    np.testing.assert_allclose(median.line, theta[0] / theta[0].std(), rtol=0, atol=1e-13)  # rounding


def test_two_lines_of_equal_weight():
    x, y = thetas = lines_near(np.random.default_rng(4), 2, 20, 0.4)
    median = line_median(thetas, np.array([2.0, 2.0]))
    assert not median.unique
    assert median.vertex is None
    assert median.value == pytest.approx(2 * same_line(x, y), rel=1e-13)  # rounding
    middle = x / np.linalg.norm(x) + y / np.linalg.norm(y)
    np.testing.assert_allclose(median.line, middle / middle.std(), rtol=0, atol=1e-13)  # rounding
    opposed = line_median(np.stack([x, -y]))
    assert same_line(opposed.line, middle) < 1e-14  # the sign of a row is no part of its line; rounding


@pytest.mark.parametrize("heavier", [0, 1])
def test_two_lines_of_unequal_weight(heavier):
    thetas = lines_near(np.random.default_rng(5), 2, 20, 0.4)
    weights = np.array([1.0, 1.0])
    weights[heavier] = 1.01
    median = line_median(thetas, weights)
    assert median.vertex == heavier
    assert median.unique
    assert same_line(median.line, thetas[heavier]) < 1e-14  # rounding
    assert median.value == pytest.approx(same_line(*thetas), rel=1e-12)  # weight 1 on the lighter; rounding


@pytest.mark.parametrize("seed", range(12))
def test_never_above_vertices_or_brute_force(seed):
    rng = np.random.default_rng(seed)
    T, N = int(rng.integers(3, 9)), int(rng.integers(8, 40))
    thetas = lines_near(rng, T, N, (0.02, 0.1, 0.3, 0.6)[seed % 4], df=3)
    weights = np.ones(T) if seed % 2 else rng.uniform(0.3, 3, T)
    median = line_median(thetas, weights)
    assert median.value == pytest.approx(value_at(median.line, thetas, weights), abs=ROUNDING)
    assert median.value <= min(value_at(u, thetas, weights) for u in thetas) + ROUNDING
    assert median.value <= brute_force(thetas, weights, rng, 9) + 1e-8  # METHODS 8.6


@given(st.integers(0, 10**6), st.integers(3, 8))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_signs_scales_and_order_do_not_matter(seed, T):
    rng = np.random.default_rng(seed)
    thetas = lines_near(rng, T, 15, 0.3)
    median = line_median(thetas)
    flipped = thetas * rng.uniform(0.1, 10, (T, 1))
    flipped[rng.integers(T)] *= -1
    other = line_median(flipped)
    order = rng.permutation(T)
    shuffled = line_median(thetas[order])
    for twin in (other, shuffled):
        assert twin.value == pytest.approx(median.value, abs=1e-10)  # inner iteration stops at steps of 1e-11
        # a flat valley of the objective turns an error of 1e-14 in the value into 1e-7 in the line
        assert same_line(twin.line, median.line) < 1e-6
    assert median.line @ thetas.sum(axis=0) >= 0
    assert other.line @ (flipped / np.linalg.norm(flipped, axis=1)[:, None]).sum(axis=0) >= 0


def test_line_is_standardised_and_centred():
    thetas = lines_near(np.random.default_rng(6), 6, 25, 0.3)
    for median in (line_median(thetas), line_median(-thetas)):
        assert np.square(median.line).mean() == pytest.approx(1.0, abs=1e-13)  # rounding
        assert median.line.mean() == pytest.approx(0.0, abs=1e-13)  # rounding
    assert line_median(-thetas).line @ thetas.sum(axis=0) < 0


@pytest.mark.parametrize("seed", range(6))
def test_weight_two_is_the_line_twice(seed):
    rng = np.random.default_rng(seed)
    thetas = lines_near(rng, 5, 20, 0.3)
    weighted = line_median(thetas, np.array([1.0, 2.0, 1.0, 1.0, 1.0]))
    doubled = line_median(np.concatenate([thetas, thetas[1:2]]))
    assert weighted.value == pytest.approx(doubled.value, abs=1e-10)  # iteration stops at 1e-11
    assert same_line(weighted.line, doubled.line) < 1e-6  # square root of the values' rounding


@pytest.mark.parametrize(
    ("thetas", "message"),
    [
        (np.zeros((0, 3)), "T >= 1"),
        (np.arange(3.0), "T, N"),
        (np.array([[1.0, -1.0], [0.0, 0.0]]), "zeros"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "finite"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), "finite"),
    ],
)
def test_errors(thetas, message):
    with pytest.raises(ValueError, match=message):
        line_median(thetas)


def test_nearby_median_finds_the_median_from_close_by():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        thetas = lines_near(rng, 7, 30, 0.3)
        weights = rng.uniform(0.5, 2, 7)
        median = line_median(thetas, weights)
        assert median.vertex is None
        start = median.line + 0.02 * rng.standard_normal(30)
        start -= start.mean()
        near = nearby_line_median(thetas, weights, start)
        assert value_at(near, thetas, weights) <= median.value + 1e-9  # stops at relative steps of 1e-9
        assert np.square(near).mean() == pytest.approx(1.0, abs=1e-13)  # rounding


def test_gaps_add_no_angle():
    """Lines that agree where both are known have a common line, whatever is unknown."""
    rng = np.random.default_rng(7)
    thetas = lines_near(rng, 4, 40, 0.2)
    complete = line_median_with_gaps(thetas, np.ones((4, 40), dtype=bool), np.ones(4))
    np.testing.assert_array_equal(complete.line, line_median(thetas).line)
    present = rng.random((4, 40)) < 0.9
    poisoned = np.where(present, thetas, 1e3)
    gaps = line_median_with_gaps(poisoned, present, np.ones(4))
    zeros = line_median(np.where(present, thetas, 0.0))
    # filling with the median's own coordinates leaves it nearer to the complete median than filling with 0
    assert same_line(gaps.line, complete.line) < same_line(zeros.line, complete.line)


def test_two_equal_lines_are_unique():
    x = np.array([1.0, -1.0, 0.0])
    assert line_median(np.stack([x, x])).unique


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0]])
def test_weights_must_be_positive(weights):
    thetas = lines_near(np.random.default_rng(8), 3, 10, 0.3)
    with pytest.raises(ValueError, match="weights"):
        line_median(thetas, np.array(weights))
