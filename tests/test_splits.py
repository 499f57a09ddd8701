"""Folds: what is held out, what is left, and that nothing leaks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mtlirt
from mtlirt.data.splits import make_split
from mtlirt.models.settings import Settings
from mtlirt.selection.folds import make_fold
from mtlirt.solvers.solution import Solution


def responses_of(scores, sizes):
    names = [f"d{t}.q{j}" for t, n in enumerate(sizes) for j in range(n)]
    frame = pd.DataFrame(scores, index=[f"m{i}" for i in range(len(scores))], columns=names)
    return mtlirt.Responses.from_wide(frame, domains=lambda item: item.split(".")[0])


@st.composite
def answers(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    scores = rng.integers(0, 2, (draw(st.integers(1, 8)), sum(sizes))).astype(float)
    scores[rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.3, 0.8]))] = np.nan
    return responses_of(scores, sizes)


@settings(max_examples=60, deadline=None)
@given(answers(), st.integers(2, 7), st.integers(0, 100))
def test_cells_are_dealt_out_evenly(responses, folds, seed):
    split = make_split(responses, "cells", folds, seed)
    for domain, block in zip(responses.domains, split.blocks, strict=True):
        answered = responses.block(domain) >= 0
        np.testing.assert_array_equal(block >= 0, answered)  # every answer in one fold, gaps in none
        assert block.max(initial=-1) < folds
        for row, n in zip(block, answered.sum(axis=1), strict=True):
            sizes = np.bincount(row[row >= 0], minlength=folds)
            assert sizes.max() - sizes.min() <= 1
            assert sizes.sum() == n


@settings(max_examples=30, deadline=None)
@given(answers(), st.integers(2, 7), st.integers(0, 100))
def test_items_are_dealt_out_evenly(responses, folds, seed):
    split = make_split(responses, "items", folds, seed)
    for domain, of in zip(responses.domains, split.blocks, strict=True):
        assert of.shape == (responses.block(domain).shape[1],)
        sizes = np.bincount(of, minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_seeds(small):
    first, again, other = (make_split(small.responses, "cells", 5, seed) for seed in (1, 1, 2))
    assert all((x == y).all() for x, y in zip(first.blocks, again.blocks, strict=True))
    assert not all((x == y).all() for x, y in zip(first.blocks, other.blocks, strict=True))
    sizes = np.array([[(block == k).sum() for k in range(5)] for block in first.blocks])
    # 30 items: 6 each. 40 items: 8 each. The larger shares of uneven domains are spread over the folds:
    uneven = make_split(responses_of(np.ones((400, 7)), (7,)), "cells", 5, 0).blocks[0]
    assert (sizes == sizes[:, :1]).all()
    # each fold's size is 400 + a binomial of 400 and 2/5: mean 160, sd 10; 50 is five of them
    assert np.abs(np.bincount(uneven.ravel()) - 560).max() < 50


@pytest.mark.parametrize(("folds", "seed"), [(1, 0), (101, 0), (2.5, 0), (5, -1), (5, "x")])
def test_bad_folds(small, folds, seed):
    with pytest.raises(mtlirt.InputError, match="whole number"):
        make_split(small.responses, "cells", folds, seed)


@pytest.mark.parametrize("scheme", ["cells", "items"])
def test_held_out_answers_do_not_reach_training(small, scheme):
    """Turn every held-out answer round: the training problem stays the same to the bit."""
    frame, lookup = wide_scores(small.responses)
    split = make_split(small.responses, scheme, 4, 0)
    columns = np.concatenate([np.broadcast_to(b == 2, (len(frame), b.shape[-1])) for b in split.blocks], axis=1)
    turned = mtlirt.Responses.from_wide(frame.where(~columns, 1 - frame), domains=lookup)
    trains = []
    for responses in (small.responses, turned):
        how = Settings()
        trains.append(make_fold(how.problem(responses), split, 2, how).train)
    for x, y in zip(trains[0].domains, trains[1].domains, strict=True):
        np.testing.assert_array_equal(x.right, y.right)
        assert (x.observed is None and y.observed is None) or (x.observed == y.observed).all()
    np.testing.assert_array_equal(trains[0].weights, trains[1].weights)


def wide_scores(responses):
    frame = pd.DataFrame(responses.scores, index=responses.models, columns=responses.items["item"])
    return frame, dict(zip(responses.items["item"], responses.items["domain"], strict=True))


def test_cells_that_cannot_be_predicted_are_left_out():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 2, (12, 20)).astype(float)
    scores[0, 10:] = np.nan
    scores[0, 10] = 1.0  # one answer in the second domain: in the fold that holds it out nothing is left
    scores[1:, 3] = np.nan  # an item that only the first model answered
    responses = responses_of(scores, (10, 10))
    how = Settings()
    split = make_split(responses, "cells", 3, 0)
    folds = [make_fold(how.problem(responses), split, k, how) for k in range(3)]
    assert sum(fold.unseen for fold in folds) == 2
    assert sum(int(fold.cells.sum()) for fold in folds) == responses.n_answers - 2


def test_a_domain_without_items_to_train_on():
    responses = responses_of(np.tile([[0, 1], [1, 0]], (4, 2)).astype(float), (2, 2))
    how = Settings()
    with pytest.raises(mtlirt.InputError, match="domain 'd0' has training answers of only 1 items in fold 1"):
        make_fold(how.problem(responses), make_split(responses, "items", 2, 0), 0, how)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_held_out_items_are_refitted_to_the_traits(missing):
    """The loss of a held-out item is the least that any slope and intercept in the box reach: scipy finds the same."""
    design = mtlirt.HeterogeneityDesign(h0=0.2, N=30, sizes=(9, 12), per_size=1, missing=missing)
    responses = mtlirt.simulate(design, 3).responses
    how = Settings()
    split = make_split(responses, "items", 3, 0)
    fold = make_fold(how.problem(responses), split, 1, how)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(2, 30))
    nothing = np.zeros(int(fold.train.sizes.sum()))
    got = fold.nll(Solution(theta, theta[0], nothing, nothing, np.zeros(2, dtype=bool), mtlirt.Status.CONVERGED, []))
    for t, of in enumerate(split.blocks):
        total = 0.0
        for scores in responses.block(responses.domains[t])[:, of == 1].T.astype(float):
            seen = scores >= 0

            def loss(x, y=scores[seen], trait=theta[t][seen]):
                z = x[0] * trait + x[1]
                return np.logaddexp(0, z).sum() - y @ z

            total += minimize(loss, [1.0, 0.0], bounds=[(0, 4), (-4, 4)], options={"ftol": 1e-14, "gtol": 1e-9}).fun
        assert got[t] == pytest.approx(total, rel=1e-8)  # the square of scipy's gradient tolerance, over curvature
