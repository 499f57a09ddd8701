"""The paper's design as a generator."""

import numpy as np
import pytest

from mtlirt import HeterogeneityDesign, InputError, line_median, simulate
from mtlirt.core.angle import sines


@pytest.mark.parametrize("h0", [0.1, 0.5])
@pytest.mark.parametrize("center", ["grid", "normal"])
def test_the_design_is_the_papers(h0, center):
    simulation = simulate(HeterogeneityDesign(h0=h0, center=center), seed=2)
    truth, responses = simulation.truth, simulation.responses
    assert responses.sizes.tolist() == [50] * 3 + [60] * 3 + [70] * 3 + [80] * 3 + [90] * 3 + [100] * 3
    theta = truth.theta.to_numpy().T
    np.testing.assert_allclose(theta.mean(axis=1), 0, atol=1e-10)  # METHODS 8.1
    np.testing.assert_allclose((theta**2).mean(axis=1), 1, atol=1e-10)
    assert np.abs(theta).max() <= 4  # METHODS 1.9
    # theta_t = sqrt(1 - alpha**2) c + sqrt(N) alpha v_t with orthonormal v: off the diagonal only c is left
    gram = theta @ theta.T / 100
    root = np.sqrt(np.outer(*[1 - alpha(gram) ** 2] * 2))
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), root - np.diag(np.diag(root)), atol=1e-9)
    np.testing.assert_allclose(truth.general, line_median(theta).line, atol=1e-12)
    assert sines(truth.general.to_numpy(), theta).max() <= h0 + 1e-9  # the first domain's, the general trait nearer it
    items = truth.items
    assert items["a"].between(0.5, 1.5).all()
    assert items["d"].between(-1, 1).all()
    assert list(items["domain"]) == list(responses.items["domain"])
    assert list(truth.theta.columns) == list(responses.domains)


def alpha(gram):
    """Sines to the centre from the off-diagonal products r_s r_t, r = sqrt(1 - alpha**2)."""
    r0 = np.sqrt(gram[0, 1] * gram[0, 2] / gram[1, 2])
    r = gram[0] / r0
    r[0] = r0
    return np.sqrt(np.clip(1 - r**2, 0, None))


def test_largest_sine_to_the_centre_is_h0():
    theta = simulate(HeterogeneityDesign(h0=0.4), seed=1).truth.theta.to_numpy().T
    sine = alpha(theta @ theta.T / 100)
    assert sine.max() == pytest.approx(0.4, abs=1e-9)
    assert sine[0] == sine.max()


def test_same_seed_same_answers():
    design = HeterogeneityDesign(h0=0.3, N=20, sizes=(10,), missing=0.1)
    one, two, other = (simulate(design, seed).responses.fingerprint for seed in (1, 1, 2))
    assert one == two != other
    assert simulate(design, np.random.default_rng(1)).responses.fingerprint == one


def test_missing_share_and_rates():
    simulation = simulate(HeterogeneityDesign(h0=0.2, N=300, missing=0.3), seed=1)
    responses = simulation.responses
    cells = responses.n_models * responses.n_items
    assert responses.n_answers / cells == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / cells))  # 4 standard errors
    items, theta = simulation.truth.items, simulation.truth.theta
    p = 1 / (1 + np.exp(-(theta[items["domain"]].to_numpy() * items["a"].to_numpy() + items["d"].to_numpy())))
    assert np.nanmean(responses.scores) == pytest.approx(p.mean(), abs=4 * 0.5 / np.sqrt(responses.n_answers))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h0": 1.0}, "h0"),
        ({"h0": -0.1}, "h0"),
        ({"h0": 0.1, "N": 10}, "N must be at least 20"),
        ({"h0": 0.1, "sizes": ()}, "sizes"),
        ({"h0": 0.1, "sizes": (1,)}, "sizes"),
        ({"h0": 0.1, "per_size": 0}, "per_size"),
        ({"h0": 0.1, "center": "odd"}, "center"),
        ({"h0": 0.1, "missing": 1.0}, "missing"),
    ],
)
def test_bad_designs(arguments, message):
    with pytest.raises(InputError, match=message):
        HeterogeneityDesign(**arguments)
