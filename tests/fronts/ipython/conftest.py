"""A real shell, fresh for each test, with every MIME type active as in a notebook."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config
from unchanged import unchanged

from tensornp.core.tensor.containers import leaves
from tensornp.session import ledger


class Shell:
    def __init__(self, ip: InteractiveShell) -> None:
        self.ip = ip
        self.namespace = ip.user_ns

    def run(self, cell: str) -> Any:
        """Run a cell that must succeed, and return its value."""
        with capture_output() as captured:
            result = self.ip.run_cell(cell, store_history=False)
        result.raise_error()
        self.printed = captured.stdout
        self.displayed = [output.data for output in captured.outputs]
        return result.result

    def shown(self, line: str) -> tuple[str, str]:
        """Run a line that shows one thing, and return its text and its HTML."""
        self.run(line)
        (output,) = self.displayed
        return output["text/plain"], output["text/html"]

    def fail(self, cell: str) -> str:
        """Run a cell that must end in a usage error, and return its one line."""
        with capture_output() as captured:
            result = self.ip.run_cell(cell, store_history=False)
        assert type(result.error_in_exec).__name__ == "UsageError", captured.stdout
        assert captured.stderr.count("\n") == 1, "one line, and no traceback"
        return captured.stderr.removeprefix("UsageError: ").strip()

    def refuse(self, magic: str, line: str, *cell: str) -> str:
        """Hand a magic what it must refuse with a usage error, and return that; as code does, not as a typed cell.

        Since Python 3.12, what tokenizes a cell raises by itself for half of a surrogate pair.
        """
        run = self.ip.run_cell_magic if cell else self.ip.run_line_magic
        with pytest.raises(UsageError) as refused:
            run(magic, line, *cell)
        return str(refused.value)

    def show(self, obj: Any) -> dict[str, str]:
        """Return what a display of `obj` sends to the page, by MIME type, and check that looking changed nothing."""
        with unchanged(*(leaf for _, leaf in leaves(obj) if isinstance(leaf, torch.Tensor))):
            return self.show_within_modes(obj)

    def show_within_modes(self, obj: Any) -> dict[str, str]:
        """Return the same without that check, where the test has entered modes of its own."""
        data, _ = self.ip.display_formatter.format(obj)
        return data

    def complete(self, line: str) -> list[str]:
        with provisionalcompleter():
            return [completion.text for completion in self.ip.Completer.completions(line, len(line))]


@pytest.fixture(scope="session")
def bare_shell() -> InteractiveShell:
    ledger.MAX_SEARCH_SECONDS = 60
    config = Config({"HistoryManager": {"hist_file": ":memory:"}})
    ip = InteractiveShell.instance(colors="nocolor", config=config)
    ip.display_formatter.active_types = ip.display_formatter.format_types
    # IPython loads its own magics on first use: not what is tested here.
    ip.run_cell("%load_ext autoreload")
    ip.run_cell("%reload_ext autoreload")
    ip.run_cell("%config")
    for name in list(ip.magics_manager.magics["line"]):
        ip.find_line_magic(name)
    return ip


@pytest.fixture
def shell(bare_shell: InteractiveShell) -> Iterator[Shell]:
    bare_shell.reset()
    # It has collected garbage, as the next one will: not among all that was imported by then.
    gc.freeze()
    bare_shell.user_ns["torch"] = torch
    bare_shell.run_line_magic("load_ext", "tensornp")
    yield Shell(bare_shell)
    bare_shell.run_line_magic("unload_ext", "tensornp")
