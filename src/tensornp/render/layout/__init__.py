"""Shared parts of all views: documents, tables, styles and words; start with `document.py`."""
