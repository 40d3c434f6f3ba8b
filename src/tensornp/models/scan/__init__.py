"""Compute the statistics of all weights, and find anomalies. Start with `run.py`."""
