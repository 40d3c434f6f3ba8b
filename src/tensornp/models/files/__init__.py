"""Files by their bytes: read at positions and never mapped, unpacked a piece at a time, told from others.

In: a path, or a file within a file. Out: the bytes that were asked for, where zip members lie, and what it
seems to be.
Start with `source_file.py`.
"""
