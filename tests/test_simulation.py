"""The paper's design as a generator."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import skew

import mtlirt
from mtlirt import HeterogeneityDesign, InputError, LeaderboardDesign, line_median, simulate
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


def test_centers():
    general = {
        center: simulate(HeterogeneityDesign(h0=0.0, N=400, sizes=(2,), per_size=1, center=center), 1).truth.general
        for center in ("grid", "normal", "clustered", "skewed")
    }
    # a uniform distribution ends at sqrt(3) standard deviations, an exponential's skewness is 2 before the box cuts it
    assert general["grid"].abs().max() == pytest.approx(math.sqrt(3), abs=0.01)
    assert general["normal"].abs().max() > 2.5
    assert abs(skew(general["grid"])) < 0.05
    assert skew(general["skewed"]) > 1.2
    assert general["skewed"].max() == pytest.approx(4)
    gaps = np.sort(general["clustered"])
    # four groups of 100 at distances of .9: within them .2 of that
    counts, _ = np.histogram(gaps, bins=np.linspace(-1.8, 1.8, 9)[::2])
    assert (counts > 60).all()


@pytest.fixture(scope="module")
def board():
    return simulate(LeaderboardDesign(models=200, clones=0.1, missing=0.05), seed=3)


def test_a_leaderboard_has_the_size_and_flaws_it_should(board):
    responses, truth = board.responses, board.truth
    assert len(responses.domains) == 56
    assert responses.n_items == 14_042 - 783  # MMLU's test split without "miscellaneous"
    assert (responses.sizes.min(), responses.sizes.max()) == (100, 1534)
    a = truth.items["a"]
    assert (a == 0).mean() == pytest.approx(0.2, abs=4 * math.sqrt(0.16 / len(a)))  # 4 standard errors
    assert (a < 0).mean() == pytest.approx(0.01, abs=4 * math.sqrt(0.01 / len(a)))
    means = np.nanmean(responses.scores, axis=0)
    assert means[a == 0].mean() == pytest.approx(0.17, abs=0.02)  # R-MTL, section 6.2: 17.1 %
    general = truth.general.to_numpy()
    correlation = [np.corrcoef(general, responses.block("college biology")[:, j])[0, 1] for j in range(3)]
    assert np.isfinite(correlation).all()
    sine = sines(general, truth.theta.to_numpy().T)
    assert truth.theta.columns[sine.argmax()] == "college mathematics"
    np.testing.assert_allclose(truth.theta.mean(), 0, atol=1e-9)
    np.testing.assert_allclose((truth.theta**2).mean(), 1, atol=1e-9)


def test_clones_repeat_their_original(board):
    info, scores = board.responses.model_info, board.responses.scores
    clones = info["clone_of"].dropna()
    assert len(clones) == 20
    for clone, original in clones.items():
        i, j = (board.responses.models.get_loc(m) for m in (clone, original))
        np.testing.assert_array_equal(scores[i], scores[j])
        assert info.loc[clone, "family"] == info.loc[original, "family"]
        assert board.truth.theta.loc[clone].equals(board.truth.theta.loc[original])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": 10}, "models"),
        ({"families": 0}, "families"),
        ({"clones": 0.7}, "clones"),
        ({"dead": 0.9, "inverted": 0.2}, "dead"),
        ({"missing": -0.1}, "missing"),
    ],
)
def test_bad_leaderboards(arguments, message):
    with pytest.raises(InputError, match=message):
        LeaderboardDesign(**arguments)


def test_answers_from_a_fit(demo):
    fit = mtlirt.fit_mtl(demo, 5.0)
    drawn = simulate(fit, 1)
    assert drawn.responses.n_answers == 120 * 260
    p = fit.predict()
    # 120 draws of each item: the sum of squared standardised differences of 260 means has mean 260 and sd 23
    z = (drawn.responses.scores.mean(axis=0) - p.mean()) / np.sqrt((p * (1 - p)).sum() / 120**2)
    assert np.square(z).sum() == pytest.approx(260, abs=4 * 23)
    like = simulate(fit, 1, like=demo).responses
    np.testing.assert_array_equal(np.isnan(like.scores), np.isnan(demo.scores))
    refit = mtlirt.fit_mtl(like, 5.0)
    assert refit.general.corr(fit.general) > 0.97  # its reliability with 260 items


def test_a_fit_without_a_trait_gives_no_answers(demo):
    fit = mtlirt.fit_mtl(demo, 0)
    gap = fit.gaps.iloc[0]
    block = simulate(fit, 1).responses.block(gap["domain"])
    assert (block[demo.models.get_loc(gap["model"])] == -1).all()
    assert (block == -1).sum() == block.shape[1]


def test_like_must_fit(demo, small):
    fit = mtlirt.fit_mtl(small.responses, math.inf)
    with pytest.raises(InputError, match="other models or items"):
        simulate(fit, 1, like=demo)
    with pytest.raises(InputError, match="like goes with a fit"):
        simulate(HeterogeneityDesign(h0=0.1), 1, like=demo)


def test_drawn_responses_equal_those_read_from_a_table(small):
    responses = small.responses
    frame = pd.DataFrame(responses.scores, index=responses.models, columns=responses.items["item"])
    lookup = dict(zip(responses.items["item"], responses.items["domain"], strict=True))
    assert mtlirt.Responses.from_wide(frame, domains=lookup) == responses
