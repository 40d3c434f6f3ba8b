"""The formats of files: a reader for each, which lists entries and reads no values.

In: a file. Out: `Contents`: entries, metadata, and what is wrong, in sentences.
Start with `table.py`, and `npy.py` for a small one.
"""
