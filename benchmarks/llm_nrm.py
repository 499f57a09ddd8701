"""The LLM-NRM's solver against Adam. Run: python -m benchmarks.llm_nrm [--models 189 --items 31554]

At the size asked for: soft answers are drawn and fitted, then a few steps of padded Adam are timed in the same run and
extrapolated to the paper's 2,500. At 100 x 2,000 Adam takes all its steps, and the time is printed that the solver
needs to get below Adam's lowest loss. One thread everywhere; set OPENBLAS_NUM_THREADS=1.
"""

import argparse
import time

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks.measure import clock, machine, peak_gib
from mtlirt.core.llm_nrm import LLMObjective, LLMParameters
from mtlirt.core.options import OptionProblem
from mtlirt.core.problem import DomainAnswers
from mtlirt.simulation.llm_nrm import LLMNRMDesign, draw
from mtlirt.solvers.adam_options import AdamOptions
from mtlirt.solvers.llm_nrm import LLMSolver, standard_start

SMALL = (100, 2000)
PAPER_STEPS, TIMED_STEPS = 2500, 3


def drawn(n: int, j: int, seed: int = 1) -> tuple[LLMParameters, OptionProblem]:
    truth, groups = draw(LLMNRMDesign(N=n, J=j), np.random.default_rng(seed))
    right = np.empty((n, j))
    for group in groups:
        right[:, group.items] = group.target[np.arange(len(group.items)), group.key].T
    return truth, OptionProblem((DomainAnswers(right, None),), np.ones(1), np.ones(1), 4.0, tuple(groups), 0.04)


def solve(truth: LLMParameters, problem: OptionProblem) -> list[tuple[float, float]]:
    """Print how the solver does; CPU seconds and objective after each iteration."""
    path: list[tuple[float, float]] = []
    began = time.process_time()
    with clock() as timed:
        fit = LLMSolver().solve(
            problem,
            LLMObjective(),
            standard_start(problem),
            lambda step: path.append((time.process_time() - began, step["objective"])),
        )
    rank = spearmanr(fit.parameters.theta, truth.theta)[0]
    print(
        f"  solver  {timed.cpu:7.1f} CPU s {timed.wall:7.1f} s, {len(fit.trace)} iterations, {fit.status.name}, "
        f"loss {fit.loss:.2f}, Spearman of theta {rank:.4f}, peak {peak_gib():.2f} GiB"
    )
    return path


def seconds_to(path: list[tuple[float, float]], loss: float) -> str:
    """CPU seconds until the objective is at or below a loss."""
    reached = [cpu for cpu, objective in path if objective <= loss]
    return f"{reached[0]:.2f} CPU s" if reached else "never"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=189)
    parser.add_argument("--items", type=int, default=31554)
    parser.add_argument("--steps", type=int, default=PAPER_STEPS, help="Adam's steps at 100 x 2,000")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())

    print(f"{options.models} x {options.items}")
    with clock() as timed:
        truth, problem = drawn(options.models, options.items)
    print(f"  drawing {timed.cpu:7.1f} CPU s, peak {peak_gib():.2f} GiB")
    path = solve(truth, problem)
    for share in (1e-3, 1e-4, 1e-5):
        print(f"    within {share:g} of the final loss after {seconds_to(path, path[-1][1] * (1 + share))}")
    times: list[float] = []
    AdamOptions(steps=TIMED_STEPS, dtype="float32").solve(
        problem, LLMObjective(), standard_start(problem), lambda _: times.append(time.process_time())
    )
    step = (times[-1] - times[0]) / TIMED_STEPS
    print(
        f"  Adam, padded, float32: {step:.1f} CPU s a step, {step * PAPER_STEPS:.0f} for {PAPER_STEPS} (extrapolated)"
    )

    print(f"{SMALL[0]} x {SMALL[1]}")
    truth, problem = drawn(*SMALL)
    path = solve(truth, problem)
    with clock() as timed:
        adam = AdamOptions(steps=options.steps).solve(problem, LLMObjective(), standard_start(problem))
    rank = spearmanr(adam.parameters.theta, truth.theta)[0]
    print(
        f"  Adam    {timed.cpu:7.1f} CPU s for {options.steps} steps, lowest loss {adam.loss:.2f}, "
        f"Spearman of theta {rank:.4f}; the solver is there after {seconds_to(path, adam.loss)}"
    )


if __name__ == "__main__":
    main()
