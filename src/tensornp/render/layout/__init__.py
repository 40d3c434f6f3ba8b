"""Shared parts of all views: tables, styles, words and MIME bundles.

In: cells and strings. Out: text and HTML. No record of ours is known here. Start with `table.py`.
"""
