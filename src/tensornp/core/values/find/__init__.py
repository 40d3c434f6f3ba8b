"""Where something is: NaN, infinities, extremes.

In: a supply of blocks. Out: a `Location`: how many, and the first places. Start with `locate.py`.
"""
