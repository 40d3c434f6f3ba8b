"""Read files at positions, never mapped. Start with `source_file.py`."""
