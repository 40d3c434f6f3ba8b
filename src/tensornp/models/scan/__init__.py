"""Compute the statistics of all weights, and find anomalies.

In: entries, and threads or any executor. Out: a table of statistics by name with findings, the same bits for any cut.
Start with `run.py`; a finding is a function in `findings.py`.
"""
