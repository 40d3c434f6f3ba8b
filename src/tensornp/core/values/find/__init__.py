"""Locate NaN, infinities and extremes.

In: blocks of numbers. Out: a `Location`: the number and the first places. Start with `locate.py`.
"""
