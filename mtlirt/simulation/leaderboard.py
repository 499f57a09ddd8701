"""Answers with the size and the flaws of a public leaderboard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt._arguments import require
from mtlirt.core.angle import line_median
from mtlirt.core.projection import project
from mtlirt.simulation.draw import Truth

_BOX = 4.0
_WITHIN_FAMILY = 0.5  # standard deviation of models of a family, that of families being 1
# MMLU without "miscellaneous": items of its test split (Hendrycks et al. 2021), sine to the general trait (R-MTL,
# table 1)
_SUBJECTS = {
    "abstract algebra": (100, 0.535),
    "anatomy": (135, 0.108),
    "astronomy": (152, 0.092),
    "business ethics": (100, 0.114),
    "clinical knowledge": (265, 0.001),
    "college biology": (144, 0.056),
    "college chemistry": (100, 0.18),
    "college computer science": (100, 0.17),
    "college mathematics": (100, 0.749),
    "college medicine": (173, 0.049),
    "college physics": (102, 0.321),
    "computer security": (100, 0.115),
    "conceptual physics": (235, 0.1),
    "econometrics": (114, 0.191),
    "electrical engineering": (145, 0.168),
    "elementary mathematics": (378, 0.361),
    "formal logic": (126, 0.252),
    "global facts": (100, 0.572),
    "high school biology": (310, 0.088),
    "high school chemistry": (203, 0.104),
    "high school computer science": (100, 0.091),
    "high school european history": (165, 0.133),
    "high school geography": (198, 0.035),
    "high school government and politics": (193, 0.045),
    "high school macroeconomics": (390, 0.037),
    "high school mathematics": (270, 0.38),
    "high school microeconomics": (238, 0.053),
    "high school physics": (151, 0.426),
    "high school psychology": (545, 0.034),
    "high school statistics": (216, 0.281),
    "high school us history": (204, 0.108),
    "high school world history": (237, 0.058),
    "human aging": (223, 0.092),
    "human sexuality": (131, 0.075),
    "international law": (121, 0.12),
    "jurisprudence": (108, 0.062),
    "logical fallacies": (163, 0.06),
    "machine learning": (112, 0.319),
    "management": (103, 0.102),
    "marketing": (234, 0.111),
    "medical genetics": (100, 0.082),
    "moral disputes": (346, 0.016),
    "moral scenarios": (895, 0.562),
    "nutrition": (306, 0.012),
    "philosophy": (311, 0.031),
    "prehistory": (324, 0.001),
    "professional accounting": (282, 0.062),
    "professional law": (1534, 0.08),
    "professional medicine": (272, 0.135),
    "professional psychology": (612, 0),
    "public relations": (110, 0.142),
    "security studies": (245, 0.12),
    "sociology": (201, 0.149),
    "us foreign policy": (100, 0.096),
    "virology": (166, 0.109),
    "world religions": (171, 0.128),
}


@dataclass(frozen=True, kw_only=True)
class LeaderboardDesign:
    """A leaderboard like that of the R-MTL paper's section 6: MMLU's 56 subjects, 13,259 items, thousands of models.

    Models belong to families of similar ability, and some are copies of others under another name. Subjects lie at the
    sines to the general trait that the paper reports, from 0 to .75 ("college mathematics"). Items: slopes U(.4, 2) and
    intercepts N(.7, 1.2); `dead` ones have slope 0 and are hard (about 17 % right, as in the paper); `inverted` ones
    have slopes U(-1, -.3), so that better models fail more often.

    Parameters
    ----------
    models : number of models, at least 60.
    families : number of families, at most the number of models.
    clones : share of models that repeat another model's answers, in [0, .5].
    dead, inverted : shares of the items, together below 1.
    missing : share of the cells that are left out, completely at random, in [0, 1).

    Raises
    ------
    InputError for values outside these ranges.

    >>> LeaderboardDesign(models=100).models
    100
    """

    models: int = 4272
    families: int = 120
    clones: float = 0.03
    dead: float = 0.2
    inverted: float = 0.01
    missing: float = 0.0

    def __post_init__(self) -> None:
        checks = (
            (self.models >= len(_SUBJECTS) + 4, f"models must be {len(_SUBJECTS) + 4} or more, not {self.models}"),
            (self.families >= 1, f"families must be 1 or more, not {self.families}"),
            (0 <= self.clones <= 0.5, f"clones must lie in [0, .5], not {self.clones}"),
            (
                min(self.dead, self.inverted) >= 0 and self.dead + self.inverted < 1,
                f"dead and inverted must be shares below 1 together, not {self.dead} and {self.inverted}",
            ),
            (0 <= self.missing < 1, f"missing must lie in [0, 1), not {self.missing}"),
        )
        require("LeaderboardDesign", checks)

    def truth(self, rng: np.random.Generator) -> Truth:
        """Traits and items. Models are named "fam001/m0001", ...; `model_info` has family and clone_of."""
        family = rng.integers(self.families, size=self.models)
        copies = self._copies(rng)
        family = family[copies]
        names = [f"fam{f + 1:03d}/m{i:04d}" for i, f in enumerate(family, start=1)]
        models = pd.Index(names, name="model")
        theta = self._traits(family, copies, rng)
        info = pd.DataFrame({"family": [f"fam{f + 1:03d}" for f in family]}, index=models)
        own = copies == np.arange(self.models)
        info["clone_of"] = pd.Series([None if o else names[c] for o, c in zip(own, copies, strict=True)], index=models)
        return Truth(
            pd.DataFrame(theta.T, index=models, columns=pd.Index(list(_SUBJECTS), name="domain")),
            pd.Series(line_median(theta).line, index=models, name="general"),
            self._items(rng),
            info,
            copies,
        )

    def _copies(self, rng: np.random.Generator) -> np.ndarray:
        """(N,) the model that each model repeats; originals repeat themselves."""
        copies = np.arange(self.models)
        clones = rng.choice(self.models, size=round(self.clones * self.models), replace=False)
        originals = np.setdiff1d(copies, clones)
        copies[clones] = rng.choice(originals, size=len(clones))
        return copies

    def _traits(self, family: np.ndarray, copies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(T, N) domain traits at the subjects' sines from a centre."""
        ability = rng.normal(size=self.families)[family] + _WITHIN_FAMILY * rng.normal(size=self.models)[copies]
        centre = project(ability, _BOX)
        theta = []
        for _, sine in _SUBJECTS.values():
            own = rng.normal(size=self.models)[copies]
            own -= own.mean()
            own -= centre * (own @ centre) / self.models
            own /= np.sqrt(np.square(own).mean())
            theta.append(project(np.sqrt(1 - sine**2) * centre + sine * own, _BOX))
        return np.array(theta)

    def _items(self, rng: np.random.Generator) -> pd.DataFrame:
        sizes = [n for n, _ in _SUBJECTS.values()]
        domain = np.repeat(list(_SUBJECTS), sizes)
        number = np.concatenate([np.arange(1, n + 1) for n in sizes])
        kind = rng.random(len(domain))
        dead, inverted = kind < self.dead, kind >= 1 - self.inverted
        a = np.select([dead, inverted], [0.0, rng.uniform(-1, -0.3, len(domain))], rng.uniform(0.4, 2, len(domain)))
        d = np.where(dead, rng.normal(-1.7, 0.6, len(domain)), rng.normal(0.7, 1.2, len(domain)))
        item = [f"{name}-{j:04d}" for name, j in zip(domain, number, strict=True)]
        return pd.DataFrame({"domain": domain, "item": item, "a": a, "d": d})
