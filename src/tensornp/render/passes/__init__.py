"""The calls of a followed pass.

In: records of calls. Out: text and HTML. Start with `card.py`.
"""
