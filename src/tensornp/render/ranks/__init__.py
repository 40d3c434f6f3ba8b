"""What the ranks of a job hold.

In: what they have answered, put together. Out: text and HTML. Start with `weights.py`.
"""
