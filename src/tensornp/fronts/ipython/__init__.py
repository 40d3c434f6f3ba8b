"""IPython and Jupyter: the extension, its printers, magics, completion and options.

In: a shell. Out: what is displayed in it; and unloading takes exactly that back.
Start with `extension.py`.
"""
