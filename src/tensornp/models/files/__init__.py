"""Files by their bytes: read at positions, never mapped.

In: a path, or a file within a file. Out: the bytes that were asked for, where zip members lie, and what it
seems to be.
Start with `source_file.py`.
"""
