"""Metadata, kinds, containers and shards of tensors.

In: a tensor, or a container of them. Out: a `TensorInfo`, read without a value; the leaves of the container by name.
`kinds.py` and `layouts.py` have one class for each kind of tensor, and `form.py` the base class.
Start with `info.py`.
"""
