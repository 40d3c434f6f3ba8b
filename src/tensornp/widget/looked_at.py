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

Binder = Callable[[str, Callable[[], Any], bool], None]
"""Binds a name to the array that the second argument makes, overwriting only if the third says so."""
Reaches = Callable[[str, Any], bool]
"""Returns whether an expression reaches the tensor now."""


_DEFAULTS = DisplayOptions()


def always(name: str, tensor: Any) -> bool:
    """Return True, for a name that always reaches its tensor."""
    return True


@dataclass(frozen=True, slots=True)
class LookedAt:
    """The tensor in the navigator, which this does not keep alive.

    `held` returns it, or None if it is gone. `name` and `array_name` are the expressions of the tensor and of its
    array, empty if there is none. `take` returns the array at an index, for values outside of memory. `suggestion` is a
    name for the array of a window. `faces` replace `held`: tensors of one shape with their labels.
    """

    held: Callable[[], torch.Tensor | StoredValues | None] = lambda: None
    name: str = ""
    array_name: str = ""
    reaches: Reaches = always
    binder: Binder | None = None
    take: Callable[[tuple[int | slice, ...]], Any] | None = None
    suggestion: str = "a_np"
    options: DisplayOptions = _DEFAULTS
    faces: tuple[tuple[str, LookedAt], ...] = ()

    def expressions(self, subject: Subject, window: Window) -> dict[str, str]:
        """Return the expressions of a window's array, tensor, bound name and whole.

        All are empty if no name reaches the tensor. An index after the whole gives an element.
        """
        if not (self.name and self.reaches(self.name, self.held())):
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
