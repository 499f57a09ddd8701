"""One 2PL fit by one package, timed as a call: python contenders.py PACKAGE ANSWERS.npy OUT.json

Runs under the interpreter of the package's own environment, so it imports nothing but numpy and that package.
"""

import json
import sys
import time

import numpy as np


def by_mtlirt(y):
    import pandas as pd

    from mtlirt import Responses, fit_mtl

    frame = pd.DataFrame(y, index=[f"m{i}" for i in range(len(y))], columns=[f"i{j}" for j in range(y.shape[1])])
    responses = Responses.from_wide(frame, domains=None)
    start = time.perf_counter()
    fit = fit_mtl(responses, 0)
    seconds = time.perf_counter() - start
    items = fit.items.set_index("item").loc[list(frame)]
    return seconds, items["a"].to_numpy(), items["d"].to_numpy()


def by_mirt(y):
    import mirt

    start = time.perf_counter()
    result = mirt.fit_mirt(y, model="2PL", compute_standard_errors=False)
    seconds = time.perf_counter() - start
    table = result.model.parameters
    a, b = np.ravel(table["discrimination"]), np.ravel(table["difficulty"])
    return seconds, a, -a * b


def by_girth(y, name="twopl_mml"):
    import girth

    start = time.perf_counter()
    result = getattr(girth, name)(np.ascontiguousarray(y.T))
    seconds = time.perf_counter() - start
    a, b = result["Discrimination"], result["Difficulty"]
    return seconds, a, -a * b


def by_girth_jml(y):
    return by_girth(y, "twopl_jml")


if __name__ == "__main__":
    package, answers, out = sys.argv[1:]
    seconds, a, d = globals()[f"by_{package}"](np.load(answers))
    with open(out, "w") as file:
        json.dump({"seconds": seconds, "a": list(map(float, a)), "d": list(map(float, d))}, file)
