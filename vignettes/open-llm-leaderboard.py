# %% [markdown]
# # How much should benchmarks borrow from one another?
#
# Two sets of real answers: six benchmarks of the Open LLM Leaderboard (1,000 language models, 1,133 items, complete; collected
# by metabench, CC BY-NC-SA 4.0) and MMLU-Pro (29 models, 12,032 items in 14 subjects, half a percent missing; TIGER-AI-Lab,
# Apache-2.0). The question for both: fit the domains together, apart, or how far apart?
#
# The numbers in the text are those of all answers. With the environment variable `VIGNETTE_MODELS` set to a number below 1,000
# a part of them runs in seconds.

# %%
import os
import sys
from pathlib import Path

import mtlirt

DATA = Path(os.environ.get("MTLIRT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
if not DATA.is_dir():
    print(f"skipped: the answers are not there ({DATA})")
    sys.exit()
MODELS = int(os.environ.get("VIGNETTE_MODELS", "1000"))
ITEMS_EACH, POINTS, HOW = (10**9, 15, {}) if MODELS >= 1000 else (15, 3, {"folds": 2, "lams": [5.0]})


def read(name):
    everything = mtlirt.read_responses(DATA / f"{name}.parquet")
    step = max(1, everything.n_models // MODELS)
    kept = everything.items.groupby("domain").cumcount() < ITEMS_EACH
    return everything.subset(models=list(everything.models[::step]), items=kept.to_numpy()).clean(min_answers=1)


# %% [markdown]
# ## Open LLM Leaderboard
#
# One call does it: five folds over cells, 17 values of `lam` from complete pooling to separate domains, and the path of all
# answers. It takes a minute on one core.

# %%
leaderboard = read("open_llm_leaderboard")
print(leaderboard)
cv = mtlirt.cv_mtl(leaderboard, **HOW)
print(cv)

# %% [markdown]
# The chosen `lam` is 14.9, or .064 of the largest fusion threshold, so it lies near the separate end. Its held-out log-loss per
# answer is .26445. Complete pooling costs .0200 more (standard error of the paired difference .0002): one trait for all six
# benchmarks is clearly wrong. Separate fits cost .00039 more (.00003): little, but fifteen standard errors. So the answer is
# "a little".
#
# Which benchmarks are odd? The sines along the path say at which `lam` each leaves the general trait and how far it goes:

# %%
print(cv.path.sines.round(2).to_string())

# %% [markdown]
# gsm8k leaves first, together with truthfulqa, and ends at a sine of .53 at the chosen `lam`; a sine of .53 means that 28 % of
# the variance of the gsm8k trait is its own. mmlu is stranger: it stays close to the general trait (.25) down to `lam` = 24.5 and
# then jumps to .71 between 24.5 and 14.9. Between the two the objective has two minima. Running the path from both ends finds the
# lower one at each `lam`: at 19.1 the fit reached from the separate end is lower (1572.63 against 1572.79), and has mmlu at .64.

# %%
both = mtlirt.lambda_path(leaderboard, n=POINTS, start="both")
print(
    both.table.assign(mmlu=both.sines["mmlu"].to_numpy())[["lam", "objective", "n_fused", "start", "mmlu"]].to_string()
)

# %% [markdown]
# Does the jump overfit? No: held-out answers get likelier across it, .26529 at 24.5, .26445 at 14.9.
#
# Domain by domain, against separate fits and against complete pooling (a gain is a smaller loss at the chosen `lam`):

# %%
print(cv.per_domain.round(4).to_string(index=False))

# %% [markdown]
# winogrande (.0013), hellaswag (.0009) and arc (.0005) gain by borrowing; gsm8k and mmlu, the odd ones, lose .0002 and .0003. They
# pay for the others' gain, because there is one `lam` for all. Against complete pooling everybody gains, gsm8k most (.058).
#
# ## What would another regime have changed?

# %%
comparison = mtlirt.compare_pooling(leaderboard, cv=cv)
print(comparison)
print(comparison.rank_correlation.round(3))

# %% [markdown]
# The mean score predicts every item of a benchmark alike, and loses .27 per answer by it. Rankings by the general trait agree more
# than the losses suggest: Spearman .992 between the chosen regime and complete pooling, .983 with the mean score; of the leading
# 20 they share 17 and 17. Single models move by up to two hundred ranks of a thousand against the mean score. Under complete
# pooling 42 items lose their slope, against 20: items that separate the models of their own benchmark and not those of the pool.
#
# ## MMLU-Pro
#
# Few models, many items, and some answers missing. Domains have 381 to 1,351 items, so each trait is well measured alone.

# %%
subjects = read("mmlu_pro")
print(subjects)
few = mtlirt.compare_pooling(subjects, **HOW)
print(few.cv)
print(few.per_domain.round(4).to_string(index=False))

# %% [markdown]
# Here `lam` = .359 is chosen, .17 of the largest threshold, with a log-loss of .45765. Complete pooling is .0052 worse (.0002),
# separate fits .0009 (.0002). Mathematics is the odd subject (sine .48), then chemistry (.33), physics (.26) and business (.24):
# the quantitative ones. Engineering gains most by borrowing (.0074), while for engineering complete pooling would be better still
# (.0031), as for computer science (.0016): a single `lam` is a compromise.
#
# A warning for small numbers of models: 29 points decide each angle, and with `C` = 4 one model on the box can carry 16/29 of a
# trait's squared length. The path's `max_abs_theta` shows when that happens; here it happens at `lam` = 0 alone.

# %%
print(few.cv.path.table[["lam", "n_fused", "max_abs_theta", "status"]].round(3).to_string(index=False))
