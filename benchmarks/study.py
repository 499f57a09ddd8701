"""A replication of the heterogeneity study: the default estimators against the `adam` reference, in one run.

100 models, 18 domains, 1,350 items; each replication of `rmtl` is 102 fits (5 folds x 17 lam, and the path), and the
reference makes the same 102 with the paper's solver. One process, one thread. Run: python -m benchmarks.study
"""

import argparse
import tempfile

import torch

import mtlirt
from benchmarks.measure import clock, machine
from mtlirt.simulation.summary import reference_cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--h0", type=float, default=0.3)
    parser.add_argument("--reps", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    with tempfile.TemporaryDirectory() as folder, clock() as work:
        study = mtlirt.run_study(
            [mtlirt.HeterogeneityDesign(h0=options.h0)],
            out=folder,
            reps=options.reps,
            estimators=["rmtl", "separate", "pooled", "mean_score", "rmtl_items", "adam"],
        )
    once = study.drop_duplicates(["replication", "estimator"])
    print(once.groupby("estimator", sort=False)["seconds"].agg(["median", "min", "max", "count"]).round(3).to_string())
    print(f"all of it {work.wall:.0f} s, {work.cpu:.0f} CPU s")
    print(reference_cost(study))
    print(mtlirt.study_table(study)[["estimator", "trait", "mean", "replications"]].round(4).to_string(index=False))


if __name__ == "__main__":
    main()
