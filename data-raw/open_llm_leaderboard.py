"""Makes a long table of some models of the Open LLM Leaderboard, version 1 or 2.

Run: python data-raw/open_llm_leaderboard.py v2 OUT.parquet --models org/model ... --tasks mmlu_pro "bbh_*" ...

Source: https://huggingface.co, datasets open-llm-leaderboard-old/details_<org>__<model> (version 1) and
    open-llm-leaderboard/<org>__<model>-details (version 2, in part gated: accept the terms and set HF_TOKEN), each at
    its newest commit, which listing.json beside the files names.
Licence: see the repositories and the benchmarks.
Hashes: those that the Hub names for large files at that commit, checked at the download and kept in listing.json.
"""

import argparse
from pathlib import Path

import mtlirt
from mtlirt.data.store import write_frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=["v1", "v2"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--tasks", nargs="+")
    arguments = parser.parse_args()
    name = f"open_llm_leaderboard_{arguments.version}"
    responses = mtlirt.datasets.fetch(name, models=arguments.models, tasks=arguments.tasks)
    write_frame(arguments.out, responses.to_long())
    print(f"{arguments.out}: {responses!r}")


if __name__ == "__main__":
    main()
