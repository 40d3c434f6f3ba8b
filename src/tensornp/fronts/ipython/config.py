"""`%config TensorDisplay`: the display options of one shell, as traits."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from traitlets import All, Enum, Int, Union, observe
from traitlets.config import Configurable

from tensornp.core.summary.options import DisplayOptions


def _trait(option: Field[Any]) -> Any:
    """Return the trait of an option."""
    known: dict[str, Any] = dict(option.metadata)
    default: Any = option.default
    made: list[Any] = []
    if "choices" in known:
        made.append(Enum(known["choices"], default))
    if "min" in known:
        made.append(Int(default if isinstance(default, int) else 0, min=known["min"], max=known["max"]))
    trait = made[0] if len(made) == 1 else Union(made, default_value=default)
    trait.help = known["help"]
    return trait.tag(config=True)


_TRAITS = {option.name: _trait(option) for option in fields(DisplayOptions)}


class TensorDisplay(Configurable):
    """How tensors are displayed in this shell."""

    # The traits are collected from what the class statement has bound.
    vars().update(_TRAITS)
    _options: DisplayOptions | None = None

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
