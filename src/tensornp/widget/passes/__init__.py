"""A pass that was followed, on a page.

In: the record of a pass. Out: lines of a tree, and what is known of one call, as plain data. Start with `calls.py`.
"""
