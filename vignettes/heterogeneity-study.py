# %% [markdown]
# # The heterogeneity study
#
# What do separate, pooled and penalised estimation cost when domains differ by a known amount? Section 5 of the R-MTL paper asks
# this of simulated answers, where the truth is known. This vignette runs the study, sets it beside the paper, and goes on to what
# the paper leaves open: how to choose lam, what extreme models do, and whether errors shrink and grow as the theorems say.
#
# The tables and pictures in `vignettes/heterogeneity-study/` are those of the full study: `VIGNETTE_FULL=1` runs it again in an
# hour on two cores. Without it a reduced study runs in seconds.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import mtlirt
from mtlirt import HeterogeneityDesign

KEPT = Path(__file__).resolve().with_suffix("")
FULL = bool(os.environ.get("VIGNETTE_FULL"))
WORK = Path(os.environ.get("VIGNETTE_WORK") or tempfile.mkdtemp())
REPS, H0S, JOBS = (100, (0.1, 0.2, 0.3, 0.4, 0.5), 2) if FULL else (1, (0.1, 0.5), 1)


def table(name, frame):
    """The kept table of the full study, renewed if this is one."""
    if FULL:
        frame.to_csv(KEPT / f"{name}.csv", index=False, float_format="%.5g")
    return pd.read_csv(KEPT / f"{name}.csv")


# %% [markdown]
# ## The study
#
# 100 models, 18 domains of 50 to 100 items. The largest sine between a domain's trait and the centre is `h0`. Nothing starts from
# the truth, and a replication depends on its own seed alone: one process, two, or the workers of a dask cluster
# (`scheduler="tcp://..."`) give the same numbers, and an interrupted study goes on where it stopped.

# %%
designs = [HeterogeneityDesign(h0=h0) for h0 in H0S]
study = mtlirt.run_study(designs, out=WORK / "study", reps=REPS, n_jobs=JOBS)
means = table("study", mtlirt.study_table(study))
for trait in ("domains", "general"):
    part = means[means["trait"] == trait]
    print(f"\nMean error, {trait}")
    print(part.pivot_table(index="estimator", columns="h0", values="mean", sort=False).round(3).to_string())

# %%
if FULL:
    for name, plot in (("general", mtlirt.plots.study_general), ("domains", mtlirt.plots.study_domains)):
        plot(study[study["estimator"] != "mean_score"]).figure.savefig(KEPT / f"{name}.png", dpi=110)
