"""IPython and Jupyter: the extension, its printers, magics and options; start with `extension.py`."""
