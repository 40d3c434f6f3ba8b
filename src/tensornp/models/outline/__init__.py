"""Show many weights at once: as lines of a tree or a list.

In: plain facts of weights. Out: lines with sums, repeated layers folded, sorted and filtered as asked.
Start with `outline.py`.
"""
