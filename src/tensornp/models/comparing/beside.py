"""What two containers hold beside their weights under one name: numbers, texts and None, which may be others."""

from __future__ import annotations

from typing import Any

from tensornp.core.lowlevel.quoted import quoted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside
from tensornp.models.optimizers.param_groups import GROUPS

_OF_SET = "{…}"
_NUMBERS = (bool, int, float, complex)


def beside(first: WeightsExplorer, second: WeightsExplorer) -> dict[str, str]:
    """Return by name what is another in the second; nothing of the user's runs.

    What groups of optimizers say changes from step to step, what a file says of itself is none of its container, and
    sets have no order by which to compare them.
    """
    own, others = first.metadata, second.metadata
    if type(own) is not Beside or type(others) is not Beside:
        return {}
    return {
        name: f"{quoted(value)} → {quoted(others[name])}"
        for name, value in own.items()
        if name in others
        and not (GROUPS in name or _OF_SET in name or name in own.of_sets or name in others.of_sets)
        and not _is_same(value, others[name])
    }


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two are the same value; what is no plain one is not looked into."""
    if not (is_plain_value(a) and is_plain_value(b)):
        return True
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        # What is no number is not equal to itself.
        return bool(a == b) or (type(a) in (float, complex) and type(b) is type(a) and repr(a) == repr(b))
    return type(a) is type(b) and bool(a == b)
