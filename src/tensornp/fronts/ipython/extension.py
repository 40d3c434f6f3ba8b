"""Loading into a shell, and unloading from it exactly."""

from __future__ import annotations

from contextlib import ExitStack
from copy import deepcopy
from typing import Any
from weakref import WeakKeyDictionary

from tensornp.fronts.ipython.completion import make_matcher
from tensornp.fronts.ipython.config import GuideMagics, TensorDisplay
from tensornp.fronts.ipython.live import Live
from tensornp.fronts.ipython.magics import TensorMagics
from tensornp.fronts.ipython.memory_magics import MemoryMagics
from tensornp.fronts.ipython.names import ShellSession
from tensornp.fronts.ipython.printers import TensorPrinters
from tensornp.fronts.ipython.value_magics import ValueMagics
from tensornp.session.ledger import Ledger

_SECTION = TensorDisplay.__name__
_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


class Extension:
    """Everything that tensornp registers in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._undo = ExitStack()

    def load(self) -> None:
        """Put in printers, magics, completion, options and callbacks; nothing if a step raises."""
        with ExitStack() as undo:
            self._put_in(undo)
            self._undo = undo.pop_all()

    def unload(self) -> None:
        """Take all of it out again, but nothing that another library has put in its place since."""
        self._undo.close()

    def _put_in(self, undo: ExitStack) -> None:
        """Do each step after saying how it is undone."""
        shell = self._shell
        before = deepcopy(shell.config[_SECTION]) if _SECTION in shell.config else None
        undo.callback(self._restore_config, before)
        ours: list[Any] = []
        undo.callback(self._remove_configurables, ours)
        config = TensorDisplay(parent=shell)
        ours.append(config)
        shell.configurables.append(config)
        ledger = Ledger(ShellSession(shell), lambda: config.options)
        undo.callback(ledger.forget)
        live = Live(shell, lambda: config.options, ledger)
        undo.callback(live.close)
        for publisher in (shell.display_pub, shell.displayhook):
            if hasattr(publisher, "register_hook"):
                undo.callback(publisher.unregister_hook, live.see)
                publisher.register_hook(live.see)
        printers = TensorPrinters(shell, config, ledger.look, live.note)
        undo.callback(printers.unregister)
        printers.register()
        memory = MemoryMagics(shell, config, live, ledger)
        ours += [memory, *(cls(shell, config, live, ledger) for cls in (TensorMagics, ValueMagics, GuideMagics))]
        for magics in ours[1:]:
            undo.callback(self._remove_magics, magics)
            shell.register_magics(magics)
        matchers, matcher = shell.Completer.custom_matchers, make_matcher(shell)
        undo.callback(_remove, matchers, matcher)
        matchers.append(matcher)
        for event, callback in (
            ("pre_run_cell", live.before_cell),
            ("post_run_cell", live.after_cell),
            ("post_run_cell", memory.after_cell),
            ("post_execute", printers.forget),
        ):
            undo.callback(_remove, shell.events.callbacks[event], callback)
            shell.events.register(event, callback)

    def _remove_configurables(self, ours: list[Any]) -> None:
        """Take out what is ours; IPython appends each Magics object here and never takes it out."""
        configurables = self._shell.configurables
        configurables[:] = [other for other in configurables if not any(other is own for own in ours)]

    def _restore_config(self, before: Any) -> None:
        """Take back what `%config TensorDisplay` has written into the shell's own configuration."""
        if before is None:
            self._shell.config.pop(_SECTION, None)
        else:
            self._shell.config[_SECTION] = before

    def _remove_magics(self, magics: Any) -> None:
        manager = self._shell.magics_manager
        for kind, names in magics.magics.items():
            for name in names:
                if getattr(manager.magics[kind].get(name), "__self__", None) is magics:
                    del manager.magics[kind][name]
        if manager.registry.get(type(magics).__name__) is magics:
            del manager.registry[type(magics).__name__]


def _remove(items: list[Any], item: Any) -> None:
    if item in items:
        items.remove(item)


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
