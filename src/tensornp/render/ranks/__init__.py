"""The weights of all ranks of a job.

In: what they have answered, put together. Out: text and HTML. Start with `weights.py`.
"""
