"""Frames, summaries, scoring, saving and loading of a fit."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import mtlirt
from mtlirt import InputError, Responses, fit_mtl

LAMS = [0.0, 1.0, 4.0, math.inf]


@pytest.fixture(scope="module")
def fit(demo):
    return fit_mtl(demo, 1.0)


def test_scores_columns_and_ranks(fit, demo):
    scores = fit.scores()
    assert list(scores.columns) == [
        "model",
        "general",
        "general_rank",
        "mean_score",
        "mean_score_rank",
        *demo.domains,
        "borrowed",
    ]
    best = scores.loc[scores["general"].idxmax()]
    assert best["general_rank"] == 1
    assert sorted(scores["general_rank"]) == list(range(1, 121))
    means = pd.DataFrame(
        {
            d: np.nanmean(np.where(demo.block(d) < 0, np.nan, demo.block(d)), axis=1)
            for d in demo.domains
            if d != "coding"
        }
    )
    full = scores["borrowed"] == ""
    coding = demo.block("coding")[full]
    means = means[full].assign(coding=np.nanmean(np.where(coding < 0, np.nan, coding), axis=1))
    np.testing.assert_allclose(scores.loc[full, "mean_score"], means.mean(axis=1), rtol=1e-12)


def test_expected_scores_are_shares_right(fit):
    scores = fit.scores("expected").set_index("model")
    items = fit.items[fit.items["domain"] == "law"]
    p = expit(np.multiply.outer(fit.theta["law"].to_numpy(), items["a"].to_numpy()) + items["d"].to_numpy())
    np.testing.assert_allclose(scores["law"], p.mean(axis=1), rtol=1e-12)
    assert ((scores[list(fit.domains)] >= 0) & (scores[list(fit.domains)] <= 1)).all().all()
    # score equations: the expected total over answered items is near the observed one, up to penalty and box
    assert scores["law"].corr(fit.data.mean_score["law"]) > 0.97
    with pytest.raises(InputError, match="scale must be"):
        fit.scores("logit")


def test_standard_errors(fit, demo):
    scores = fit.scores(se=True).set_index("model")
    items = fit.items[fit.items["domain"] == "biology"]
    a, d = items["a"].to_numpy(), items["d"].to_numpy()
    p = expit(np.multiply.outer(fit.theta["biology"].to_numpy(), a) + d)
    information = (a**2 * p * (1 - p) * (demo.block("biology") >= 0)).sum(axis=1)
    np.testing.assert_allclose(scores["se:biology"], 1 / np.sqrt(information), rtol=1e-9)
    assert (scores["se:general"] < scores["se:biology"]).all()
    share = fit.scores("expected", se=True).set_index("model")
    slope = (a * p * (1 - p)).mean(axis=1)
    np.testing.assert_allclose(share["se:biology"], slope / np.sqrt(information), rtol=1e-9)


def test_column_names_that_collide(small):
    frame = small.responses.to_long().astype({"domain": str})
    frame["domain"] = frame["domain"].replace({"d01": "general", "d02": "model"})
    scores = fit_mtl(Responses.from_long(frame), 1.0).scores(se=True)
    assert scores.columns.is_unique
    assert {"domain:general", "domain:model", "general", "se:general", "se:domain:general"} <= set(scores.columns)


def test_coef(fit):
    coef = fit.coef()
    assert list(coef.columns) == ["domain", "item", "a", "d", "b", "at_bound"]
    flat = coef["a"] == 0
    assert flat.any()
    assert coef.loc[flat, "b"].isna().all()
    np.testing.assert_allclose(coef.loc[~flat, "b"], -(coef["d"] / coef["a"])[~flat])
    assert coef.loc[flat, "at_bound"].all()
    assert list(fit.coef(irt=True).columns) == ["domain", "item", "a", "b", "at_bound"]


def test_heterogeneity(fit):
    table = fit.heterogeneity()
    assert list(table.columns) == ["domain", "sine", "rho", "fused", "n_items"]
    assert table["sine"].is_monotonic_decreasing
    assert table["domain"][0] == "chess"  # data-raw/demo.py puts it at a sine of .8
    rho = fit.theta["chess"].corr(fit.general, method="spearman")
    assert table["rho"][0] == pytest.approx(rho)


def test_summary_text_and_html(fit):
    text = str(fit.summary())
    assert text.splitlines()[0].startswith("Call")
    for part in ("Converged", "120 models x 260 items in 6 domains", "chess", "lam_max", "on the box", "slope"):
        assert part.lower() in text.lower()
    html = fit.summary()._repr_html_()
    assert html.count("<table") == 3


def test_summary_html_escapes_names(small):
    frame, name = small.responses.to_long().astype({"model": str}), "<script>alert(1)</script>"
    frame["model"] = frame["model"].replace({"m01": name})
    html = fit_mtl(Responses.from_long(frame), 1.0).summary()._repr_html_()
    assert name not in html


def test_counts(fit, demo):
    assert fit.n_answers == demo.n_answers
    assert fit.n_params == 2 * 260 + 6 * 118  # slopes and intercepts, and 120 - 2 for each of 6 traits
    assert fit_mtl(demo, math.inf).n_params == 2 * 260 + 118
    assert "120 models x 260 items" in repr(fit)


def test_predict(fit, demo):
    p = fit.predict()
    assert p.shape == (120, 260)
    model, (domain, item) = p.index[7], p.columns[100]
    row = fit.items[(fit.items["domain"] == domain) & (fit.items["item"] == item)].iloc[0]
    assert p.loc[model, (domain, item)] == pytest.approx(expit(row["a"] * fit.theta.loc[model, domain] + row["d"]))
    part = fit.predict(demo.subset(models=list(demo.models[[3, 1]]), domains=["law", "chess"]))
    assert part.shape == (2, 80)
    assert part.loc[demo.models[3], ("law", "law-01")] == p.loc[demo.models[3], ("law", "law-01")]


def test_predict_refuses_other_data(fit, small):
    with pytest.raises(InputError, match="models were not fitted"):
        fit.predict(small.responses)
    other = small.responses.to_long().astype({"model": str})
    other["model"] = other["model"].map(dict(zip(small.responses.models, fit.models[:40], strict=True)))
    with pytest.raises(InputError, match="items were not fitted"):
        fit.predict(Responses.from_long(other))


@pytest.mark.parametrize("lam", LAMS)
def test_a_fitted_model_scores_its_own_traits(demo, lam):
    fit = fit_mtl(demo, lam)
    new = fit.score(demo.subset(models=list(demo.models[10:20])))
    # both solve the same equations; the fit stops at 1e-10 of its objective
    np.testing.assert_allclose(new[list(fit.domains)], fit.theta.iloc[10:20], atol=2e-3)
    np.testing.assert_allclose(new["general"], fit.general.iloc[10:20], atol=2e-3)


@pytest.mark.parametrize("lam", [0.5, 2.0])
def test_a_fitted_model_scores_its_own_traits_in_two_domains(small, lam):
    pair = small.responses.subset(domains=["d01", "d03"])
    fit = fit_mtl(pair, lam)
    new = fit.score(pair)
    np.testing.assert_allclose(new[["d01", "d03"]], fit.theta, atol=2e-3)
    np.testing.assert_allclose(new["general"], fit.general, atol=2e-3)


@pytest.mark.parametrize("lam", LAMS)
def test_scoring_recovers_new_models(demo, lam):
    """Fit without some models, score them, compare with the fit that had them."""
    held = list(demo.models[::6])
    fit = fit_mtl(demo.subset(models=[m for m in demo.models if m not in held]), lam)
    new = fit.score(demo.subset(models=held)).set_index("model")
    whole = fit_mtl(demo, lam).general[held]
    assert new["general"].corr(whole) > 0.97  # item parameters from 100 or 120 models; the trait's reliability is .98


def test_scoring_with_few_answers_and_gaps(demo):
    fit = fit_mtl(demo, 1.0)
    one = demo.subset(models=["Elm-1B"])
    new = fit.score(one)
    assert list(new.columns) == ["model", "general", *fit.domains, "n_answers", "borrowed"]
    assert new["borrowed"][0] == "coding"
    assert new[list(fit.domains)].notna().all().all()
    tiny = fit.score(demo.subset(models=["Fir-8B"], items=["law-01", "law-02"]))
    assert tiny["n_answers"][0] <= 2
    assert tiny[list(fit.domains)].abs().to_numpy().max() <= 4
    separate = fit_mtl(demo, 0).score(one)
    assert np.isnan(separate["coding"][0])
    assert np.isfinite(separate["general"][0])


def test_scoring_all_right_and_all_wrong(demo):
    frame = pd.DataFrame(np.nan, index=["right", "wrong"], columns=demo.items["item"])
    frame.loc["right"], frame.loc["wrong"] = 1.0, 0.0
    new = Responses.from_wide(frame, domains=dict(zip(demo.items["item"], demo.items["domain"], strict=True)))
    for lam in LAMS:
        scores = fit_mtl(demo, lam).score(new)
        domains = scores[list(demo.domains)].to_numpy()
        assert (np.abs(domains) <= 4).all()
        assert (domains[0] > 1).all()
        assert (domains[1] < -1).all()


def test_scoring_unknown_items_and_silent_models(demo, small):
    fit = fit_mtl(demo, 1.0)
    with pytest.raises(InputError, match="items were not fitted"):
        fit.score(small.responses)
    frame = pd.DataFrame([[np.nan, np.nan]], index=["x"], columns=["law-01", "law-02"])
    with pytest.raises(InputError, match="no answer to a fitted item from 1 of the models, such as 'x'"):
        fit.score(Responses.from_wide(frame, domains="law"))


# Saving --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", LAMS)
def test_save_and_load(demo, tmp_path, lam):
    fit = fit_mtl(demo, lam)
    fit.save(tmp_path / "a" / "fit")
    back = mtlirt.load(tmp_path / "a" / "fit")
    for name in ("theta", "trait_information", "items", "trace"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(fit, name), check_dtype=False)
    for name in ("general", "lam_max", "fused", "weights", "penalty_weights", "general_information"):
        pd.testing.assert_series_equal(getattr(back, name), getattr(fit, name))
    for name in (
        "objective",
        "loss",
        "penalty",
        "lam",
        "status",
        "settings",
        "log_likelihood",
        "general_at",
        "n_params",
    ):
        assert getattr(back, name) == getattr(fit, name)
    assert back.data.fingerprint == demo.fingerprint
    assert str(back.summary()) == str(fit.summary())
    pd.testing.assert_frame_equal(back.scores(se=True), fit.scores(se=True))
    pd.testing.assert_frame_equal(back.score(demo), fit.score(demo))
    assert sorted(p.name for p in (tmp_path / "a" / "fit").iterdir()) == ["arrays.safetensors", "manifest.json"]
    assert fit_mtl(demo, 1.0, init=back).converged


def test_saving_over_something(fit, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(InputError, match="exists already"):
        fit.save(tmp_path / "full")
    (tmp_path / "empty").mkdir()
    fit.save(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot be written"):
        fit.save(tmp_path / "full" / "x" / "fit")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "full"]


def test_loading_what_is_not_a_fit(fit, tmp_path):
    with pytest.raises(InputError, match="not a saved fit"):
        mtlirt.load(tmp_path)
    fit.save(tmp_path / "fit")
    manifest = tmp_path / "fit" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(InputError, match=r"format 99.*upgrade mtlirt"):
        mtlirt.load(tmp_path / "fit")
    manifest.write_text(json.dumps({k: v for k, v in content.items() if k != "models"}))
    with pytest.raises(InputError, match="damaged"):
        mtlirt.load(tmp_path / "fit")
    manifest.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        mtlirt.load(tmp_path / "fit")
    manifest.write_text(json.dumps(content))
    (tmp_path / "fit" / "arrays.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(InputError, match="damaged"):
        mtlirt.load(tmp_path / "fit")
