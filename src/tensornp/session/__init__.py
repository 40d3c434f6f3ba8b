"""What one session remembers from cell to cell; it knows no IPython.

In: names, and what was shown or converted. Out: what has changed since. Nothing here keeps a tensor alive.
Start with `watched.py`.
"""
