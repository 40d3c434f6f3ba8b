"""Reading stored elements: indexing, decoding, signs.

In: an index, a shape and strides. Out: ranges of bytes, boxes of indices, and the statistics that are still known.
No format is known here. Start with `selection.py`.
"""
