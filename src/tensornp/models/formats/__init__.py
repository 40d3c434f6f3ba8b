"""List the weights of each file format. Start with `table.py`."""
