"""What was computed of values: statistics, comparisons, places.

In: their records. Out: text and HTML. Start with `stats.py`.
"""
