"""Compare two models. Start with `compare.py`."""
