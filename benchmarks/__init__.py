"""Measurements of the product, run with `python -m benchmarks` (make bench). Nothing here asserts a time."""
