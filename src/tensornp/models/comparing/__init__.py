"""Compare two models.

In: two of anything that has weights. Out: a `WeightsComparison`, what moved most first.
Start with `compare.py`.
"""
