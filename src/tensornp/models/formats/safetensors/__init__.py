"""safetensors files: a strict header, and elements that lie as they are.

In: a file. Out: entries and metadata. Start with `header.py`.
"""
