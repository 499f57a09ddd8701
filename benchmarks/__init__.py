"""Timings. Never run as tests; figures go into benchmarks/README.md with the machine they were taken on."""
