"""`%config TensorDisplay`: the display options of one shell, as traits."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from traitlets import All, Bool, Enum, Int, observe
from traitlets.config import Configurable

from tensornp.core.summary.options import DisplayOptions


def _trait(option: Field[Any]) -> Any:
    """Return the trait of an option."""
    known: dict[str, Any] = dict(option.metadata)
    default: Any = option.default
    allow_none: Any = "numpy" in known
    if "choices" in known:
        made: Any = Enum(known["choices"], default, help=known["help"])
    elif "min" in known:
        made = Int(default, help=known["help"], min=known["min"], max=known["max"], allow_none=allow_none)
    else:
        made = Bool(default, help=known["help"], allow_none=allow_none)
    return made.tag(config=True)


_TRAITS = {option.name: _trait(option) for option in fields(DisplayOptions)}


class TensorDisplay(Configurable):
    """How tensors are displayed in this shell."""

    # The traits are collected from what the class statement has bound.
    vars().update(_TRAITS)
    _options: DisplayOptions | None = None

    @observe("raw_memory")
    def _switch_raw_memory(self, change: Any) -> None:
        from tensornp.core.lowlevel import raw_memory

        raw_memory.switch(change["new"])

    @property
    def options(self) -> DisplayOptions:
        """The options as they are now, frozen."""
        if self._options is None:
            self._options = DisplayOptions(
                **{option.name: getattr(self, option.name) for option in fields(DisplayOptions)}
            )
        return self._options

    @observe(All)
    def _forget(self, _: Any) -> None:
        self._options = None
