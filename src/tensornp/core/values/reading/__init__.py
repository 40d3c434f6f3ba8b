"""All elements, some at a time: decoded blocks of whatever holds them.

In: a tensor, an array, or values that lie in a file. Out: a supply of blocks of NumPy numbers, in bounded memory.
Start with `supply.py`.
"""
