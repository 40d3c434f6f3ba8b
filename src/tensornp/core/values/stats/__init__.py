"""Statistics: figures, distribution and channels, each the sum of those of parts.

In: a supply of blocks. Out: `TensorStats`, the same bits however the elements were cut.
Start with `compute.py`.
"""
