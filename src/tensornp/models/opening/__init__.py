"""Paths: which files belong together, and what lies beside them.

In: a path, or an index of several files. Out: an explorer of all that they hold; a broken file hides no other.
Start with `path.py`.
"""
