"""Weights in memory: of modules, optimizers and dictionaries, and what is packed, offloaded or computed there.

In: an object of the user's, nothing of which is called. Out: entries with the code that reaches them.
Start with `module.py`.
"""
