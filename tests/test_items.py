"""The item step: bounded logistic regressions with two parameters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from mtlirt.core.grid import Grid
from mtlirt.solvers.items import _box_step, item_step

KINDS = ("ordinary", "all right", "all wrong", "inverted", "separated", "fractional")
# `item_step` stops an item at a promised decrease of about 1e-14 * (weight + right): below 2e-12 here,
# with 10 to 80 answers. The projected gradient is then at most sqrt(2 * 2e-12 * largest eigenvalue), and the
# Hessian's is below weight * (1 + C**2) / 4 = 740 at C = 6.
DECREMENT = 2e-12
GRADIENT = np.sqrt(2 * DECREMENT * 740)


def answers(rng, kind, x):
    return {
        "ordinary": rng.random(len(x)) < expit(1.2 * x + rng.normal()),
        "all right": np.ones(len(x)),
        "all wrong": np.zeros(len(x)),
        "inverted": rng.random(len(x)) < expit(-2.5 * x),
        "separated": x > np.median(x),
        "fractional": rng.integers(0, 5, len(x)) / 4,
    }[kind].astype(float)


def loss(x, w, rx, r, a, d):
    """(J,) losses; w (K, J)."""
    return (w * np.logaddexp(0, np.outer(x, a) + d)).sum(axis=0) - a * rx - d * r


def gradient(x, w, rx, r, a, d):
    p = w * expit(np.outer(x, a) + d)
    return x @ p - rx, p.sum(axis=0) - r


def converge(x, w, rx, r, a, d, C, groups=None):
    """Steps until nothing is promised any more; the last step's decrement is that at its start."""
    for _ in range(40):
        step = item_step(x, w, rx, r, a, d, C, 5, groups)
        assert (step.decrement >= 0).all()
        a, d = step.a, step.d
        if (step.decrement <= DECREMENT).all():
            return step
    raise AssertionError("no convergence in 40 steps of 5 passes")


def reference(x, y, C):
    def f(p):
        z = p[0] * x + p[1]
        rest = expit(z) - y
        return (np.logaddexp(0, z) - y * z).sum(), np.array([rest @ x, rest.sum()])

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    how = {"jac": True, "bounds": [(0, C), (-C, C)], "method": "L-BFGS-B", "options": options}
    fits = [minimize(f, p, **how) for p in ([0.5, 0.0], [C, 0.0])]
    return min(fits, key=lambda fit: fit.fun)


@pytest.mark.parametrize("C", [1.5, 4.0, 6.0])
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_scipy(kind, C):
    rng = np.random.default_rng(KINDS.index(kind))
    for n in (10, 40, 80):
        x = np.clip(rng.standard_normal(n), -C, C)
        y = answers(rng, kind, x)
        w, rx, r = np.ones((n, 1)), np.array([x @ y]), np.array([y.sum()])
        step = converge(x, w, rx, r, np.array([min(1.0, C)]), np.zeros(1), C)
        best = reference(x, y, C)
        got = loss(x, w, rx, r, step.a, step.d)[0]
        assert got <= best.fun + 1e-11  # DECREMENT, and rounding of a loss of up to 500
        assert got >= best.fun - 1e-8  # L-BFGS-B itself stops at gtol 1e-10 or ftol 1e-15 of the loss
        # parameters: the square root of 1e-11 in the loss over the smallest curvature, here above .01
        np.testing.assert_allclose([step.a[0], step.d[0]], best.x, rtol=0, atol=1e-4)
        if kind == "inverted":
            assert step.a[0] == 0.0
        if kind == "separated":
            assert step.a[0] == C
        if kind.startswith("all"):
            assert step.d[0] == (C if kind == "all right" else -C)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from([1.5, 4.0, 6.0]), st.integers(1, 4))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_never_raises_the_loss_and_ends_at_kkt(seed, kind, C, passes):
    rng = np.random.default_rng(seed)
    n, J = int(rng.integers(10, 80)), 5
    x = np.clip(rng.standard_t(3, n), -C, C)
    Y = np.stack([answers(rng, kind, x) for _ in range(J)], axis=1)
    w, rx, r = np.ones((n, J)), x @ Y, Y.sum(axis=0)
    a, d = rng.uniform(0, C, J), rng.uniform(-C, C, J)
    a[0], d[0], a[1], d[1] = 0.0, C, C, -C
    before = loss(x, w, rx, r, a, d)
    for _ in range(4):
        step = item_step(x, w, rx, r, a, d, C, passes)
        assert ((step.a >= 0) & (step.a <= C) & (np.abs(step.d) <= C)).all()
        after = loss(x, w, rx, r, step.a, step.d)
        assert (after <= before + 1e-12 * (1 + np.abs(before))).all()  # rounding of the losses
        a, d, before = step.a, step.d, after
    step = converge(x, w, rx, r, a, d, C)
    ga, gd = gradient(x, w, rx, r, step.a, step.d)
    assert (np.abs(step.a - np.clip(step.a - ga, 0, C)) <= GRADIENT).all()
    assert (np.abs(step.d - np.clip(step.d - gd, -C, C)) <= GRADIENT).all()


def test_one_pass_moves_downhill():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    Y = (rng.random((60, 8)) < expit(np.outer(x, np.linspace(0.3, 2, 8)))).astype(float)
    w, rx, r = np.ones((60, 8)), x @ Y, Y.sum(axis=0)
    a, d = np.full(8, 1.0), np.full(8, 1.5)
    step = item_step(x, w, rx, r, a, d, 4.0, 3)
    fallen = loss(x, w, rx, r, a, d) - loss(x, w, rx, r, step.a, step.d)
    assert (fallen > 0).all()
    assert (step.decrement > 0).all()
    # the quadratic model's promise is right within a factor of 2 at this distance (1 to 2 units)
    assert (np.abs(np.log(fallen / step.decrement)) < np.log(2)).all()


def test_inputs_are_left_alone_and_no_passes_move_nothing():
    x, w = np.linspace(-2, 2, 9), np.ones((9, 2))
    a, d = np.array([1.0, 2.0]), np.array([0.0, -1.0])
    step = item_step(x, w, np.zeros(2), np.array([4.0, 5.0]), a, d, 4.0, 5)
    np.testing.assert_array_equal(a, [1.0, 2.0])
    np.testing.assert_array_equal(d, [0.0, -1.0])
    assert not np.array_equal(step.a, a)
    none = item_step(x, w, np.zeros(2), np.array([4.0, 5.0]), a, d, 4.0, 0)
    np.testing.assert_array_equal(none.a, a)
    np.testing.assert_array_equal(none.d, d)
    np.testing.assert_array_equal(none.decrement, step.decrement)


def test_groups_and_chunks_equal_plain_weights():
    """More than one chunk of 512 items, with rows of weights by group."""
    rng = np.random.default_rng(1)
    grid, J = Grid(4.0), 700
    theta = np.clip(rng.standard_normal((3, 50)), -4, 4)
    rows = grid.collapse(theta)
    groups = np.sort(rng.integers(0, 3, J))
    rx, r = rng.uniform(-10, 20, J), rng.uniform(5, 45, J)
    a, d = rng.uniform(0, 4, J), rng.uniform(-4, 4, J)
    grouped = item_step(grid.nodes, rows, rx, r, a, d, 4.0, 3, groups)
    plain = item_step(grid.nodes, rows[groups].T, rx, r, a, d, 4.0, 3)
    for name in ("a", "d", "decrement"):
        np.testing.assert_array_equal(getattr(grouped, name), getattr(plain, name))  # the same operations
    one = slice(600, 601)
    alone = item_step(grid.nodes, rows[groups[one]].T, rx[one], r[one], a[one], d[one], 4.0, 3)
    np.testing.assert_allclose(alone.a, plain.a[one], rtol=0, atol=1e-9)  # other blocks of the products


def test_nodes_stand_for_models():
    """Items on collapsed node weights end where those on the models themselves do."""
    rng = np.random.default_rng(2)
    theta = np.clip(rng.standard_normal(300), -4, 4)
    Y = (rng.random((300, 6)) < expit(np.outer(theta, np.linspace(0.4, 2.5, 6)) + 0.3)).astype(float)
    rx, r, start = theta @ Y, Y.sum(axis=0), (np.ones(6), np.zeros(6))
    grid = Grid(4.0)
    weights = np.repeat(grid.collapse(theta[None]).T, 6, axis=1)
    nodes = converge(grid.nodes, weights, rx, r, *start, 4.0)
    models = converge(theta, np.ones((300, 6)), rx, r, *start, 4.0)
    # gradient errors of 300 * 6e-6 (test_grid) at worst, over curvatures of about 300 / 10, and a margin
    np.testing.assert_allclose(nodes.a, models.a, rtol=0, atol=1e-4)
    np.testing.assert_allclose(nodes.d, models.d, rtol=0, atol=1e-4)


def test_an_item_with_next_to_no_answers_moves_by_its_own_loss():
    """Weights of 1e-6 give the same path as weights of 1: nothing in the step knows the unit of weight."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(30)
    y = answers(rng, "ordinary", x)
    w, rx, r = np.ones((30, 1)), np.array([x @ y]), np.array([y.sum()])
    start = np.ones(1), np.zeros(1)
    full, light = (
        item_step(x, w, rx, r, *start, 4.0, 3),
        item_step(x, 1e-6 * w, 1e-6 * rx, 1e-6 * r, *start, 4.0, 3),
    )
    np.testing.assert_allclose([light.a[0], light.d[0]], [full.a[0], full.d[0]], rtol=1e-9)  # rounding
    assert light.decrement[0] == pytest.approx(1e-6 * full.decrement[0], rel=1e-9)  # rounding


def test_decrement_is_zero_at_an_interior_optimum():
    """By hand: half right at x = -1 and at x = 1 wants p = 1/2 at both, so a = d = 0."""
    x, w = np.array([-1.0, 1.0]), np.full((2, 1), 10.0)
    step = item_step(x, w, np.zeros(1), np.array([10.0]), np.zeros(1), np.zeros(1), 4.0, 3)
    assert (step.a[0], step.d[0], step.decrement[0]) == (0.0, 0.0, 0.0)


@given(st.integers(0, 10**6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_box_step_is_the_exact_minimum(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((2, 2)) * 10.0 ** rng.uniform(-1.5, 1.5, (2, 1))
    H = root @ root.T
    H += 1e-8 * np.trace(H) * np.eye(2)  # the solver's own ridge
    g = rng.standard_normal(2) * 10.0 ** rng.uniform(-2, 3)
    C = rng.uniform(0.5, 6)
    a, d = rng.choice([0.0, C, rng.uniform(0, C)]), rng.choice([-C, C, rng.uniform(-C, C)])
    low, high = np.array([-a, -C - d]), np.array([C - a, C - d])
    numbers = (g[0], g[1], H[0, 0], H[0, 1], H[1, 1], a, d)
    step = np.concatenate(_box_step(*(np.array([v]) for v in numbers), C))
    assert ((step >= low) & (step <= high)).all()  # exact: both parts end with a clip

    def q(s):
        return g @ s + 0.5 * s @ H @ s

    # all candidates of the box problem: the free minimum, and the minimum on each of the four sides
    candidates = [np.linalg.solve(H, -g)]
    for bound in (low, high):
        other = -(g[::-1] + H[0, 1] * bound) / np.diag(H)[::-1]
        candidates.append(np.array([bound[0], np.clip(other[0], low[1], high[1])]))
        candidates.append(np.array([np.clip(other[1], low[0], high[0]), bound[1]]))
    inside = [s for s in candidates if ((s >= low) & (s <= high)).all()]
    best = min(q(s) for s in inside)
    size = np.abs(g) @ np.abs(step) + np.abs(step) @ np.abs(H) @ np.abs(step)
    assert abs(q(step) - best) <= 1e-11 * size  # rounding; an error of 2e-8 in s enters q squared
    side = np.stack(np.meshgrid(*(np.linspace(low[k], high[k], 25) for k in (0, 1))), axis=-1).reshape(-1, 2)
    grid_values = side @ g + 0.5 * np.einsum("ki,ij,kj->k", side, H, side)
    assert q(step) <= grid_values.min() + 1e-11 * size
