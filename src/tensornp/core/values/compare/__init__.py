"""Compare two tensors, or two moments of one tensor.

In: two sources, or two snapshots. Out: a `Comparison`, or a `Change`. Start with `compare.py`.
"""
