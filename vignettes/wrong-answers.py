# %% [markdown]
# # What wrong answers say
#
# A wrong answer is scored 0, whichever it was. But a model that falls for the plausible distractor is not the model that falls for
# the silly one. Nominal response models give every option its own slope and intercept. This vignette asks of two sets of real
# answers what that is worth: LawBench (51 models, 1,500 items with four or five options in 3 domains; open-compass, Apache-2.0) and
# MMLU-Pro (29 models, 12,032 items with up to ten options in 14 subjects; TIGER-AI-Lab, Apache-2.0).
#
# The numbers in the text are those of all answers. With the environment variable `VIGNETTE_MODELS` set a part of them runs in
# seconds.

# %%
import os
import sys
from pathlib import Path

import pandas as pd

import mtlirt

DATA = Path(os.environ.get("MTLIRT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
if not DATA.is_dir():
    print(f"skipped: the answers are not there ({DATA})")
    sys.exit()
SMALL = "VIGNETTE_MODELS" in os.environ

# %% [markdown]
# ## Read options and keys
#
# LawBench comes as a wide table of letters, `+` where a model named several options and `-` where none could be read: 61 % of the
# cells. A long table with the columns option, key and n_options holds what option models need; the score stays what it was.

# %%
letters = pd.read_parquet(DATA / "lawbench_options_wide.parquet")
items = pd.read_csv(DATA / "lawbench_items.csv").rename(columns={"answer": "key"})
if SMALL:
    letters = letters.iloc[::25]
long = letters.melt("item", var_name="model", value_name="option")
long = long.merge(items[["item", "domain", "key", "n_options"]], on="item")
long["score"] = (long["option"] == long["key"]).astype(int)
lawbench = mtlirt.Responses.from_long(long, option="option", key="key", n_options="n_options")
print(lawbench)

# %%
fit = mtlirt.fit_nrm(lawbench)
print(fit.summary())

# %% [markdown]
# The notes count what an option model cannot use. Two models never named a single option and are left out; so are answers
# without one, which right-or-wrong scoring takes for wrong.
#
# ## How much do distractors add?
#
# The Fisher information about a model's trait splits exactly into what right or wrong tells and what the choice among wrong options
# adds.

# %%
print(fit.information_gain().round(2).to_string(index=False))

# %% [markdown]
# On LawBench the identity of the wrong option carries 1.4 to 1.7 times as much information again as correctness. Part of that is
# fitted noise, as the next section shows; with a ridge of .3 the gain is 1.57 over all items, where .04 gives 1.60.
#
# An *informative distractor* is a wrong option that is the most probable answer somewhere in the range of the fitted traits:

# %%
found = fit.informative_distractors()
print((found.groupby("domain").size() / fit.items.groupby("domain").size()).round(2))

# %% [markdown]
# ## Does it predict?
#
# Information is a model's claim. Held-out answers check it: five folds over cells, each model fitted to the rest. In the binary
# channel a model is judged by its probability of the key, in the option channel by that of the chosen option; the 2PL spreads its
# probability of a wrong answer over the wrong options as the training answers did.

# %%
folds = 2 if SMALL else 5
weak = mtlirt.compare_channels(lawbench, models=["nrm"], folds=folds).assign(model="nrm, ridge .04")
strong = mtlirt.compare_channels(lawbench, models=["2pl", "nrm", "llm-nrm"], ridge=1.0, folds=folds)
table = pd.concat([weak, strong])
print(table[["model", "binary_log_loss", "option_log_loss", "option_accuracy"]].round(3).to_string(index=False))

# %% [markdown]
# | LawBench | binary log-loss | option log-loss | option accuracy |
# |---|---|---|---|
# | 2PL | .627 | 1.426 | .412 |
# | NRM, ridge .04 | .665 | 1.622 | .457 |
# | NRM, ridge 1 | .562 | 1.292 | .453 |
# | LLM-NRM, ridge 1 | .499 | 1.097 | .549 |
#
# The ridge decides. Six to eight parameters an item from some twenty answers each are too many for the weak default: it hits the chosen
# option more often than the 2PL and is still too sure of itself. With a ridge of 1 the NRM predicts better in *both* channels: the
# wrong options help to predict right and wrong. Standard deviations over folds are .004 to .02, .006 to .01 and .002 to .008.
#
# MMLU-Pro tells the same with fewer models and more options (a line takes up to a minute):
#
# | MMLU-Pro | binary log-loss | option log-loss | option accuracy |
# |---|---|---|---|
# | 2PL | .483 | 1.439 | .547 |
# | NRM, ridge .04 | .522 | 1.641 | .537 |
# | NRM, ridge .3 | .482 | 1.431 | .543 |
# | NRM, ridge 1 | .485 | 1.405 | .546 |
# | LLM-NRM, ridge 1 | .484 | 1.389 | .548 |
#
# Here correctness is predicted equally well and options better. With 29 models one cannot expect more: choose the ridge by
# `compare_channels`, and raise it where models are few.
#
# ## Who likes which letter?
#
# The LLM-NRM's large step on LawBench is positional bias: some models answer A whatever the options say. From chosen options alone
# it estimates just that component; sharpness and the fallback gate need probabilities. Switched on here, a single model's sharpness
# grows until the items fit its answers (log-loss 1.34 and more instead of 1.12 with positions alone, three folds).

# %%
bias = mtlirt.fit_llm_nrm(lawbench, ridge=1.0).positional_bias()
print(bias.reindex(bias["delta"].abs().sort_values(ascending=False).index).head(4).round(2).to_string(index=False))

# %% [markdown]
# Three logits for A (mpt-7b, llama-7b, hanfei, alpaca) mean twenty to one against another option that the item makes equally
# attractive. A bank fitted with these preferences in the model keeps them out of the items' parameters and the models' traits.
#
# ## Which subjects have telling distractors?

# %%
pro = mtlirt.read_responses(DATA / "mmlu_pro.parquet")
if SMALL:
    pro = pro.subset(items=(pro.items.groupby("domain").cumcount() < 10).to_numpy())
pro_fit = mtlirt.fit_nrm(pro, ridge=1.0)
print(pro_fit.information_gain().round(2).to_string(index=False))
print("\n".join(pro_fit.data.notes))

# %% [markdown]
# With a ridge of 1 the wrong options add .84 of what right or wrong tells, from .53 in biology to 1.40 in law.
#
# ## Scores from wrong answers alone
#
# The same bank scores models from all they chose, from right or wrong, or from their wrong answers only:

# %%
for use in ("all", "binary", "incorrect"):
    scores = mtlirt.score_nrm(fit, lawbench.subset(models=list(fit.models)), use=use)
    rho = scores["theta"].corr(fit.general.reset_index(drop=True), method="spearman")
    print(f"{use:10} Spearman with the fitted trait {rho:.2f}")

# %% [markdown]
# These models were in the fit, so the agreement is flattering; the point is that wrong answers alone rank them as well.
# Where probabilities of all options are known, `channel="soft"` uses them, and `mtlirt.fit_llm_nrm` separates a model's sharpness,
# its liking for positions and its guessing from its ability.
