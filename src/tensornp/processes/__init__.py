"""Look at the ranks of a job, each asked by itself; start with `ranks.py`."""
