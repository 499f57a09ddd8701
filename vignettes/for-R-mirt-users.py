# %% [markdown]
# # For users of R's mirt
#
# You know `mirt(data, 1, "2PL")`, `coef`, `fscores` and `plot(mod, type = "trace")`. This vignette says what they are called here, and
# where the two packages mean different things by the same word.
#
# | in R | here |
# |---|---|
# | `mirt(data, 1, itemtype = "2PL")` | `fit_mtl(responses)` with one domain |
# | one `mirt` per subtest | `fit_mtl(responses, lam=0)` |
# | one `mirt` over all items | `fit_mtl(responses, lam=math.inf)`, but each domain has the same weight, whatever its number of items |
# | `mirt(data, mirt.model("F1 = 1-20 ... COV = F1*F2"))`, correlated factors | `fit_mtl(responses)`: traits tied by a penalty, chosen by cross-validation |
# | `mirt(data, 1, itemtype = "nominal")` | `fit_nrm(responses)` |
# | `coef(mod, simplify = TRUE)`, `coef(mod, IRTpars = TRUE)` | `fit.coef()`, `fit.coef(irt=True)` |
# | `fscores(mod, method = "ML")`, `fscores(mod, response.pattern = new)` | `fit.scores()`, `fit.score(new)`; mirt's default, EAP, shrinks |
# | `expected.test(mod, Theta)` | `fit.scores("expected")`, `fit.expected(theta)` |
# | `plot(mod, type = "trace")`, `plot(mod, type = "info")` | `fit.plot("trace")`, `fit.plot("information")` |
# | `probtrace` | `fit.predict()` at the models' own traits; for options `fit.curves()` at any |
# | `testinfo`, `iteminfo` | `fit.trait_information` at the models' own traits; for options `fit.information()` at any |
# | `extract.mirt(mod, "logLik")`, `"converged"` | `fit.log_likelihood`, `fit.status` |
# | `simdata(a, d, N, "2PL")` | `simulate(design, seed)`, `simulate(fit, seed)` |
# | `saveRDS(mod)` | `fit.save("folder")`, `mtlirt.load("folder")`; no code is stored |

# %%
import numpy as np
import pandas as pd

import mtlirt

# %% [markdown]
# ## One domain
#
# `mirt` wants a wide table of persons by items; so does `Responses.from_wide`. What are persons there are models here.

# %%
rng = np.random.default_rng(3)
N, J = 300, 60
theta = rng.normal(size=N)
a, d = rng.uniform(0.5, 2.0, J), rng.normal(size=J)
right = rng.random((N, J)) < 1 / (1 + np.exp(-(np.outer(theta, a) + d)))
table = pd.DataFrame(right.astype(int), index=[f"model{i}" for i in range(N)], columns=[f"item{j}" for j in range(J)])
responses = mtlirt.Responses.from_wide(table, domains="test")
fit = mtlirt.fit_mtl(responses)
print(fit.summary())

# %% [markdown]
# `coef` has slopes `a` and intercepts `d` of logit P = a theta + d, as mirt's does, and difficulties b = -d / a beside them; `irt=True`
# leaves out `d`.

# %%
print(fit.coef().head(3).round(2).to_string(index=False))
print(fit.coef(irt=True).head(3).round(2).to_string(index=False))

# %% [markdown]
# ## What is estimated differently
#
# mirt maximises the *marginal* likelihood: traits are integrated out over a normal distribution, and afterwards predicted for each
# person. Here items and traits maximise the *joint* likelihood, under constraints. With few persons and few items that is the worse
# choice, since its slopes come out too large; the more items a domain has, the less. In return neither a distribution nor an
# integral is needed: language models are no random sample of anything.

# %%
coefficients = fit.coef()
spread = theta.std()  # fitted traits have mean square 1, so slopes are this much larger
ratio = coefficients["a"].mean() / (a * spread).mean()
print(f"slopes: correlation with the truth {np.corrcoef(coefficients['a'], a)[0, 1]:.3f}, ratio of means {ratio:.3f}")
print(f"traits: correlation with the truth {np.corrcoef(fit.general, theta)[0, 1]:.3f}")

# %% [markdown]
# Four more differences that show in numbers:
#
# * **Scale.** mirt's traits have a normal distribution of mean 0 and variance 1 in the population. Here the traits of the models in the
#   table have mean 0 and mean square 1 exactly. Slopes are on the scale that goes with that.
# * **Bounds.** |theta| <= C, 0 <= a <= C, |d| <= C with C = 4. A model with all items right has a trait at the bound, not at infinity, and
#   an item that stronger models get wrong more often has slope 0. `fit.items["at_bound"]` says which items, and
#   `fit.theta.abs() == 4` which traits.
# * **Signs.** Slopes are never negative, so an inverted item shows as a flat one. Look at it; do not reverse it.
# * **Standard errors.** `fit.scores(se=True)` has 1 / sqrt(information) with the items held fixed, like `fscores(full.scores.SE = TRUE)`
#   for ML scores. There are none for items yet.
#
# ## Several domains
#
# In mirt, several subtests are either separate calibrations, or a multidimensional model with correlated factors, whose correlations
# are estimated. Here every domain has its own trait, and a general trait is drawn into the middle of them by a penalty on the angles.
# Domains that do not gain enough by leaving it are *equal* to the general trait; that is the penalty's doing, no test. What a
# correlation matrix of factors is there is a list of sines here.

# %%
demo = mtlirt.datasets.demo()
several = mtlirt.fit_mtl(demo)
print(several.heterogeneity().round(3).to_string(index=False))

# %% [markdown]
# A bifactor model asks a related question, but with orthogonal specific factors for all domains; here a domain's trait is one vector
# that may lean away from the general one, or not.
#
# ## Nominal responses
#
# `fit_nrm` fits Bock's model, which mirt calls "nominal", by joint likelihood as above, with a small ridge on slopes and intercepts (a
# normal prior of variance 25), and from the probabilities of the options where the table has them (`channel="hard"` takes the chosen
# option alone). The tables must have the chosen option, or the probabilities, and the key. Slopes and intercepts
# of an item's options sum to zero, where mirt fixes the first and the last scoring coefficient; differences between options are the same.
# `fit.curves(domain, item)` has the trace lines, `fit.information()` splits the information into right or wrong and which wrong option.

# %%
simulated = mtlirt.simulate_llm_nrm(mtlirt.LLMNRMDesign(N=60, J=40), seed=1)
nominal = mtlirt.fit_nrm(simulated.responses)
first = nominal.items.iloc[0]
print(nominal.curves(first["domain"], first["item"], theta=np.array([-2.0, 0.0, 2.0])).round(2).to_string(index=False))
