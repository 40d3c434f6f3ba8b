"""Reading values: the few that are shown, and what differs between two copies.

In: a tensor, its facts, and which elements are wanted. Out: these elements, or the text that NumPy prints of them.
Never more is read than a stated bound, and never from memory that another thread can take away.
Start with `preview.py`.
"""
