"""The states of optimizers: which parameter each belongs to.

In: a state dict, live or looked through in a file, and the parameters of a model. Out: names for its entries.
Start with `saved.py`.
"""
