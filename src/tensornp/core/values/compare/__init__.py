"""What differs between two tensors, or between two moments of one.

In: two supplies, or two snapshots. Out: a `Comparison`, or a `Change`. Start with `compare.py`.
"""
