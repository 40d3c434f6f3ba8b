"""GGUF files: a header of ours, and the values of their blocks by the gguf library.

In: a file. Out: entries and metadata. Start with `file.py`.
"""
