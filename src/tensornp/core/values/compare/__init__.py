"""Compare two tensors, or two moments of one tensor.

In: two supplies, or two snapshots. Out: a `Comparison`, or a `Change`. Start with `compare.py`.
"""
