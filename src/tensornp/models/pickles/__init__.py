"""Pickles, looked through without running them: what they would build, as inert records.

In: bytes. Out: records of calls and imports, and the tensors and plain values in them, by the keys that reach them.
Nothing is imported or called. Start with `look_through.py`.
"""
