"""The calls of a followed pass.

In: records of calls. Out: text and HTML. Start with `followed_pass.py`.
"""
