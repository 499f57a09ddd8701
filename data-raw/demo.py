"""Makes the bundled demo answers, mtlirt/datasets/demo.parquet. Run: python data-raw/demo.py

120 invented models answer 260 items in 6 domains. Five domains lie at sines of .05 to .25 from a common trait; "chess"
is odd, at .8. Slopes U(.4, 1.8), some items flat (slope 0); 4 % of the answers are missing at random, one model did not
take "coding" at all. Source: this script. Licence: that of the package.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

SEED = 20261130
SIZES = {"reading": 60, "mathematics": 50, "law": 40, "coding": 40, "biology": 30, "chess": 40}
SINES = {"reading": 0.05, "mathematics": 0.25, "law": 0.12, "coding": 0.22, "biology": 0.10, "chess": 0.80}
FAMILIES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir")
BILLIONS = (1, 2, 3, 7, 8, 9, 12, 13, 14, 20, 27, 32, 34, 40, 65, 70, 72, 110, 141, 180)
FLAT, MISSING = 0.08, 0.04
OUT = Path(__file__).parents[1] / "mtlirt" / "datasets" / "demo.parquet"


def main() -> None:
    rng = np.random.default_rng(SEED)
    size = np.tile(BILLIONS, len(FAMILIES))
    family = np.repeat(FAMILIES, len(BILLIONS))
    models = [f"{f}-{s}B" for f, s in zip(family, size, strict=True)]
    centre = standard(0.9 * standard(np.log(size)) + 0.6 * rng.normal(size=len(models)))
    rows = []
    for domain, n in SIZES.items():
        own = rng.normal(size=len(models))
        own = standard(own - centre * (own @ centre) / len(models))
        theta = np.sqrt(1 - SINES[domain] ** 2) * centre + SINES[domain] * own
        a = rng.uniform(0.4, 1.8, n) * (rng.random(n) >= FLAT)
        right = rng.random((len(models), n)) < expit(np.multiply.outer(theta, a) + rng.uniform(-1.5, 1.5, n))
        kept = rng.random(right.shape) >= MISSING
        if domain == "coding":
            kept[models.index("Elm-1B")] = False
        for i, j in zip(*np.nonzero(kept), strict=True):
            rows.append((models[i], domain, f"{domain}-{j + 1:02d}", int(right[i, j])))
    table = pd.DataFrame(rows, columns=["model", "domain", "item", "score"]).astype({"score": "int8"})
    order = table["model"].map({m: i for i, m in enumerate(models)}).sort_values(kind="stable").index
    table = table.loc[order].reset_index(drop=True)
    table.to_parquet(OUT, compression="zstd", index=False)
    print(f"{OUT.name}: {len(table):,} answers, {OUT.stat().st_size / 1024:.0f} KiB")


def standard(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / x.std()


if __name__ == "__main__":
    main()
