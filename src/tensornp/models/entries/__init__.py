"""One weight: its facts, and how its values are read when they are wanted.

In: a tensor, an array, or where in a file the elements lie. Out: a `WeightEntry`, and plain facts of it for a page.
Start with `entry.py`, which says what all of them have.
"""
