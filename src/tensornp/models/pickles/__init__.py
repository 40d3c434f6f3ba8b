"""Read pickles as plain values and inert records; nothing is imported or called. Start with `reader.py`."""
