"""Read pickles and import or call nothing. Start with `reader.py`."""
