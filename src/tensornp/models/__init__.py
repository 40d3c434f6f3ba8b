"""List the weights of models in memory and of checkpoints on disk.

In: a module, an optimizer, a dictionary, or a path. Out: an explorer of entries, the table of a scan, a comparison.
Nothing of a file is imported or run, and nothing of a model is called.
Start with `weights.py`, then `entries/entry.py`; a file format is a folder or a module in `formats/`.
"""
