"""Install and remove the displays of tensors."""

from __future__ import annotations

import sys
from typing import Any

from tensornp.fronts import marimo


def install() -> None:
    """Display each tensor as the array it converts to: in IPython, marimo, or the prompt of plain Python.

    In IPython and Jupyter this is ``%load_ext tensornp``. In marimo, call it in the cell of your imports; it holds for
    all sessions of the process. In plain Python, the prompt prints cards. A second call does nothing.
    """
    shell = _shell()
    if shell is not None:
        from tensornp.fronts.ipython import extension

        extension.load(shell)
    elif marimo.runs_in_notebook():
        marimo.register()
    else:
        from tensornp.fronts import plain_python

        plain_python.register()


def uninstall() -> None:
    """Remove what `install` or ``%load_ext`` has added, and nothing else; a second call does nothing."""
    shell, extension = _shell(), sys.modules.get("tensornp.fronts.ipython.extension")
    if shell is not None and extension is not None:
        extension.unload(shell)
    for name in ("tensornp.fronts.marimo", "tensornp.fronts.plain_python"):
        if name in sys.modules:
            sys.modules[name].unregister()


def _shell() -> Any:
    """Return the running IPython shell; None if nobody has imported IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None
