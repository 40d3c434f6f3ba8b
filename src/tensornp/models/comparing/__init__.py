"""Two models side by side.

In: two of anything that has weights. Out: a `WeightsComparison`, what moved most first.
Start with `compare.py`.
"""
