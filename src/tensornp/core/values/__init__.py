"""Reading values, a few or all of them in bounded memory, and what they come to.

In: a tensor or an array and its facts. Out: printed text, windows, statistics, comparisons, places, pictures.
Never more is held than a stated bound, and never memory that another thread can take away.
Start with `reading/supply.py`, and `shown/preview.py` for the few that are printed.
"""
