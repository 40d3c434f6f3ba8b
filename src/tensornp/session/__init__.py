"""Remember displayed and converted tensors from cell to cell, without IPython.

In: names, displayed and converted tensors. Out: their changes. Nothing here keeps a tensor alive.
Start with `ledger.py`.
"""
