"""Find the tensors and arrays that names reach.

In: a namespace, or any object. Out: the tensors and arrays that it leads to, each with the path of a user's expression.
In bounded time, nearest first, and nothing of the user's runs.
Start with `search.py`.
"""
