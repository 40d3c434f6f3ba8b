"""The session that an IPython shell runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ShellSession:
    """A shell as the session's memory knows it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The namespace, including IPython's history."""
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
