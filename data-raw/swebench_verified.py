"""Makes the long table of SWE-bench Verified: 134 agents x 500 items.

Run: python data-raw/swebench_verified.py OUT.parquet

Source: https://github.com/dariakryvosheieva/agent-psychometrics, commit
    8cbebf324a137c33a49120a8eab1216546498b60,
    out/chris_irt/swebench_verified.jsonl
Licence: MIT.
Hashes: not published; remembered at first download, in sha256.json beside the files.
Score: whether the agent resolved the issue.
"""

from published import write_table

if __name__ == "__main__":
    write_table("swebench_verified", __doc__)
