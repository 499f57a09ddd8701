"""One domain against other Python packages. Run: python -m benchmarks.single --others PYTHON

PYTHON is the interpreter of an environment of its own with `pip install mirt girth`. Each fit is a process; seconds of
the call alone and of the whole process, medians of three. The log-likelihood is that of the joint model: the package's
item parameters, and each model's trait at its maximum within [-6, 6], so that packages which integrate the traits out
are not held to traits they did not report.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks.measure import machine

SIZES = ((100, 75), (1000, 1000))
RUNS, LIMIT = 3, 100
OURS, OTHERS = ("mtlirt",), ("mirt", "girth", "girth_jml")


def answers(n: int, j: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta, a, d = rng.normal(size=n), rng.uniform(0.5, 1.5, j), rng.uniform(-1, 1, j)
    return (rng.random((n, j)) < expit(np.multiply.outer(theta, a) + d)).astype(np.int64)


def log_likelihood(y: np.ndarray, a: np.ndarray, d: np.ndarray) -> float:
    """Joint log-likelihood with every trait at its maximum, by bisection on the score (it is monotone)."""
    low, high = np.full(len(y), -6.0), np.full(len(y), 6.0)
    for _ in range(60):
        theta = 0.5 * (low + high)
        rising = (y - expit(np.multiply.outer(theta, a) + d)) @ a > 0
        low, high = np.where(rising, theta, low), np.where(rising, high, theta)
    z = np.multiply.outer(0.5 * (low + high), a) + d
    return float((y * z - np.logaddexp(0, z)).sum())


def run(python: str, package: str, data: Path, threads: int) -> tuple[float, float, dict] | None:
    out = data.with_suffix(".json")
    script = Path(__file__).with_name("contenders.py")
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    start = time.perf_counter()
    try:
        subprocess.run(
            [python, script, package, data, out], check=True, env=environment, timeout=LIMIT, capture_output=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"  {package}: {type(error).__name__}")
        return None
    whole = time.perf_counter() - start
    result = json.loads(out.read_text())
    return result["seconds"], whole, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", required=True, help="python of the other packages' environment")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(machine(), f"{options.threads} threads", sep=", ")
    for n, j in SIZES:
        y = answers(n, j)
        print(f"{n} x {j}")
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "answers.npy"
            np.save(data, y)
            for package in (*OURS, *OTHERS):
                if package == "girth_jml" and n > 100:
                    continue
                python = sys.executable if package in OURS else options.others
                done: list[tuple[float, float, dict]] = []
                while len(done) < RUNS and (one := run(python, package, data, options.threads)) is not None:
                    done.append(one)
                if len(done) < RUNS:
                    continue
                call, whole = (statistics.median(x[k] for x in done) for k in (0, 1))
                fit = done[0][2]
                likelihood = log_likelihood(y, np.array(fit["a"]), np.array(fit["d"]))
                print(
                    f"  {package:10s} call {call:7.3f} s   process {whole:7.2f} s   log-likelihood {likelihood:12.2f}"
                )


if __name__ == "__main__":
    main()
