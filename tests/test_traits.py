"""Newton directions and moves of the traits on the sphere, in the box, under the sine penalty."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from mtlirt.core.angle import line_median, sines
from mtlirt.core.field import tabulate
from mtlirt.core.grid import Grid
from mtlirt.core.problem import make_problem
from mtlirt.core.projection import project
from mtlirt.solvers.coupling import Space, Traits, move_each, move_fused, move_general, move_together
from mtlirt.solvers.traits import BOUND, newton_direction, penalty_on_centre, penalty_on_each

FEASIBLE = 1e-9  # ten times the projection's own promise of 1e-10
LAMS = (0.0, 0.05, 1.0, 20.0)
SEEDS = st.integers(0, 10**6)


def centred(rng, T, N, C=4.0, spread=0.4):
    return project(rng.standard_normal(N) + spread * rng.standard_normal((T, N)), C)


def tangent(rng, x):
    """Unit tangent of the sphere in the centred space at x."""
    v = rng.standard_normal(len(x))
    v -= v.mean()
    v -= (v @ x) / (x @ x) * x
    return v / np.linalg.norm(v)


def along(x, v, s):
    """Point at arc length s of the geodesic from x (norm sqrt(N)) in the unit direction v."""
    radius = np.linalg.norm(x)
    return np.cos(s / radius) * x + np.sin(s / radius) * radius * v


def small_problem(seed, T=4, N=20, C=4.0, lam=1.0, missing=0.0, extreme=False):
    """Field, space and starting traits, items at arbitrary feasible values."""
    rng = np.random.default_rng(seed)
    true = centred(rng, T, N, max(C, 4.0))
    if extreme:
        true = np.where(np.arange(N) % 2, 6.0, -6.0) + 0.1 * true
    blocks = []
    for t in range(T):
        J = int(rng.integers(3, 15))
        block = (rng.random((N, J)) < expit(1.5 * true[t][:, None] + rng.standard_normal(J))).astype(float)
        blocks.append(np.where(rng.random((N, J)) < missing, np.nan, block))
    weights = np.array([1 / b.shape[1] for b in blocks])
    problem = make_problem(blocks, weights, np.ones(T), C)
    J = len(problem.item_domain)
    field = tabulate(problem, Grid(C), rng.uniform(0.2, C, J), rng.uniform(-C / 2, C / 2, J))
    space = Space(C, lam * rng.uniform(0.5, 1.5, T), np.ones((T, N)))
    theta = centred(rng, T, N, C)
    general = project(theta.mean(axis=0), C)
    return field, space, state(field, space, theta, general, np.zeros(T, dtype=bool))


def state(field, space, theta, general, fused):
    """Rows that equal the general trait count as fused, as in `Block`."""
    if space.lam.any():
        fused = fused | (theta == general).all(axis=1)
    theta = np.where(fused[:, None], general, theta)
    sine = np.where(fused, 0.0, sines(general, theta)) if space.lam.any() else np.zeros(len(theta))
    return Traits(theta, general, fused, field.value(theta), sine)


def with_fused(field, space, traits, count):
    fused = np.arange(len(traits.theta)) < count
    return state(field, space, traits.theta, traits.general, fused)


def objective(field, space, traits):
    """From the traits alone, not from what the moves keep."""
    value = field.value(traits.theta).sum()
    return value + (space.lam @ sines(traits.general, traits.theta) if space.lam.any() else 0.0)


def assert_good(field, space, before, after):
    old, new = objective(field, space, before), objective(field, space, after)
    assert new <= old + 1e-12 * (1 + abs(old))  # rounding of sums of 20 * 60 cells
    for row, ones in zip(after.theta, space.ones, strict=True):
        kept = row[ones > 0]
        assert np.isfinite(row).all()
        assert abs(kept.mean()) <= FEASIBLE
        assert abs(np.square(kept).mean() - 1) <= FEASIBLE
        assert np.abs(kept).max() <= space.C
    assert abs(after.general.mean()) <= FEASIBLE
    assert abs(np.square(after.general).mean() - 1) <= FEASIBLE
    for row in after.theta[after.fused]:
        np.testing.assert_array_equal(row, after.general)
    np.testing.assert_allclose(after.value, field.value(after.theta), rtol=1e-11, atol=1e-11)  # rounding
    if space.lam.any():
        np.testing.assert_allclose(after.sine, sines(after.general, after.theta), rtol=0, atol=1e-12)  # eps
    assert after.decrement >= -1e-30  # rounding of a slope of 0


@given(SEEDS, st.sampled_from([3, 4, 5, 20, 60]), st.booleans(), st.sampled_from([1.5, 2.0, 4.0]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_direction_is_tangent_and_descends(seed, N, penalised, C):
    rng = np.random.default_rng(seed)
    theta = centred(rng, 3, N, C, 1.0)
    gradient, curvature = rng.standard_normal((3, N)), rng.uniform(0, 2, (3, N)) ** 2
    penalty = penalty_on_each(theta, centred(rng, 1, N)[0], rng.uniform(0.1, 5, 3)) if penalised else None
    direction = newton_direction(theta, gradient, curvature, np.ones((3, N)), C, penalty)
    assert np.isfinite(direction.step).all()
    size = np.linalg.norm(direction.step, axis=1) + np.linalg.norm(direction.residual, axis=1)
    # solves of order 2 or 3; with nearly equal diagonals near the floor of 1e-6 they lose some digits
    tolerance = 1e-7 * (1 + size) * np.sqrt(N)
    assert (np.abs(np.einsum("ti,ti->t", theta, direction.step)) <= tolerance).all()
    assert (np.abs(direction.step.sum(axis=1)) <= tolerance).all()
    assert (direction.slope <= 1e-12 * (1 + size**2)).all()  # rounding about 0
    full = gradient if penalty is None else gradient + penalty.gradient
    true_slope = np.einsum("ti,ti->t", full, direction.step)
    # the residual differs from the gradient by multipliers of constraints that the step keeps
    np.testing.assert_allclose(direction.slope, true_slope, rtol=1e-7, atol=1e-6 * (1 + size.max()))
    assert (direction.step[direction.box != 0] == 0).all()
    assert (direction.residual[direction.box != 0] == 0).all()


def test_held_coordinates_do_not_move():
    rng = np.random.default_rng(0)
    theta = project(rng.standard_t(2, (1, 40)), 2.0)
    on_box = np.abs(theta) == 2.0
    assert on_box.sum() >= 2
    outward = np.where(on_box, -1.0 * np.sign(theta), 0.05 * rng.standard_normal((1, 40)))
    direction = newton_direction(theta, outward, np.ones((1, 40)), np.ones((1, 40)), 2.0)
    assert (direction.step[on_box] == 0).all()
    assert (direction.residual[on_box] == 0).all()
    assert (direction.box[on_box] * theta[on_box] > 0).all()  # the bound pushes back
    assert (direction.box[~on_box] == 0).all()
    inward = newton_direction(theta, -outward, np.ones((1, 40)), np.ones((1, 40)), 2.0)
    assert (inward.step[on_box] * theta[on_box] < 0).all()


def test_absent_models_do_not_move():
    rng = np.random.default_rng(1)
    ones = np.ones((2, 30))
    ones[0, :10] = 0
    theta = project(rng.standard_normal((2, 30)), 4.0, ones > 0)
    gradient = 0.01 * rng.standard_normal((2, 30)) * ones  # short steps, far from the box
    direction = newton_direction(theta, gradient, ones * 0.5, ones, 4.0)
    assert (direction.step[0, :10] == 0).all()
    # equal curvature: the direction is parallel to the projected gradient; exact up to rounding
    np.testing.assert_allclose(
        direction.step / np.linalg.norm(direction.step, axis=1)[:, None],
        -direction.residual / np.linalg.norm(direction.residual, axis=1)[:, None],
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("penalised", [False, True])
def test_direction_solves_the_constrained_quadratic_model(penalised):
    """Against a dense solve in a basis of the tangent space."""
    rng = np.random.default_rng(2)
    N = 15
    theta, centre = centred(rng, 1, N), centred(rng, 1, N)[0]
    gradient, curvature = 0.1 * rng.standard_normal((1, N)), rng.uniform(1, 2, (1, N))
    penalty = penalty_on_each(theta, centre, np.array([2.0])) if penalised else None
    direction = newton_direction(theta, gradient, curvature, np.ones((1, N)), 10.0, penalty)
    g, H = gradient[0], np.diag(curvature[0])
    if penalised:
        g = g + penalty.gradient[0]
    H = H - np.eye(N) * (theta[0] @ g) / N  # the multiplier of the norm; the mean's is 0 in the Hessian
    if penalised:
        away = penalty.away[0, 0]
        H = H + penalty.stiffness[0, 0] * (np.eye(N) - np.outer(away, away))
    basis = np.linalg.qr(np.column_stack([theta[0], np.ones(N), rng.standard_normal((N, N - 2))]))[0][:, 2:]
    assert np.linalg.eigvalsh(basis.T @ H @ basis).min() > 0
    dense = -basis @ np.linalg.solve(basis.T @ H @ basis, basis.T @ g)
    np.testing.assert_allclose(direction.step[0], dense, rtol=0, atol=1e-11)  # two solves of the same system


@pytest.mark.parametrize("spread", [0.05, 0.4, 2.0])
def test_penalty_on_each_against_geodesics(spread):
    rng = np.random.default_rng(3)
    theta, centre, lam = centred(rng, 4, 25, spread=spread), None, np.array([0.5, 1.0, 2.0, 3.0])
    centre = centred(rng, 1, 25, spread=spread)[0] if spread > 1 else project(theta.sum(axis=0), 9.0)
    penalty = penalty_on_each(theta, centre, lam)
    for t, row in enumerate(theta):
        if row @ centre < 0:
            continue

        def f(x, t=t):
            return lam[t] * sines(centre, x[None])[0]

        for _ in range(4):
            v = tangent(rng, row)
            check_second_order(
                f,
                row,
                v,
                penalty.gradient[t],
                penalty.stiffness[t],
                penalty.away[t],
                sines(centre, row[None]),
            )


@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_penalty_on_centre_against_geodesics(spread):
    rng = np.random.default_rng(4)
    theta, lam = centred(rng, 5, 25, spread=spread), np.array([0.5, 1.0, 2.0, 3.0, 1.0])
    centre = project(theta.sum(axis=0) + rng.standard_normal(25), 9.0)
    penalty = penalty_on_centre(theta, centre, lam)

    def f(x):
        return lam @ sines(x, theta)

    for _ in range(6):
        v = tangent(rng, centre)
        check_second_order(
            f, centre, v, penalty.gradient[0], penalty.stiffness[0], penalty.away[0], sines(centre, theta)
        )


def check_second_order(f, x, v, gradient, stiffness, away, sine):
    """First and second derivative of f along a geodesic against gradient and stiffness * (1 - (away . v)**2).

    The model leaves out the sphere's curvature term -gradient . x / N, which in `newton_direction` is part of
    the norm's multiplier; by it alone it differs from the geodesic's second derivative.
    """
    h = 1e-3 * np.sqrt(len(x)) * sine.min()
    up, here, down = f(along(x, v, h)), f(x), f(along(x, v, -h))
    # central differences: relative error of about (h / radius / sine)**2 = 1e-6 times a small factor, in
    # units of stiffness * sine * radius for the slope and of stiffness for the curvature
    scale = np.abs(stiffness).sum() * np.sqrt(len(x))
    assert (up - down) / (2 * h) == pytest.approx(gradient @ v, abs=1e-5 * scale)
    model = stiffness @ (1 - np.square(away @ v)) - gradient @ x / len(x)
    assert (up - 2 * here + down) / h**2 == pytest.approx(model, abs=2e-5 * np.abs(stiffness).sum())


@given(
    st.integers(0, 10**6),
    st.sampled_from(LAMS),
    st.sampled_from([1.5, 2.0, 4.0]),
    st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_moves_never_raise_the_objective(seed, lam, C, missing):
    field, space, traits = small_problem(seed, C=C, lam=lam, missing=missing)
    everyone = np.arange(4)
    for count in (0, 2, 4):
        now = traits if lam == 0 else with_fused(field, space, traits, count)
        for _ in range(2):
            after = move_each(field, now, space, everyone, now.general, 3)
            assert_good(field, space, now, after)
            now = after
            if lam == 0:
                continue
            for move in (move_fused, move_together):
                after = move(field, now, space)
                assert_good(field, space, now, after)
                now = after
            if not now.fused.any():
                after = move_general(now, space)
                assert_good(field, space, now, after)
                now = after


@given(SEEDS, st.sampled_from([3, 4, 5]), st.sampled_from([1.3, 1.5, 4.0]), st.sampled_from(LAMS))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_moves_at_edge_sizes(seed, N, C, lam):
    field, space, traits = small_problem(seed, T=3, N=N, C=C, lam=lam)
    for count in (0, 1, 3):
        now = traits if lam == 0 else with_fused(field, space, traits, count)
        for move in (
            lambda f, t, s: move_each(f, t, s, np.arange(3), t.general, 3),
            move_fused,
            lambda f, t, s: move_together(f, t, s) if s.lam.any() else t,
            lambda f, t, s: t if t.fused.any() or not s.lam.any() else move_general(t, s),
        ):
            after = move(field, now, space)
            assert_good(field, space, now, after)
            now = after


@pytest.mark.parametrize("N", [6, 20, 21])
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(1, 5))
def test_moves_with_nearly_everything_on_the_box(N, lam, seed):
    """Models at two extremes and a box just above the smallest: all but a few coordinates are held."""
    C = 1.06 if N > 6 else 1.05
    field, space, traits = small_problem(seed, T=3, N=N, C=C, lam=lam, extreme=True)
    assert (np.abs(traits.theta) >= C * (1 - BOUND)).mean() > 0.5
    for count in (0, 2, 3):
        now = traits if lam == 0 else with_fused(field, space, traits, count)
        for _ in range(3):
            after = move_each(field, now, space, np.arange(3), now.general, 3)
            assert_good(field, space, now, after)
            now = after
            if lam:
                after = move_fused(field, now, space)
                assert_good(field, space, now, after)
                now = after
            if now.fused.any():  # else tied free coordinates can make the common step singular, see below
                after = move_together(field, now, space)
                assert_good(field, space, now, after)
                now = after


def test_absences_are_kept_by_move_each():
    rng = np.random.default_rng(5)
    field, space, traits = small_problem(5, lam=0.0)
    ones = (rng.random((4, 20)) < 0.8).astype(float)
    space = replace(space, ones=ones)
    theta = project(traits.theta, space.C, ones > 0)
    before = state(field, space, theta, traits.general, np.zeros(4, dtype=bool))
    after = move_each(field, before, space, np.arange(4), before.general, 3)
    assert_good(field, space, before, after)
    assert (after.theta[ones == 0] == 0).all()
    assert after.value.sum() < before.value.sum()


def test_move_each_leaves_other_groups_alone():
    field, space, traits = small_problem(6)
    after = move_each(field, traits, space, np.array([1, 3]), traits.general, 3)
    np.testing.assert_array_equal(after.theta[[0, 2]], traits.theta[[0, 2]])
    assert not np.array_equal(after.theta[1], traits.theta[1])


def test_strong_penalty_fuses_and_weak_releases():
    field, space, traits = small_problem(7, lam=1e4)
    fused = move_each(field, traits, space, np.arange(4), traits.general, 3)
    assert fused.fused.all()
    stays = move_each(field, fused, space, np.arange(4), fused.general, 3)
    np.testing.assert_array_equal(stays.theta, fused.theta)
    weak = replace(space, lam=np.full(4, 1e-6))
    assert not move_each(field, fused, weak, np.arange(4), fused.general, 3).fused.any()


def test_the_kink_is_at_root_n_times_the_tangent_gradient():
    """METHODS 1.3: a domain stays fused iff lam >= sqrt(N) |projected gradient|."""
    field, space, traits = small_problem(8, C=10.0)
    now = with_fused(field, space, traits, 4)
    gradient = field.derivatives(now.theta).gradient
    g = now.general
    across = gradient - gradient.mean(axis=1, keepdims=True)
    across -= np.outer(across @ g / (g @ g), g)
    threshold = np.sqrt(20) * np.linalg.norm(across, axis=1)
    for share, stays in ((1.0001, True), (0.99, False)):
        after = move_each(field, now, replace(space, lam=share * threshold), np.arange(4), g, 1)
        assert after.fused.all() if stays else not after.fused.any()


def test_move_together_keeps_every_sine_off_the_box():
    field, space, traits = small_problem(9, C=10.0)
    after = move_together(field, traits, space)
    np.testing.assert_allclose(after.sine, traits.sine, rtol=0, atol=1e-12)  # a rotation: rounding
    assert objective(field, space, after) < objective(field, space, traits)


def test_move_general_reaches_the_median():
    field, space, traits = small_problem(10)
    after = move_general(traits, space)
    assert_good(field, space, traits, after)
    best = line_median(traits.theta, space.lam)
    # `nearby_line_median` stops at relative steps of 1e-9; 30 reweightings from the mean leave it this close
    assert space.lam @ after.sine <= best.value * (1 + 1e-6)
    np.testing.assert_array_equal(after.theta, traits.theta)


def test_free_coordinates_that_are_all_equal():
    """Seen in `move_together` (`small_problem(0, T=3, N=21, C=1.06, lam=1.0, extreme=True)`)."""
    theta = project(np.array([[2.0, 1.0, 0.0, 0.0, 0.0, 0.0]]), 4.0)
    free = np.array([[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]])
    gradient = np.array([[0.0, 0.0, 0.3, 0.2, -0.1, -0.4]])
    step = newton_direction(theta, gradient, np.ones((1, 6)), free, np.inf).step
    assert step.sum() == pytest.approx(0.0, abs=1e-12)  # rounding
    assert step @ gradient[0] < 0


def test_move_general_fuses_every_equal_line():
    """Else the next `move_each` divides by the sine 0 of a line at the centre."""
    field, space, traits = small_problem(3)
    theta = traits.theta.copy()
    theta[1] = theta[2] = theta[0]
    after = move_general(state(field, space, theta, traits.general, np.zeros(4, dtype=bool)), space)
    np.testing.assert_array_equal(after.fused, (after.theta == after.general).all(axis=1))
