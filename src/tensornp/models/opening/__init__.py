"""Open paths: find the files of a model and their metadata.

In: a path, or an index of several files. Out: an explorer of all that they hold; a broken file hides no other.
Start with `path.py`.
"""
