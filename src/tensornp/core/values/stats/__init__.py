"""Compute statistics, distribution and channels; those of parts add up.

In: a source of blocks. Out: `TensorStats`, the same bits however the elements were cut.
Start with `compute.py`.
"""
