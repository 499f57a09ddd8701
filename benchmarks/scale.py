"""Leaderboard size: 4,272 models x 13,232 items in 56 domains. Run: python -m benchmarks.scale

Block to convergence, in seconds and processor seconds; seconds per Block sweep and per Adam step; Adam's time at 1,000
steps extrapolated, and the ratio. All figures come from one run.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.special import expit

import mtlirt
from benchmarks.measure import clock, machine, peak_gib
from mtlirt.core.projection import project
from mtlirt.data import Responses
from mtlirt.data.wide import from_blocks

MODELS, ITEMS, DOMAINS = 4272, 13232, 56
SMALLEST, LARGEST = 91, 1534  # MMLU's smallest and largest domains after the paper's preprocessing
FLAT = 0.2
BLOCK_SWEEPS, ADAM_STEPS, EXTRAPOLATED = 6, 6, 1000


def sizes(rng: np.random.Generator) -> np.ndarray:
    """Domain sizes between the smallest and the largest that add up to all items, skewed as MMLU's."""
    middle = rng.lognormal(0.0, 0.8, DOMAINS - 2)
    free = ITEMS - LARGEST - SMALLEST * (DOMAINS - 1)
    extra = np.floor(middle / middle.sum() * free).astype(int)
    extra[: free - extra.sum()] += 1
    return np.concatenate([[LARGEST], SMALLEST + extra, [SMALLEST]])


def leaderboard(seed: int) -> Responses:
    """a ~ U(0, 2), one in five near 0; d ~ U(-2, 2); domain traits at sines U(0, .5) from a normal centre."""
    rng = np.random.default_rng(seed)
    centre = project(rng.normal(size=MODELS), 4.0)
    blocks, names, n_items = [], [], sizes(rng)
    for t, n in enumerate(n_items):
        own = project(rng.normal(size=MODELS), 4.0)
        sine = rng.uniform(0, 0.5)
        theta = project(np.sqrt(1 - sine**2) * centre + sine * own, 4.0)
        a = rng.uniform(0, 2, n) * np.where(rng.random(n) < FLAT, 0.05, 1.0)
        p = expit(np.multiply.outer(theta, a) + rng.uniform(-2, 2, n))
        blocks.append((rng.random(p.shape) < p).astype(np.int8))
        names.append(f"d{t + 1:02d}")
    domain = np.repeat(names, n_items)
    items = pd.DataFrame({"item": [f"i{j:05d}" for j in range(ITEMS)], "domain": domain})
    models = pd.Index([f"m{i:04d}" for i in range(MODELS)], name="model", dtype=str)
    return from_blocks(models, items, tuple(names), tuple(blocks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lam", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(machine())
    responses = leaderboard(options.seed)
    print(responses)
    print(f"memory with the answers: {peak_gib():.2f} GiB")

    with clock() as block:
        fit = mtlirt.fit_mtl(responses, options.lam)
    ended = f"{fit.status.name}, objective {fit.objective:.3f}, {int(fit.fused.sum())} domains fused"
    print(f"Block, lam = {options.lam:g} ({fit.lam_ratio:.2f} lam_max): {ended}")
    print(
        f"  the whole call, pooled fit and exact objective included: {block.wall:.1f} s, {block.cpu:.1f} CPU s, "
        f"peak memory {peak_gib():.2f} GiB"
    )
    walls, cpus = [], []
    for sweeps in (1, 1 + BLOCK_SWEEPS):
        with clock() as part:
            solver = mtlirt.Block(max_sweeps=sweeps, tol=1e-15)
            mtlirt.fit_mtl(responses, 0.9 * options.lam, solver=solver, init=fit, on_fail="ignore")
        walls.append(part.wall)
        cpus.append(part.cpu)
    wall, cpu = ((x[1] - x[0]) / BLOCK_SWEEPS for x in (walls, cpus))
    print(f"  {len(fit.trace)} sweeps after the pooled fit, {wall:.2f} s or {cpu:.2f} CPU s a sweep")

    import torch

    threads = torch.get_num_threads()
    rows: list[float] = []
    for steps in (1, 1 + ADAM_STEPS):
        with clock() as adam:
            mtlirt.fit_mtl(responses, options.lam, solver=mtlirt.Adam(steps=steps), init=fit, on_fail="ignore")
        rows.append(adam.wall)
    step = (rows[1] - rows[0]) / ADAM_STEPS
    total = EXTRAPOLATED * step
    print(f"Adam, {threads} threads: {step:.2f} s a step, {EXTRAPOLATED} steps extrapolated to {total:.0f} s")
    print(f"ratio Adam / Block: {total / block.wall:.0f}")


if __name__ == "__main__":
    main()
