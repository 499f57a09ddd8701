"""Cross-validation at leaderboard size: 5 folds x 17 lam and the path of all answers.

4,272 models x 13,232 items in 56 domains, complete answers (`benchmarks.scale`). The Adam reference for the same
analysis (86 fits of 1,000 steps) is extrapolated from a step on one fold's training answers, in the same run. Run:
python -m benchmarks.selection
"""

import argparse

import mtlirt
from benchmarks.measure import clock, machine, memory_of_all
from benchmarks.scale import leaderboard
from mtlirt.core.start import cold_start
from mtlirt.data.splits import make_split
from mtlirt.models.settings import Settings
from mtlirt.selection.folds import make_fold

ADAM_STEPS, EXTRAPOLATED, FITS = 4, 1000, 86


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(machine())
    responses = leaderboard(options.seed)
    print(responses)

    with memory_of_all() as peak, clock() as work, mtlirt.progress():
        cv = mtlirt.cv_mtl(responses, n_jobs=options.jobs)
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown()  # the processes' seconds count once they have ended
    print(cv)
    fits = len(cv.folds) + len(cv.path.fits)
    print(
        f"cross-validation, {options.jobs} processes: {work.wall:.0f} s, {work.cpu:.0f} CPU s for {fits} fits, "
        f"peak memory {peak[0]:.1f} GiB"
    )
    seconds = cv.folds["seconds"].sum()
    print(
        f"  {seconds:.0f} s of it in the folds' fits, {seconds / len(cv.folds):.1f} s a fit, "
        f"{cv.folds['sweeps'].mean():.1f} sweeps, {seconds / cv.folds['sweeps'].sum():.2f} s a sweep; "
        f"{cv.path.table['seconds'].sum():.0f} s in those of all answers"
    )

    how = Settings()
    fold = make_fold(how.problem(responses), make_split(responses, "cells", 5, 0), 0, how)
    start = cold_start(fold.train, borrow=True)
    walls = []
    for steps in (1, 1, 1 + ADAM_STEPS):  # the first pays for torch's start
        with clock() as adam:
            mtlirt.Adam(steps=steps).solve(fold.train, float(cv.lams[8]), start)
        walls.append(adam.wall)
    step = (walls[2] - walls[1]) / ADAM_STEPS
    total = step * EXTRAPOLATED * FITS
    print(f"Adam, all cores: {step:.2f} s a step, so {total / 3600:.1f} hours for {FITS} fits of {EXTRAPOLATED} steps")
    print(f"ratio Adam / Block: {total / work.wall:.0f}")


if __name__ == "__main__":
    main()
