# %% [markdown]
# # For torch users
#
# The model is a logistic regression with two unknown factors, and you could write it in twenty lines of torch. This vignette writes them,
# compares them with the package, and says what the package does beyond: exact constraints, exact fusion, and a solver that takes a dozen
# sweeps where Adam takes hundreds of steps.

# %%
import time

import numpy as np
import pandas as pd
import torch

import mtlirt

torch.set_num_threads(1)
responses = mtlirt.datasets.demo()
lam = 10.0

# %% [markdown]
# ## The objective in torch
#
# For domain t with its (N, J_t) scores Y_t: the loss is the negative log-likelihood of logit P = theta_t a' + d, divided by the number of
# items; where answers are missing, by the number of items times the share answered. The penalty is `lam` times the sum of the sines (for
# two domains alone it is `lam` times the one sine between them).

# %%
scores = [torch.tensor(responses.block(domain).astype(float)) for domain in responses.domains]  # -1 where missing


def objective(theta, general, a, d):
    """theta, a, d : lists over domains; general : (N,)."""
    loss, penalty = 0.0, 0.0
    for Y, x, slope, intercept in zip(scores, theta, a, d, strict=True):
        z = x[:, None] * slope + intercept
        seen = Y >= 0
        nll = torch.nn.functional.softplus(z) - Y * z
        loss = loss + nll[seen].sum() / (Y.shape[1] * seen.double().mean())
        cosine = (x @ general) / (x.norm() * general.norm())
        penalty = penalty + torch.sqrt(torch.clamp(1 - cosine**2, min=0))
    return loss + lam * penalty


# %% [markdown]
# A fit hands over everything as plain frames, so its objective can be checked with these lines:

# %%
fit = mtlirt.fit_mtl(responses, lam=lam)


def tensors(fit):
    items = [fit.items[fit.items["domain"] == domain] for domain in fit.domains]
    theta = [torch.tensor(fit.theta[domain].to_numpy()) for domain in fit.domains]
    a, d = ([torch.tensor(i[name].to_numpy()) for i in items] for name in ("a", "d"))
    return theta, torch.tensor(fit.general.to_numpy()), a, d


ours = objective(*tensors(fit)).item()
print(f"objective: package {fit.objective:.8f}, these lines {ours:.8f}")
assert np.isclose(ours, fit.objective, rtol=1e-7)

# %% [markdown]
# ## The same by Adam
#
# `mtlirt.Adam()` is the paper's solver in torch: full batch, autograd, and after every step a projection onto the constraints. It runs on
# any torch device (`Adam(device="cuda", dtype="float32")`). The default solver `Block` needs no torch at all: it tabulates the sum over
# items as a function of one variable, takes Newton steps, and moves the general trait together with all domains.

# %%
rows = []
for solver in (mtlirt.Block(), mtlirt.Adam()):
    start = time.perf_counter()
    solved = mtlirt.fit_mtl(responses, lam=lam, solver=solver)
    seconds = time.perf_counter() - start
    rows.append(solved)
    print(
        f"{type(solver).__name__:5s}: objective {solved.objective:.6f} after {len(solved.trace)} steps, {seconds:.2f} s"
    )

# %% [markdown]
# Both minimise the same function, and both say that their stopping rule held. Adam's objective is a little higher: it circles around the
# kinks, as its sines show.

# %%
sines = {
    type(s).__name__: r.heterogeneity().set_index("domain")["sine"]
    for s, r in zip((mtlirt.Block(), mtlirt.Adam()), rows, strict=True)
}
print(pd.DataFrame(sines).round(4).to_string())

# %% [markdown]
# Why not plain gradient descent on your own lines above?
#
# * **Constraints hold inside the loop.** Without |theta| <= C one outlying model makes all domains look parallel, and the penalty is evaded.
# * **Fusion is exact.** The sine has a kink at 0. Gradient steps circle around it and leave small sines that are neither zero nor
#   meaningful; here `fit.fused` is a yes or no.
# * **The general trait is a median of lines**, found by reweighting and by trying every line, not by a gradient through a square root of 0.

# %%
print(fit.fused.to_string())

# %% [markdown]
# ## Into your own pipeline
#
# Everything that comes out is pandas and numpy. `Responses` holds one matrix for each domain, int8 where all scores are 0 or 1 and float64
# with NaN otherwise. It is not to be written to, so torch gets a copy:

# %%
block = responses.block("law")
print(block.dtype, block.shape, torch.from_numpy(block.copy()).shape)

# %% [markdown]
# Scores go into a training loop or a dashboard by `fit.scores()`; probabilities of right answers, models by items, by `fit.predict()`. A
# checkpoint is scored against a saved fit with the items held fixed, which is no new fit:

# %%
start = time.perf_counter()
checkpoint = fit.score(responses.subset(models=["Fir-32B"]))
print(checkpoint.round(2).to_string(index=False))
print(f"scored in {time.perf_counter() - start:.3f} s")

# %% [markdown]
# Replications, folds and restarts run on several processes (`n_jobs=2`) or on a dask cluster, with the same numbers to the last digit:
# BLAS runs on one thread in every worker, and every task has its own seed.
