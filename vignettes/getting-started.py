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
# `mtlirt.read_responses("answers.csv")` reads your own table. Here are the bundled ones, simulated by `data-raw/demo.py`: 60
# invented models, 240 items in 6 domains.

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
# one trait.

# %%
thresholds = mtlirt.fusion_thresholds(responses)
print(thresholds.round(2))

# %% [markdown]
# A value of a fifth of the largest threshold lets the domains borrow without forcing them together.

# %%
lam = 0.2 * thresholds.max()
fit = mtlirt.fit_mtl(responses, lam)
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
# Is that the penalty's doing? Compare with the ends: separate fits, where nothing is borrowed, and complete pooling.

# %%
separate = mtlirt.fit_mtl(responses, 0)
pooled = mtlirt.fit_mtl(responses, math.inf)
for name, other in (("separate", separate), (f"lam = {lam:.2f}", fit), ("pooled", pooled)):
    sines = other.heterogeneity().set_index("domain")["sine"]
    print(f"{name:12s} chess {sines['chess']:.2f}, the other five {sines.drop('chess').mean():.2f} on average")

# %% [markdown]
# Separate fits make every domain look odd, because 25 to 60 items measure a trait with error and error points in its own
# direction. The penalty takes most of that away from the five and leaves chess where it is.
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
