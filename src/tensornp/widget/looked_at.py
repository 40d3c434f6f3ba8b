"""Describe the tensor in the navigator: its source, its names and its binder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensornp.core.convert.plan import mode_arguments
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel import modes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window import Window, expression_of
from tensornp.core.values.shown.window_values import Subject
from tensornp.core.values.stored import StoredValues

Held = Callable[[], torch.Tensor | StoredValues | None]
"""Gives the tensor that is looked at, or None where it is gone."""
Reaches = Callable[[str, Any], bool]
"""Tells whether an expression still reaches the tensor."""
Binder = Callable[[str, Callable[[], Any], bool], None]
"""Binds a name to the array that the second argument makes, overwriting only where the third says so."""
Take = Callable[[tuple[int | slice, ...]], Any]
"""Gives the array at an index."""


_DEFAULTS = DisplayOptions()


def nothing() -> None:
    """Return None, in place of a tensor or of an unused callback."""


def always(name: str, tensor: Any) -> bool:
    """Return True, for a name that always reaches its tensor."""
    return True


@dataclass(frozen=True, slots=True)
class LookedAt:
    """The tensor in the navigator, which this does not keep alive.

    Attributes
    ----------
    held : callable
        What gives the tensor.
    name, array_name : str
        How the tensor, and an array of it, are called in the expressions that are offered; empty where nothing calls
        it, since any name that were made up could be that of something else.
    reaches : callable
        What tells whether `name` still reaches it; where it does not, no expression claims so.
    binder : callable or None
        What binds a name in the user's namespace.
    take : callable or None
        What gives the array at an index, of what is no tensor in memory.
    suggestion : str
        The name that is offered for the array of a window.
    options : DisplayOptions
        In which mode a window is bound, and how much is read unasked.
    faces : tuple of (str, LookedAt)
        Tensors of one shape that take turns, with their labels: ``before``, ``after`` and ``Δ``. They replace `held`.
    """

    held: Held = nothing
    name: str = ""
    array_name: str = ""
    reaches: Reaches = always
    binder: Binder | None = None
    take: Take | None = None
    suggestion: str = "a_np"
    options: DisplayOptions = _DEFAULTS
    faces: tuple[tuple[str, LookedAt], ...] = ()

    def is_reached(self) -> bool:
        """Return whether there is a name that still reaches the tensor."""
        return bool(self.name) and self.reaches(self.name, self.held())

    def expressions(self, subject: Subject, window: Window) -> dict[str, str]:
        """Return the expressions of a window's array, tensor, bound name and whole.

        All are empty if no name reaches the tensor. An index after the whole gives an element.
        """
        if not self.is_reached():
            return {"numpy": "", "torch": "", "bound": "", "whole": ""}
        code, array = subject.code(self.name), self.array_name
        array = f"{array}[{subject.part}]" if array and subject.num_parts else array
        numpy = expression_of(array, window) if array else ""
        torch = expression_of(code, window) if code else ""
        converted = numpy if self.take is not None or not torch else f"%tonumpy {torch}"
        bound = converted if self.binder is not None else ""
        return {"numpy": numpy, "torch": torch, "bound": bound, "whole": code or array}

    def array_of(self, subject: Subject, window: Window) -> Any:
        """Return the array of a window in the mode of the options, as `%tonumpy` does.

        Tensors that cannot be sliced, such as sparse ones, are copied.
        """
        if self.take is not None:
            array = self.take(window.index)
        elif subject.info.kind is STRIDED and isinstance(subject.tensor, torch.Tensor) and subject.code("t"):
            with modes.outside_modes():
                part = subject.tensor[window.index]
            limit = self.options.max_nbytes or None
            array = to_numpy(part, max_nbytes=limit, **mode_arguments(self.options.mode))
        else:
            array = gathered(subject.tensor, subject.info, subject.plan, window.places)
            array = array[tuple(slice(None) if isinstance(item, slice) else 0 for item in window.index)]
        return array.T if window.is_transposed else array
