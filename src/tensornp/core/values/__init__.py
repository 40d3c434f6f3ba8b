"""Reading values, a few or all of them in bounded memory, and what they come to.

In: a tensor or an array and its facts. Out: printed text, windows, statistics, comparisons, places, pictures.
Memory is bounded: `blocks.py` reads all values, block by block; `sources.py` divides a tensor into parts.
Start with `sources.py`, and with `shown/preview.py` for printed elements.
"""
