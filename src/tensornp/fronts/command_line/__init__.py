"""The command line: explorers, scans and comparisons of files, as text, as JSON or as a page.

It has neither IPython nor widgets, and no torch where the format needs none.
"""
