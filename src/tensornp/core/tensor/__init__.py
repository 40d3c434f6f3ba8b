"""Metadata, kinds, containers and shards of tensors.

In: a tensor, or a container of them. Out: a `TensorInfo`, read without a value; the leaves of the container by name.
`kinds.py` has a row for each way to hold values, which needs no torch, and `reading.py` the functions that read it.
Start with `info.py`.
"""
