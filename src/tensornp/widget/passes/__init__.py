"""A followed pass on a page.

In: the record of a pass. Out: lines of a tree as plain data, and the HTML of one call. Start with `calls.py`.
"""
