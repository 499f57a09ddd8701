# %% [markdown]
# # Choosing lambda
#
# How much should domains borrow from one another? The penalty weight `lam` says it, and this vignette says how to choose it, how
# sure the choice is, and what to write in a paper. It uses simulated answers, so that the choice can be compared with the truth.

# %%
import math

import numpy as np

import mtlirt

design = mtlirt.HeterogeneityDesign(h0=0.5, N=100, sizes=(40, 60), per_size=4)
simulation = mtlirt.simulate(design, seed=7)
responses = simulation.responses
print(responses)

# %% [markdown]
# ## What lam does
#
# The penalty is `lam` times the sum of the sines between the domains' traits and the general trait. Above a domain's *fusion
# threshold* its trait is the general trait exactly, not just nearly: the penalty has a kink at zero, as the lasso's has. Thresholds
# are taken at the pooled fit, with all others fused; once the odd domains have left, the others may stay a little longer. Above the
# largest threshold, `lam_max`, nothing changes any more, and the fit is the pooled one. (In a fold of cross-validation, which has
# fewer answers, the thresholds are its own.) At 0 every domain is fitted alone.

# %%
print(mtlirt.fusion_thresholds(responses).round(2).to_string())

# %% [markdown]
# Thresholds have the units of the loss, which grows with the number of models. A number such as `lam = 2` therefore says nothing by
# itself; `lam / lam_max` does, and it is what to report. Every frame of this package has both, and the paper's own scaling,
# `C_lambda`, beside them.
#
# ## The path
#
# Fits from complete pooling down to separate domains: which domain leaves the general trait when? What leaves first has the
# strongest reason to.

# %%
path = mtlirt.lambda_path(responses)
print(path.table[["lam", "lam_ratio", "n_fused", "loss", "penalty"]].round(3).to_string(index=False))
path.plot()

# %% [markdown]
# Toward `lam = 0` every domain looks odd. Part of that is real, and part is error: a trait measured by 40 items points somewhat
# astray, and errors point in all directions. The sines at 0 are therefore too large, and the path alone cannot say where to stop.
#
# ## Cross-validation
#
# Five times, a fifth of the answers is held out and predicted from the rest. The loss is the mean negative log-likelihood of an
# answer, averaged within domains first, so that large domains do not decide alone.

# %%
cv = mtlirt.cv_mtl(responses)
print(cv)
cv.plot()

# %% [markdown]
# Read the curve in this order.
#
# 1. **Is either end the best?** Then the answer is "completely" or "not at all", and there is nothing to tune. Both ends are always
#    on the curve.
# 2. **How much would the ends cost?** `excess` is a loss less the smallest, fold by fold; `excess_se` is the standard error of that
#    difference, which is far smaller than the standard error `se` of the loss itself, because the folds share their difficulty.
# 3. **How flat is the curve near the minimum?** Where neighbours lie within two `excess_se` the data hardly tell them apart.

# %%
curve = cv.table
flat = curve[curve["excess"] <= 2 * curve["excess_se"]]
low, high = flat["lam_ratio"].min(), flat["lam_ratio"].max()
print(f"from lam/lam_max = {low:.2f} to {high:.2f} the data hardly tell values apart")

# %% [markdown]
# `lam_min` is the minimum. `lam_1se` is the most pooling within one standard error `se` of it, the glmnet habit; it buys simplicity,
# not accuracy. Where pooling too much is the worry, `lam_min` is the better choice; `cv.fit` and `fit_mtl(responses)` take it.

# %%
fits = {
    "lam_min": cv.fit,
    "lam_1se": cv.path.at(cv.lam_1se),
    "complete": cv.path.at(math.inf),
    "separate": cv.path.at(0.0),
}
for name, fit in fits.items():
    errors = np.sqrt(((fit.theta - simulation.truth.theta) ** 2).mean())  # root mean square over models, by domain
    print(f"{name:9s} lam/lam_max {fit.lam_ratio:5.2f}: mean error of the domain traits {errors.mean():.3f}")

# %% [markdown]
# Here the truth is known, so the errors of the traits themselves can be compared. On real answers they cannot, and the held-out loss
# stands in for them.
#
# ## Who gains?
#
# The choice is one number for all domains, but its gain is not the same for all: small domains gain most against separate fits, odd
# ones most against complete pooling.

# %%
print(cv.per_domain.round(4).to_string(index=False))

# %% [markdown]
# ## Folds over cells, or over items?
#
# By default a fold holds out answers (cells): every model and every item stays in every fold. `scheme="items"` holds out whole items
# instead and asks how well the traits carry over to items never seen, which is the question when the items stand for many others.
# Where the two agree, the choice does not hang on it.

# %%
over_items = mtlirt.cv_mtl(responses, scheme="items")
print(f"lam/lam_max: cells {cv.fit.lam_ratio:.2f}, items {over_items.fit.lam_ratio:.2f}")

# %% [markdown]
# ## Other seeds
#
# Folds are drawn at random. If another seed moves the choice to a neighbour on the grid, that is no cause for worry; if it jumps
# between the ends, the data say little, and that should be reported.

# %%
ratios = [mtlirt.cv_mtl(responses, seed=seed).fit.lam_ratio for seed in (1, 2)]
print("lam/lam_max with two other seeds:", ", ".join(f"{r:.2f}" for r in ratios))

# %% [markdown]
# ## What to report
#
# The number of models, items and answers; `lam / lam_max`; the held-out loss with the excess of both ends and its standard error;
# the number of folds and the seed; the sines and rank correlations. `print(cv)` and `print(cv.fit.summary())` have all of it.
