"""The rates study: slopes from made-up errors that follow the theory, and from a small real study."""

import itertools

import numpy as np
import pandas as pd
import pytest

from mtlirt import HeterogeneityDesign, InputError, rates_designs, rates_table, run_study
from mtlirt.cli import main

SMALL = {"sizes": (20, 40, 80), "h0": (0.0, 0.2, 0.3, 0.5), "size": 40, "n_domains": 3}


def made_up(designs, reps=8, noise=0.01):
    """Errors of separate domains, of pooling (sampling error and bias in quadrature), and the smaller of the two."""
    rng, rows = np.random.default_rng(0), []
    for (number, design), r in itertools.product(enumerate(designs), range(reps)):
        separate = 3 * design.N**-0.5
        pooled = np.sqrt(1 / design.N + 0.5 * design.h0**2)
        for estimator, error in (("separate", separate), ("pooled", pooled), ("rmtl", min(separate, pooled))):
            rows += [
                {
                    "design": number,
                    "h0": design.h0,
                    "N": design.N,
                    "sizes": str(design.sizes),
                    "replication": r,
                    "estimator": estimator,
                    "domain": domain,
                    "error": error * rng.normal(1, noise),
                    "seconds": 1.0,
                }
                for domain in ("d01", "general")
            ]
    return pd.DataFrame(rows)


def test_designs_are_two_crossed_series():
    designs = rates_designs(**SMALL)
    assert len(designs) == len(set(designs)) == 2 * 3 + 4 - 2
    assert {(d.N, d.sizes, d.per_size) for d in designs} == {(n, (n,), 3) for n in SMALL["sizes"]}


def test_slopes_of_errors_that_follow_the_theory():
    table = rates_table(made_up(rates_designs()))
    assert ((table["low"] < table["slope"]) & (table["slope"] < table["high"])).all()
    by_n = table[table["varied"] == "N"].set_index(["fixed", "estimator", "trait"])
    exact = by_n.loc[[("h0 = 0", e, t) for e in ("separate", "pooled", "rmtl") for t in ("domains", "general")]]
    assert (exact["theory"] == -0.5).all()
    # noise of 1 % in 8 replications and 4 sizes over a factor of 8: standard error .0023 of the slope; 4 of them
    np.testing.assert_allclose(exact["slope"], -0.5, atol=0.0095)
    np.testing.assert_allclose(exact["high"] - exact["low"], 2 * 1.96 * 0.0023, rtol=0.6)
    assert by_n.loc[("h0 = 0.3", "pooled", "domains"), "slope"] > -0.1
    assert by_n.loc[("h0 = 0.3", "pooled", "domains"), "theory"] == 0
    assert by_n.loc[("h0 = 0.3", "rmtl", "domains"), "theory"] == -0.5


def test_the_excess_grows_linearly_until_the_separate_rate_takes_over():
    table = rates_table(made_up(rates_designs(), noise=0.001))
    by_h = table[table["varied"] == "h0"].set_index(["estimator", "trait"])
    assert set(by_h.index.get_level_values(0)) == {"pooled", "rmtl"}
    np.testing.assert_allclose(by_h["slope"], 1.0, atol=0.02)  # noise of .1 % on an excess half as large as the error
    # pooled is better than separate while 1 / N + h**2 / 2 < 9 / N, so up to h = .4 at N = 100, where they tie
    assert (by_h["largest"] <= 0.4).all()
    assert (by_h["points"] >= 5).all()


def test_a_small_study(tmp_path):
    study = run_study(rates_designs(**SMALL), out=tmp_path, reps=4, estimators=["separate", "pooled", "mean_score"])
    table = rates_table(study).set_index(["varied", "fixed", "estimator", "trait"])
    assert "mean_score" not in table.index.get_level_values("estimator")
    # without heterogeneity the error of the pooled trait falls like one over the root of N = J_t
    assert table.loc[("N", "h0 = 0", "pooled", "domains"), "slope"] == pytest.approx(-0.5, abs=0.25)
    slopes = [table.loc[("N", f"h0 = {h0}", "pooled", "domains"), "slope"] for h0 in ("0", "0.3")]
    assert slopes[0] < slopes[1]  # differing domains hold the error up


def test_one_replication_has_slopes_without_intervals():
    table = rates_table(made_up(rates_designs(), reps=1))
    assert table["slope"].notna().all()


def test_studies_without_rates(tmp_path):
    designs = [HeterogeneityDesign(h0=h0, N=20, sizes=(10,)) for h0 in (0.1, 0.2)]
    study = run_study(designs, out=tmp_path, reps=2, estimators=["separate", "pooled"])
    with pytest.raises(InputError, match="no three designs"):
        rates_table(study)
    with pytest.raises(InputError, match="separate and pooled"):
        rates_table(study[study["estimator"] == "pooled"])


def test_command_line(tmp_path, monkeypatch, capsys):
    designs = rates_designs(**SMALL)
    monkeypatch.setattr("mtlirt.simulation.rates.rates_designs", lambda: designs)
    out = tmp_path / "out"
    command = ["mtlirt", "simulate", "rates", "--out", str(out), "--reps", "2"]
    monkeypatch.setattr("sys.argv", [*command, "--estimator", "pooled"])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2
    assert not out.exists()
    monkeypatch.setattr("sys.argv", [*command, "--estimator", "pooled", "--estimator", "separate"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert {p.name for p in out.iterdir()} == {"study.parquet", "table.csv", "rates.csv", "replications"}
    assert len(pd.read_csv(out / "rates.csv")) == 2 * 4 + 2
    assert "theory" in capsys.readouterr().out
