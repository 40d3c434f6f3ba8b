"""Find the tensors and arrays that names reach.

In: a namespace, or any object. Out: the tensors and arrays that it reaches, each with the path of an expression. The
search takes bounded time and runs no code of the user.
Start with `search.py`.
"""
