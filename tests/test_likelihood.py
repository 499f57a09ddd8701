"""The exact likelihood and the sums of a Problem."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

from mtlirt.core import problem as problem_module
from mtlirt.core.field import tabulate
from mtlirt.core.grid import Grid
from mtlirt.core.likelihood import cell_sums
from mtlirt.core.links import softplus
from mtlirt.core.problem import DomainAnswers, Problem, make_problem

SIZES = (1, 4, 9)


def random_blocks(rng, n, missing=0.0, fractional=False):
    blocks = []
    for J in SIZES:
        block = rng.integers(0, 5, (n, J)) / 4 if fractional else rng.integers(0, 2, (n, J)).astype(float)
        blocks.append(np.where(rng.random((n, J)) < missing, np.nan, block))
    return blocks


def problem_of(blocks, C=4.0):
    weights = np.linspace(0.1, 0.3, len(blocks))
    return make_problem(blocks, weights, np.ones(len(blocks)), C)


def parameters(rng, n, C=4.0):
    J = sum(SIZES)
    return rng.uniform(-C, C, (len(SIZES), n)), rng.uniform(0, C, J), rng.uniform(-C, C, J)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_cell_sums_against_scipy(missing, fractional):
    rng = np.random.default_rng(0)
    blocks = random_blocks(rng, 40, missing, fractional)
    problem = problem_of(blocks)
    theta, a, d = parameters(rng, 40)
    sums = cell_sums(problem, theta, a, d)
    for t, (block, items) in enumerate(zip(blocks, problem.item_slices, strict=True)):
        z = np.outer(theta[t], a[items]) + d[items]
        p = expit(z)
        nll = -np.nansum(block * log_expit(z) + (1 - block) * log_expit(-z))
        # sums of at most 360 cells, each right to a few eps of |z| <= 20
        assert sums.nll[t] == pytest.approx(nll, rel=1e-12, abs=1e-12)
        gradient = np.nansum((p - block) * a[items], axis=1)
        np.testing.assert_allclose(sums.gradient[t], gradient, rtol=0, atol=1e-12)
        information = np.where(np.isnan(block), 0, p * (1 - p) * a[items] ** 2).sum(axis=1)
        np.testing.assert_allclose(sums.information[t], information, rtol=1e-11, atol=1e-14)  # p - p**2


def test_gradient_is_the_derivative_of_the_loss():
    rng = np.random.default_rng(1)
    problem = problem_of(random_blocks(rng, 6, 0.2))
    theta, a, d = parameters(rng, 6)
    sums, h = cell_sums(problem, theta, a, d), 1e-5
    for t in range(3):
        for i in range(6):
            moved = [theta.copy(), theta.copy()]
            moved[0][t, i] += h
            moved[1][t, i] -= h
            up, down = (cell_sums(problem, x, a, d) for x in moved)
            # central differences: h**2 = 1e-10 times a third derivative of at most 9 * 4**3 / 10,
            # and rounding of 1e-13 / h
            assert (up.nll[t] - down.nll[t]) / (2 * h) == pytest.approx(sums.gradient[t, i], abs=3e-8)
            assert (up.gradient[t, i] - down.gradient[t, i]) / (2 * h) == pytest.approx(
                sums.information[t, i], abs=3e-7
            )


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_large_uint8_equals_float(monkeypatch, missing):
    rng = np.random.default_rng(2)
    blocks = random_blocks(rng, 50, missing)
    floats = problem_of(blocks)
    domains = []
    for block in blocks:
        seen = ~np.isnan(block)
        right = np.where(seen, block, 0).astype(np.uint8)
        domains.append(DomainAnswers(right, None if seen.all() else seen.astype(np.uint8)))
    small = Problem(tuple(domains), floats.weights, floats.penalty_weights, floats.C)
    monkeypatch.setattr(problem_module, "_CHUNK_CELLS", 30)  # many pieces, the last one short
    assert len(list(domains[2].chunks())) == 17
    theta, a, d = parameters(rng, 50)
    for name in ("answers_per_item", "answers_per_model", "right_per_item", "right_per_model"):
        np.testing.assert_array_equal(getattr(small, name), getattr(floats, name))  # whole numbers
    x, y = cell_sums(small, theta, a, d), cell_sums(floats, theta, a, d)
    for name in ("nll", "gradient", "information"):
        # other blocks of the same products: rounding
        np.testing.assert_allclose(getattr(x, name), getattr(y, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(small.right_by_trait(theta), floats.right_by_trait(theta), rtol=0, atol=1e-12)
    np.testing.assert_allclose(small.right_by_slope(a), floats.right_by_slope(a), rtol=0, atol=1e-12)
    fields = [tabulate(p, Grid(4.0), a, d) for p in (small, floats)]
    np.testing.assert_allclose(fields[0].value(theta), fields[1].value(theta), rtol=1e-12)  # rounding
    np.testing.assert_allclose(fields[0].constant, fields[1].constant, rtol=0, atol=1e-12)  # rounding


def test_uint8_counts_do_not_wrap():
    right = np.ones((300, 300), dtype=np.uint8)
    problem = Problem((DomainAnswers(right, right),), np.ones(1), np.ones(1), 4.0)
    for total in (problem.right_per_item, problem.right_per_model[0], problem.answers_per_item):
        assert (total == 300).all()


@pytest.mark.parametrize("large", [False, True])
def test_integers_with_minus_one_equal_floats_with_nan(monkeypatch, large):
    if large:
        monkeypatch.setattr(problem_module, "_FLOAT_CELLS", 10)
    rng = np.random.default_rng(3)
    floats = random_blocks(rng, 30, 0.3)
    integers = [np.where(np.isnan(b), -1, b).astype(np.int8) for b in floats]
    x, y = problem_of(integers), problem_of(floats)
    assert x.domains[2].right.dtype == (np.uint8 if large else np.float64)
    assert y.domains[2].right.dtype == np.float64
    assert not x.complete
    for mine, other in zip(x.domains, y.domains, strict=True):
        np.testing.assert_array_equal(mine.right, other.right)
        np.testing.assert_array_equal(mine.observed, other.observed)
    theta, a, d = parameters(rng, 30)
    np.testing.assert_allclose(
        cell_sums(x, theta, a, d).nll,
        cell_sums(y, theta, a, d).nll,
        rtol=1e-13,  # one conversion more, the same sums
    )


def test_complete_and_layout():
    problem = problem_of(random_blocks(np.random.default_rng(4), 12))
    assert problem.complete
    assert all(answers.observed is None for answers in problem.domains)
    assert problem.n_models == 12
    np.testing.assert_array_equal(problem.sizes, SIZES)
    np.testing.assert_array_equal(problem.item_domain, [0] + [1] * 4 + [2] * 9)
    assert problem.item_slices == (slice(0, 1), slice(1, 5), slice(5, 14))
    assert (problem.answers_per_item == 12).all()
    np.testing.assert_array_equal(problem.answers_per_model, np.repeat(SIZES, 12).reshape(3, 12))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_products_with_the_answers_against_loops(missing):
    rng = np.random.default_rng(5)
    blocks = random_blocks(rng, 15, missing, fractional=True)
    problem = problem_of(blocks)
    theta, a, _ = parameters(rng, 15)
    by_trait, by_slope = np.zeros(14), np.zeros((3, 15))
    per_item, per_model, answers = np.zeros(14), np.zeros((3, 15)), np.zeros((3, 15))
    for t, (block, items) in enumerate(zip(blocks, problem.item_slices, strict=True)):
        for i in range(15):
            for j in range(block.shape[1]):
                if not np.isnan(block[i, j]):
                    item = items.start + j
                    by_trait[item] += block[i, j] * theta[t, i]
                    by_slope[t, i] += block[i, j] * a[item]
                    per_item[item] += block[i, j]
                    per_model[t, i] += block[i, j]
                    answers[t, i] += 1
    for got, want in [
        (problem.right_by_trait(theta), by_trait),
        (problem.right_by_slope(a), by_slope),
        (problem.right_per_item, per_item),
        (problem.right_per_model, per_model),
        (problem.answers_per_model, answers),
    ]:
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)  # sums of at most 15 terms: rounding


def test_softplus():
    z = np.array([-1e4, -800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0, 1e4])
    before = z.copy()
    got = softplus(z)
    np.testing.assert_array_equal(z, before)
    np.testing.assert_allclose(got, np.logaddexp(0, z), rtol=1e-15)  # one ulp
    np.testing.assert_array_equal(got[[0, -1]], [0.0, 1e4])
    np.testing.assert_allclose(got - softplus(-z), z, rtol=1e-15)  # softplus(z) - softplus(-z) = z
