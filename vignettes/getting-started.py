# %% [markdown]
# # Getting started
#
# You hold the item-level answers of a number of language models on several domains. This vignette goes from the table to a
# verdict: one score per domain, one general score, and which domain is odd. It runs as a script or as a notebook.

# %%
import math

import mtlirt

# %% [markdown]
# ## Read the answers
#
# `mtlirt.read_responses("answers.csv")` reads your own table. Here are the bundled ones, simulated by `data-raw/demo.py`: 120
# invented models, 260 items in 6 domains.

# %%
responses = mtlirt.datasets.demo()
print(responses.summary())

# %% [markdown]
# The summary says what a fit cannot repair: how much is missing, how many items everybody answers alike, and that one model
# did not take one of the domains. All of that is legal.
#
# ## How much should the domains borrow?
#
# The penalty weight `lam` decides. At 0 every domain is fitted alone; from the largest fusion threshold upward all domains share
# one trait. Cross-validation holds out a fifth of the answers at a time and asks which `lam` predicts them best.

# %%
cv = mtlirt.cv_mtl(responses)
print(cv)

# %% [markdown]
# Both ends are on the curve, so the answer may be "completely" (`lam` = infinity) or "not at all" (0). Here it is neither: complete
# pooling and separate domains both predict worse, by many standard errors of the paired differences (`excess`, `excess_se`).
# `fit_mtl(responses)` alone does the same and returns the fit; `cv.fit` is that fit.

# %%
fit = cv.fit
print(fit.summary())

# %% [markdown]
# ## Read the summary
#
# First see how it ended: `Converged` means that the solver's stopping rule held. Then the verdict. A domain's *sine* is the sine
# of the angle between its trait and the general trait, both as vectors over the models; its square is the share of the domain
# trait's variance that the general trait does not carry. A sine of .1 is 1 %, of .3 is 9 %, of .8 is 64 %.

# %%
table = fit.heterogeneity()
print(table.round(3))
odd = table.iloc[0]
assert odd["domain"] == "chess"

# %% [markdown]
# Chess is the odd one. Most of what separates the models there is not what separates them elsewhere, so a general score says
# little about chess, and chess should not be averaged into one. The `rho` column says the same of ranks: the ranking by chess
# agrees with the general ranking far less than the others do.
#
# Is that the penalty's doing? `cv.path` holds the fits of all answers at every `lam`, from complete pooling to separate domains.

# %%
sines = cv.path.sines
for lam in (math.inf, fit.lam, 0.0):
    row = sines.loc[lam]
    print(f"lam = {lam:6.2f}: chess {row['chess']:.2f}, the other five {row.drop('chess').mean():.2f} on average")
print(cv.path.leaves.round(2))

# %% [markdown]
# Separate fits make every domain look odd, because 30 to 60 items measure a trait with error and error points in its own
# direction. The penalty takes that away from the five, and leaves chess most of its own.
#
# Who gains by borrowing? A gain is a smaller held-out loss at the chosen `lam` than with separate fits, or with complete pooling:

# %%
print(cv.per_domain.round(4).to_string(index=False))

# %% [markdown]
# All gain against separate fits, chess least; against complete pooling it is chess that gains. `mtlirt.compare_pooling(responses)`
# says what each regime would have done to the ranking.
#
# ## Scores
#
# One row per model. Traits have mean 0 and mean square 1 over the models; the mean score and its rank stand beside them. Models
# without any answer in a domain are named in `borrowed`: their trait there comes from the other domains.

# %%
scores = fit.scores()
print(scores.sort_values("general_rank").head(5).round(2).to_string(index=False))
print(scores[scores["borrowed"] != ""].round(2).to_string(index=False))

# %% [markdown]
# On the scale of expected shares right, models that answered different items can be compared:

# %%
print(fit.scores("expected").head(3).round(3).to_string(index=False))

# %% [markdown]
# ## Items
#
# A slope `a` of 0 means that the item says nothing about the trait, or that weaker models get it right more often than stronger
# ones: with `a >= 0` such an item stops at 0. Look at these before you trust a benchmark.

# %%
items = fit.items
print(items[items["flag"] == "slope 0"][["domain", "item", "d", "mean_score"]].round(2).to_string(index=False))

# %% [markdown]
# ## Keep the fit, score new models
#
# A saved fit scores models that were not in it, from some or all of the items.

# %%
newcomer = responses.subset(models=["Fir-32B"], domains=["law", "biology"])
print(fit.score(newcomer).round(2).to_string(index=False))
