"""Interpolation on nodes: `Grid` and `Field` against exact sums."""

import numpy as np
import pytest
from scipy.special import expit

from mtlirt.core.field import tabulate
from mtlirt.core.grid import MONOMIALS, ORDER, Grid, horner, horner_value
from mtlirt.core.links import softplus
from mtlirt.core.masked import item_weights, span_of
from mtlirt.core.problem import make_problem

# Largest errors of one item, measured over 25 slopes in [0, C], 41 intercepts in [-C, C] and 20,001 traits
# (value, gradient, curvature):
#   C = 1.5: 1.7e-10, 6.0e-9, 1.8e-7    C = 2: 1.6e-8, 4.2e-7, 9.4e-6
#   C = 4:   1.4e-7, 5.8e-6, 1.9e-4     C = 6: 1.4e-7, 8.7e-6, 4.4e-4
# The bounds are these, rounded up by at most a factor of 1.5.
ERRORS = {1.5: (2.5e-10, 9e-9, 2.7e-7), 4.0: (2e-7, 8e-6, 2.8e-4), 6.0: (2e-7, 1.3e-5, 6e-4)}


def read(grid, values, theta):
    """Value, gradient and curvature of node values (K,) at theta (N,)."""
    where = grid.locate(theta)
    local = values[where.cell + np.arange(ORDER)[:, None]]
    value, first, second = horner(MONOMIALS @ local, where.u)
    return value, first / grid.spacing, second / grid.spacing**2


def problem_with(rng, sizes, n, missing, C):
    blocks = [rng.integers(0, 2, (n, J)).astype(float) for J in sizes]
    for block, share in zip(blocks, missing, strict=True):
        block[rng.random(block.shape) < share] = np.nan
    return make_problem(blocks, rng.uniform(0.01, 0.3, len(sizes)), np.ones(len(sizes)), C)


def exact(problem, theta, a, d):
    """Weighted loss (T,), gradient and curvature (T, N) by loops over domains, cell by cell."""
    value, gradient, curvature = [], [], []
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        seen = np.ones_like(answers.right) if answers.observed is None else answers.observed
        z = np.outer(theta[t], a[items]) + d[items]
        p, w = expit(z), problem.weights[t]
        value.append(w * (seen * (np.logaddexp(0, z) - answers.right * z)).sum())
        gradient.append(w * (seen * (p - answers.right) * a[items]).sum(axis=1))
        curvature.append(w * (seen * p * (1 - p) * a[items] ** 2).sum(axis=1))
    return np.array(value), np.array(gradient), np.array(curvature)


@pytest.mark.parametrize("C", ERRORS)
def test_interpolation_error_of_one_item(C):
    grid = Grid(C)
    theta = np.linspace(-C, C, 4001)
    worst = np.zeros(3)
    for slope in np.linspace(0, C, 9):
        for intercept in np.linspace(-C, C, 21):
            z = slope * theta + intercept
            p = expit(z)
            got = read(grid, softplus(slope * grid.nodes + intercept), theta)
            true = np.logaddexp(0, z), slope * p, slope**2 * p * (1 - p)
            worst = np.maximum(worst, [np.abs(g - x).max() for g, x in zip(got, true, strict=True)])
    assert (worst <= ERRORS[C]).all()
    assert (worst >= np.array(ERRORS[C]) / 10).all()  # the measured bounds above are not stale


@pytest.mark.parametrize("C", [1.5, 4.0, 6.0])
def test_nodes_cover_the_box_with_a_margin(C):
    grid = Grid(C)
    np.testing.assert_allclose(np.diff(grid.nodes), grid.spacing, rtol=1e-12)  # rounding
    margin = ORDER // 2 - 1
    assert len(grid.nodes) == grid.n_intervals + 1 + 2 * margin
    np.testing.assert_allclose(grid.nodes[[margin, -1 - margin]], [-C, C], rtol=1e-14)  # rounding


@pytest.mark.parametrize("C", [1.5, 4.0, 6.0])
def test_polynomials_to_degree_7_are_reproduced(C):
    grid = Grid(C)
    theta = np.concatenate([[-C, C, 0.0], np.random.default_rng(0).uniform(-C, C, 200), grid.nodes[3:-3]])
    matrix = item_weights(grid, np.eye(len(theta)), grid.locate(theta))
    nodes, x = grid.nodes / C, theta / C  # powers of the scaled variable stay of order 1
    for degree in range(ORDER):
        # weights sum to at most 1.5 in absolute value, and u is off by eps * K: rounding of 1e-12 is ample
        np.testing.assert_allclose(nodes**degree @ matrix, x**degree, rtol=0, atol=1e-12)
    assert np.abs(nodes**8 @ matrix - x**8).max() > 1e-15  # degree 8 is not: the order is 8 nodes, not 9


def test_item_weights_of_single_models_and_collapse():
    grid = Grid(4.0)
    theta = np.random.default_rng(1).uniform(-4, 4, 300)
    matrix = item_weights(grid, np.eye(len(theta)), grid.locate(theta))
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0, rtol=0, atol=1e-13)  # rounding
    assert ((matrix != 0).sum(axis=0) <= ORDER).all()
    np.testing.assert_allclose(matrix.sum(axis=1), grid.collapse(theta[None])[0], rtol=0, atol=1e-12)  # sums
    for column, trait in zip(matrix.T[:20], theta, strict=False):
        where = np.flatnonzero(column)
        # the trait lies in the middle one of the seven intervals of its eight nodes
        assert grid.nodes[where[0]] + 3 * grid.spacing <= trait + 1e-12
        assert trait <= grid.nodes[where[-1]] - 3 * grid.spacing + 1e-12


@pytest.mark.parametrize("C", [1.5, 4.0, 6.0])
def test_collapse_is_the_transpose_of_reading(C):
    grid = Grid(C)
    rng = np.random.default_rng(2)
    theta = rng.uniform(-C, C, (3, 500))
    theta[0, :3] = [-C, C, grid.nodes[10]]
    theta[1] = np.round(theta[1], 1)  # many traits in one place
    weights = grid.collapse(theta)
    assert weights.shape == (3, len(grid.nodes))
    np.testing.assert_allclose(weights.sum(axis=1), 500, rtol=1e-12)  # rounding
    for _ in range(5):
        f = rng.standard_normal(len(grid.nodes))
        for row, trait in zip(weights, theta, strict=True):
            value = read(grid, f, trait)[0]
            # 500 numbers of order 1, each right to a few eps times the absolute weights of at most 1.5
            assert row @ f == pytest.approx(value.sum(), abs=1e-11)


@pytest.mark.parametrize("C", [1.5, 4.0])
def test_traits_at_the_ends_and_at_nodes(C):
    grid = Grid(C)
    theta = grid.nodes[3:-3].copy()
    theta[[0, -1]] = -C, C
    where = grid.locate(theta)
    assert where.cell.min() == 0
    assert where.cell.max() == grid.n_intervals - 1
    assert (np.abs(where.u) <= 0.5 + 1e-12).all()  # rounding of theta / spacing
    f = np.random.default_rng(3).standard_normal(len(grid.nodes))
    np.testing.assert_allclose(read(grid, f, theta)[0], f[3:-3], rtol=0, atol=1e-11)  # u is off by eps * K


def test_derivatives_are_continuous_across_nodes():
    """Two local polynomials meet at a node with the interpolation error of the derivatives, not more."""
    grid = Grid(4.0)
    inner = grid.nodes[4:-4]
    f = softplus(3.0 * grid.nodes - 1.0)
    left, right = read(grid, f, inner - 1e-12), read(grid, f, inner + 1e-12)
    for x, y, bound in zip(left, right, ERRORS[4.0], strict=True):
        assert np.abs(x - y).max() <= 2 * bound + 1e-10  # once from either side, and the step of 2e-12


def test_horner_matches_polyval():
    rng = np.random.default_rng(4)
    c, u = rng.standard_normal((ORDER, 50)), rng.uniform(-0.5, 0.5, 50)
    value, first, second = horner(c, u)
    for i in range(50):
        p = np.polynomial.Polynomial(c[:, i])
        want = [p(u[i]), p.deriv()(u[i]), p.deriv(2)(u[i])]
        np.testing.assert_allclose([value[i], first[i], second[i]], want, rtol=1e-12, atol=1e-13)  # rounding
    np.testing.assert_array_equal(horner_value(c, u), value)
    np.testing.assert_allclose(MONOMIALS @ np.ones(ORDER), np.eye(ORDER)[0], rtol=0, atol=1e-13)  # constants


@pytest.mark.parametrize("missing", [(0.0, 0.0, 0.0), (0.3, 0.0, 0.5), (0.2, 0.4, 0.6)])
@pytest.mark.parametrize("C", [1.5, 4.0, 6.0])
def test_field_equals_direct_sums(C, missing):
    rng = np.random.default_rng(5)
    problem = problem_with(rng, (4, 7, 12), 30, missing, C)
    a, d = rng.uniform(0, C, 23), rng.uniform(-C, C, 23)
    a[:3] = C
    theta = rng.uniform(-C, C, (3, 30))
    theta[:, 0], theta[:, 1] = -C, C
    field = tabulate(problem, Grid(C), a, d)
    der = field.derivatives(theta)
    value, gradient, curvature = exact(problem, theta, a, d)
    most = (problem.weights * problem.sizes)[:, None]  # errors of single items add at worst
    e0, e1, e2 = ERRORS[C]
    assert (np.abs(der.value - value) <= 30 * most[:, 0] * e0 + 1e-11).all()  # 1e-11: rounding of 360 cells
    assert (np.abs(der.gradient - gradient) <= most * e1 + 1e-11).all()
    assert (np.abs(der.curvature - curvature) <= most * e2 + 1e-11).all()
    assert (der.curvature >= 0).all()


@pytest.mark.parametrize("missing", [(0.0, 0.0), (0.4, 0.0)])
def test_value_and_derivatives_agree_with_and_without_groups(missing):
    rng = np.random.default_rng(6)
    problem = problem_with(rng, (5, 9), 20, missing, 4.0)
    field = tabulate(problem, Grid(4.0), rng.uniform(0, 4, 14), rng.uniform(-4, 4, 14))
    theta = rng.uniform(-4, 4, (2, 20))
    der = field.derivatives(theta)
    # one polynomial evaluated by the same operations, so the same bits
    np.testing.assert_array_equal(field.value(theta), der.value)
    for groups in ([0], [1], [1, 0], [1, 1]):
        part = field.derivatives(theta[groups], np.array(groups))
        np.testing.assert_array_equal(field.value(theta[groups], np.array(groups)), part.value)
        np.testing.assert_allclose(part.value, der.value[groups], rtol=1e-13)  # blocked product: rounding
        np.testing.assert_allclose(part.gradient, der.gradient[groups], rtol=0, atol=1e-12)  # rounding
        np.testing.assert_allclose(part.curvature, der.curvature[groups], rtol=0, atol=1e-10)  # / spacing**2


@pytest.mark.parametrize("missing", [(0.0, 0.0, 0.0), (0.3, 0.0, 0.5)])
def test_pooled_is_the_sum(missing):
    rng = np.random.default_rng(7)
    problem = problem_with(rng, (3, 6, 8), 25, missing, 4.0)
    field = tabulate(problem, Grid(4.0), rng.uniform(0, 4, 17), rng.uniform(-4, 4, 17))
    theta = rng.uniform(-4, 4, 25)
    every = field.derivatives(np.tile(theta, (3, 1)))
    pooled = field.pooled().derivatives(theta[None])
    np.testing.assert_allclose(pooled.value, every.value.sum(keepdims=True), rtol=1e-12)  # rounding
    np.testing.assert_allclose(pooled.gradient[0], every.gradient.sum(axis=0), rtol=0, atol=1e-11)  # rounding
    # each curvature is cut off at 0 by itself, which moves it by at most its interpolation error (17 items)
    np.testing.assert_allclose(pooled.curvature[0], every.curvature.sum(axis=0), rtol=0, atol=17 * 2.8e-4)


@pytest.mark.parametrize("missing", [(0.0, 0.0), (0.3, 0.1)])
def test_gradient_against_finite_differences(missing):
    rng = np.random.default_rng(8)
    problem = problem_with(rng, (6, 10), 12, missing, 4.0)
    field = tabulate(problem, Grid(4.0), rng.uniform(0, 2, 16), rng.uniform(-2, 2, 16))
    theta = rng.uniform(-3.5, 3.5, (2, 12))
    der = field.derivatives(theta)
    h = 1e-5
    for t in range(2):
        for i in range(12):
            up, down = theta.copy(), theta.copy()
            up[t, i] += h
            down[t, i] -= h
            slope = (field.value(up)[t] - field.value(down)[t]) / (2 * h)
            turn = (field.derivatives(up).gradient[t, i] - field.derivatives(down).gradient[t, i]) / (2 * h)
            # central differences: h**2 = 1e-10 times the third derivative, and rounding 1e-14 / h = 1e-9;
            # over a node the polynomial changes by its measured error, at slopes of 2 far below 1e-8
            assert slope == pytest.approx(der.gradient[t, i], abs=2e-8)
            assert turn == pytest.approx(der.curvature[t, i], abs=2e-6)  # the same, one order less smooth


def test_empty_rows_of_a_masked_table_are_zero():
    block = np.array([[1.0, 0.0], [np.nan, np.nan], [0.0, 1.0]])
    problem = make_problem([block], np.ones(1), np.ones(1), 4.0)
    field = tabulate(problem, Grid(4.0), np.ones(2), np.zeros(2))
    der = field.derivatives(np.array([[0.5, 3.0, -1.0]]))
    assert der.gradient[0, 1] == 0
    assert der.curvature[0, 1] == 0


@pytest.mark.parametrize("kind", [np.float64, np.uint8])
def test_item_weights_equal_a_sum_over_cells(kind):
    grid, rng = Grid(4.0), np.random.default_rng(9)
    theta = np.concatenate([[-4.0, 4.0], rng.normal(size=398).clip(-4, 4)])
    observed = (rng.random((400, 7)) < 0.6).astype(kind)
    weights = item_weights(grid, observed, grid.locate(theta))
    for _ in range(3):
        f = rng.standard_normal(len(grid.nodes))
        want = observed.T.astype(float) @ read(grid, f, theta)[0]
        np.testing.assert_allclose(f @ weights, want, rtol=0, atol=1e-11)  # sums of 400 numbers of order 1


@pytest.mark.parametrize("missing", [(0.3, 0.5), (0.0, 0.4)])
def test_curves_around_traits_equal_curves_everywhere(missing):
    """Near the traits they are read off, far away they are summed anew; both are the same numbers."""
    grid, rng = Grid(4.0), np.random.default_rng(10)
    n = 300
    assert span_of(grid, n) < grid.n_intervals  # so many models are grouped
    problem = problem_with(rng, (5, 9), n, missing, 4.0)
    a, d = rng.uniform(0, 4, 14), rng.uniform(-4, 4, 14)
    around = rng.normal(size=(2, n)).clip(-4, 4)
    everywhere, near = tabulate(problem, grid, a, d), tabulate(problem, grid, a, d, around)
    assert near.curves.table.shape[2] < everywhere.curves.table.shape[2]
    for theta in (around, (around + 0.3).clip(-4, 4), rng.uniform(-4, 4, (2, n))):
        want, got = everywhere.derivatives(theta), near.derivatives(theta)
        for x, y in zip(vars(want).values(), vars(got).values(), strict=True):
            np.testing.assert_allclose(y, x, rtol=0, atol=1e-9)  # rounding / spacing**2
        part = near.derivatives(theta[[1]], np.array([1]))
        np.testing.assert_allclose(part.gradient[0], want.gradient[1], rtol=0, atol=1e-11)
    shared = np.tile(around[0], (2, 1))
    pooled = tabulate(problem, grid, a, d, shared).pooled()
    for theta in (around[:1], rng.uniform(-4, 4, (1, n))):
        want = everywhere.pooled().derivatives(theta)
        np.testing.assert_allclose(pooled.derivatives(theta).gradient, want.gradient, rtol=0, atol=1e-11)
