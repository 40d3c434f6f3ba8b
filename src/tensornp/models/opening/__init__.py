"""Open paths: find the files of a model and their metadata. Start with `path.py`."""
