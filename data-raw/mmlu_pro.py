"""Makes the long table of MMLU-Pro: 29 models x 12,032 items in 14 domains.

Run: python data-raw/mmlu_pro.py OUT.parquet

Source: https://github.com/TIGER-AI-Lab/MMLU-Pro, commit
    964a136e98ff17f81b0cd11c15c70784f6ee4378,
    eval_results/model_outputs_<model>_5shots.zip
Licence: Apache-2.0.
Hashes: not published; remembered at first download, in sha256.json beside the files.
Score: whether the option that the authors read from the model's text is the key; 0 where they read none.
"""

from published import write_table

if __name__ == "__main__":
    write_table("mmlu_pro", __doc__)
