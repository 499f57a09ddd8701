"""Makes the long table of LawBench: 51 models x 1,500 items in 3 domains.

Run: python data-raw/lawbench.py OUT.parquet

Source: https://github.com/open-compass/LawBench, commit
    94e0f4108b0043adac9e365d31a7cd7521a26779,
    predictions/zero_shot/<model>/{1-2,3-6,2-8}.json
Licence: Apache-2.0.
Hashes: not published; remembered at first download, in sha256.json beside the files.
Score: whether the key is the only one of the item's letters in the model's text, LawBench's own rule.
"""

from published import write_table

if __name__ == "__main__":
    write_table("lawbench", __doc__)
