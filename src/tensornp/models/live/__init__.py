"""List weights in memory, including packed, offloaded and computed ones.

In: an object of the user's, nothing of which is called. Out: entries with the code that reaches them.
Start with `module.py`.
"""
