"""`register` and `unregister`: the printers, in whatever runs."""

from __future__ import annotations

import sys
from typing import Any

from tensornp.fronts.marimo.running import runs_in_notebook


def register() -> None:
    """Show each tensor as the array it would become, in whatever runs.

    IPython, marimo, or plain Python's prompt.

    In IPython and Jupyter it is what ``%load_ext tensornp`` does. In marimo, tensors, and modules and containers of
    them, show as in Jupyter; call it in the cell that imports: it holds for what is formatted afterwards, in all
    sessions of the process. In plain Python, the prompt prints cards. A second call does nothing.

    What tensornp itself returns, such as ``tnp.weights(model)``, shows in marimo without it.
    """
    shell = _shell()
    if shell is not None:
        from tensornp.fronts.ipython import extension

        extension.load(shell)
    elif runs_in_notebook():
        from tensornp.fronts.marimo import formatters

        formatters.register()
    else:
        from tensornp.fronts import plain_python

        plain_python.register()


def unregister() -> None:
    """Take out again what `register` or ``%load_ext`` has put in, and nothing else.

    Without it, this does nothing.
    """
    shell, extension = _shell(), sys.modules.get("tensornp.fronts.ipython.extension")
    if shell is not None and extension is not None:
        extension.unload(shell)
    for name in ("tensornp.fronts.marimo.formatters", "tensornp.fronts.plain_python"):
        if name in sys.modules:
            sys.modules[name].unregister()


def _shell() -> Any:
    """Return the IPython shell that runs; None where nobody has imported IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None
