"""How a sentence names calls and values, and tells which of these are not finite."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

from tensornp.core.lowlevel.text import format_number, format_ordinal
from tensornp.core.tensor.dtypes import is_differentiable, largest, name_of
from tensornp.passes.records import Figures, ModuleCall, SourceLine, Value

_MOST_NAMES = 3
_RANGES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes with infinities; that of the first is left by sums and products of common numbers."""


def holds(what: str, figures: Figures | None) -> bool:
    """Return whether there is known to be a "nan", an "inf", or one of both ("nonfinite")."""
    if figures is None or figures.is_finite:
        return False
    return {"nan": figures.has_nan, "inf": figures.has_inf, "nonfinite": True}[what]


def is_mask(value: Value) -> bool:
    """Return whether −Inf stands in a value beside finite numbers alone, as in a mask."""
    figures = value.figures
    return figures is not None and figures.min == -math.inf and math.isfinite(figures.max)


def is_kept(value: Value, beside: Iterable[Value]) -> bool:
    """Return whether a value is a mask, or in an object has infinities that nothing has computed, as a bound has.

    Those that it has throughout, that came with the call, or that autograd does not know, as it knows what is `beside`.
    """
    figures = value.figures
    if not value.is_in_object or value.requires_grad or figures is None or figures.has_nan:
        return is_mask(value)
    is_fixed = figures.min == figures.max or value.maker is None
    return is_fixed or is_mask(value) or any(one.requires_grad for one in beside)


def odd_output(what: str, call: ModuleCall, *, has_masks: bool = True) -> Value | None:
    """Return the first that a call gave of what holds what is looked for, and is not kept in an object; or no mask."""
    found = (one for one in call.outputs if holds(what, one.figures))
    return next((one for one in found if not is_kept(one, call.outputs) or (has_masks and not one.is_in_object)), None)


def odd_param(what: str, call: ModuleCall) -> Value | None:
    """Return the first parameter or buffer of a call that holds what is looked for; a buffer may be a mask."""
    return next(odd_params(what, call), None)


def odd_params(what: str, call: ModuleCall) -> Iterator[Value]:
    """Yield all of these."""
    return (one for one in call.params if holds(what, one.figures) and (one.requires_grad or not is_mask(one)))


def odd_input(what: str, call: ModuleCall) -> Value | None:
    """Return the first input of a call that holds what is looked for, and is neither a mask nor kept in an object."""
    return next((one for one in call.inputs if holds(what, one.figures) and not is_kept(one, call.inputs)), None)


def are_finite(values: Iterable[Value]) -> bool | None:
    """Return whether all floating values are finite; None where there are none, or some were not read."""
    known = [value.is_finite for value in values if is_floating(value)]
    return False if False in known else None if None in known or not known else True


def is_unread(values: Iterable[Value]) -> bool:
    """Return whether some values could hold a NaN of which nobody knows."""
    return any(value.figures is None and is_floating(value) for value in values)


def is_floating(value: Value) -> bool:
    """Return whether a value could hold a NaN, or need a gradient."""
    return not value.dtype or _is_floating(value.dtype)


@functools.cache
def _is_floating(dtype: str) -> bool:
    return is_differentiable(name_of(dtype))


def word_of(figures: Figures) -> str:
    """Return what is not finite in something: ``NaN``, ``Inf``, or ``−Inf`` where there is no other."""
    return "NaN" if figures.has_nan else "Inf" if figures.max == math.inf else "−Inf"


def named(call: ModuleCall, *, has_class: bool = True, has_nth: bool = True) -> str:
    """Return how a call is named, with its class: ``norm (LayerNorm)``, ``shared (Linear, 2nd call)``."""
    nth = f"{format_ordinal(call.nth + 1)} call" if call.nth and has_nth else ""
    told = ", ".join(filter(None, (call.class_name if call.name and has_class else "", nth)))
    return f"{call.title} ({told})" if told else call.title


def within(call: ModuleCall, above: ModuleCall) -> str:
    """Return how a call is named beside that inside which it came: without the part that they share."""
    return call.name.removeprefix(f"{above.name}.") or call.title


def parameter_name(call: ModuleCall, value: Value) -> str:
    """Return the whole name of a parameter of a call."""
    return value.path if not call.name or value.path.startswith(f"{call.name}.") else f"{call.name}.{value.path}"


def input_name(value: Value) -> str:
    """Return which of its inputs a call got: ``input [0]``."""
    return f"input {value.path}" if value.path else "input"


def at(source: SourceLine | None) -> str:
    """Return a line behind a comma; empty where none is known."""
    return f", {source}" if source is not None else ""


def listed(names: Sequence[str]) -> str:
    """Return the first of some names."""
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def number(value: float) -> str:
    """Return a number as a sentence has it: ``65,504``, ``−1.83``, ``3.2e+10``; a negative zero as 0."""
    return f"{value:,.0f}".replace("-", "−") if 1e3 <= abs(value) < 1e7 else format_number(value + 0.0, 3)


def span(least: float, greatest: float) -> str:
    """Return between which numbers values lay; where these read alike, whether all were the same."""
    ends = number(least), number(greatest)
    if ends[0] != ends[1]:
        return f"from {ends[0]} to {ends[1]}"
    return f"{ends[0]} throughout" if least == greatest else f"about {ends[0]} throughout"


def reach_of(values: Iterable[Value]) -> tuple[float, float] | None:
    """Return the least and the greatest of some floating values; None where nothing was read."""
    read = [value.figures for value in values if is_floating(value) and value.figures and value.figures.count]
    return (min(one.min for one in read), max(one.max for one in read)) if read else None


def left_range(inputs: Sequence[Value], params: Sequence[Value], gave: Value) -> str:
    """Return which range a result has left, and how far the inputs reached; empty where it may be a division by 0."""
    dtype, ends = name_of(gave.dtype), reach_of(inputs)
    is_known = ends is not None and are_finite(inputs) and are_finite(params) is not False
    if not is_known or dtype not in _RANGES or gave.figures is None or not gave.figures.has_inf:
        return ""
    edge, reach = largest(dtype), max(map(abs, ends or ()))
    if dtype != "float16" and reach * reach <= edge:
        return ""
    return f"{dtype} ({number(edge)}): its inputs reached {number(reach)}"
