"""What all views share: tables, styles, words, bundles of text and HTML.

In: cells and strings. Out: text and HTML. No record of ours is known here. Start with `table.py`.
"""
