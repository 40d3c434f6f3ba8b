"""The few elements that somebody sees.

In: a tensor, and which elements are wanted. Out: the text that NumPy prints, or the cells of a window.
Nothing else is read. Start with `preview.py`.
"""
