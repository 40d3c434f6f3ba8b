"""Tensors in the panes of debuggers.

debugpy finds it by `pydevd_plugins/extensions/pydevd_plugin_tensornp.py`, next to this package.
"""
