"""Makes the long table of Terminal-Bench 2.0: 112 agents x 89 items.

Run: python data-raw/terminalbench.py OUT.parquet

Source: https://github.com/dariakryvosheieva/agent-psychometrics, commit
    3d28b557baf8eaae60740085dd3c2c4e94cede86,
    out/chris_irt/terminal_bench_2.0.jsonl
Licence: MIT.
Hashes: not published; remembered at first download, in sha256.json beside the files.
Score: the source's verdict on all runs of an agent, right in at least half of them.
"""

from published import write_table

if __name__ == "__main__":
    write_table("terminalbench", __doc__)
