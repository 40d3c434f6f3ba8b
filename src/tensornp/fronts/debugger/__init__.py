"""Debuggers: what a pane of variables says of a tensor, and of what holds tensors.

In: what a stopped program has. Out: a line, and children. The file by which debugpy finds it is
`pydevd_plugins/extensions/pydevd_plugin_tensornp.py`, beside this package; start with `pane.py`.
"""
