"""Statistics, comparisons and locations.

In: their records. Out: text and HTML. Start with `stats.py`.
"""
