"""The session that an IPython shell runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from IPython.core.display_functions import display
from IPython.core.displayhook import DisplayHook


class ShellSession:
    """A shell as the session's memory knows it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The namespace, in which IPython's history has names too."""
        names: Mapping[str, Any] = self._shell.user_ns
        return names

    @property
    def cell(self) -> str:
        """The cell that runs now: "In[4]"."""
        return f"In[{self._shell.displayhook.prompt_count}]"

    @property
    def source(self) -> str:
        """The source of the cell that runs now; of one that is not stored, that of the last one."""
        return str((self._shell.history_manager.input_hist_parsed or [""])[-1])

    @property
    def is_showing_result(self) -> bool:
        """Whether what is being shown is the value of the cell, and not what it displays by itself."""
        if self._shell.ast_node_interactivity not in ("last_expr", "last_expr_or_assign"):
            return False
        frame = inspect.currentframe()
        while frame is not None and frame.f_code is not display.__code__:
            if frame.f_code is DisplayHook.__call__.__code__:
                return True
            frame = frame.f_back
        return False
