"""Loading into a shell, and unloading from it exactly."""

from __future__ import annotations

import sys
from copy import deepcopy
from traceback import walk_stack
from typing import Any
from weakref import WeakKeyDictionary

from tensornp.core import threads
from tensornp.notebook.cell import awaiting
from tensornp.notebook.completion import make_matcher
from tensornp.notebook.config import TensorDisplay
from tensornp.notebook.formatter import TensorPrinters
from tensornp.notebook.ledger import Ledger
from tensornp.notebook.live import LiveToggle
from tensornp.notebook.magics import TensorMagics
from tensornp.notebook.memory_magics import MemoryMagics

_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


class Extension:
    """What tensornp has put into one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        section = TensorDisplay.__name__
        self._config_before = deepcopy(shell.config[section]) if section in shell.config else None
        self.config = TensorDisplay(parent=shell)
        self.ledger = Ledger(shell, self.config)
        self.live = LiveToggle(shell, self.config, self.ledger)
        self.printers = TensorPrinters(shell, self.config, self.ledger.look, self.live.note)
        self._memory = MemoryMagics(shell, self.config, self.ledger)
        self._magics = (self._memory, TensorMagics(shell, self.config, self.live, self.ledger))
        self._matcher = make_matcher(shell)
        self._transformer = awaiting(shell, "tonumpy")
        self._events = (
            ("pre_run_cell", threads.cells.begin),
            ("post_run_cell", threads.cells.end),
            ("post_run_cell", self.live.after_cell),
            ("post_execute", self.printers.forget),
        )

    def load(self) -> None:
        """Put in printers, magics, completion, configuration and event callbacks."""
        self.printers.register()
        self._shell.register_magics(*self._magics)
        self._shell.Completer.custom_matchers.append(self._matcher)
        self._shell.input_transformers_post.append(self._transformer)
        self._shell.configurables.append(self.config)
        for event, callback in self._events:
            self._shell.events.register(event, callback)
        if _is_in_cell():
            threads.cells.begin()

    def unload(self) -> None:
        """Take all of it out again, but nothing that another library has put in its place since."""
        self.live.retire()
        self._memory.end()
        for event, callback in self._events:
            self._shell.events.unregister(event, callback)
        if _is_in_cell():
            threads.cells.end()
        ours = (self.config, *self._magics)
        # IPython appends each Magics object here and never takes it out.
        self._shell.configurables[:] = [c for c in self._shell.configurables if not any(c is own for own in ours)]
        for own, where in (
            (self._matcher, self._shell.Completer.custom_matchers),
            (self._transformer, self._shell.input_transformers_post),
        ):
            if own in where:
                where.remove(own)
        self._remove_magics()
        self._restore_config()
        self.ledger.forget()
        self.printers.unregister()

    def _restore_config(self) -> None:
        """Take back what `%config TensorDisplay` has written into the shell's own configuration."""
        section = TensorDisplay.__name__
        if self._config_before is None:
            self._shell.config.pop(section, None)
        else:
            self._shell.config[section] = self._config_before

    def _remove_magics(self) -> None:
        """Take our magics out; IPython has no call for that."""
        manager = self._shell.magics_manager
        for magics in self._magics:
            for kind, names in magics.magics.items():
                for name in names:
                    if getattr(manager.magics[kind].get(name), "__self__", None) is magics:
                        del manager.magics[kind][name]
            if manager.registry.get(type(magics).__name__) is magics:
                del manager.registry[type(magics).__name__]


def _is_in_cell() -> bool:
    """Return whether this is called by a cell, and not by a configuration that loads us before any."""
    # IPython has no word for it.
    return any(frame.f_code.co_name == "run_code" for frame, _ in walk_stack(sys._getframe()))


def load(shell: Any) -> None:
    """Load into `shell`; a second time does nothing."""
    if shell in _loaded:
        return
    extension = Extension(shell)
    extension.load()
    _loaded[shell] = extension


def unload(shell: Any) -> None:
    """Unload from `shell`; does nothing where it is not loaded."""
    extension = _loaded.pop(shell, None)
    if extension is not None:
        extension.unload()
