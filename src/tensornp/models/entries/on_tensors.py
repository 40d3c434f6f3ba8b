"""What tensors hold as attributes beside their values, such as a mask, or the scales of codes: nobody compares it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tensornp.core.lowlevel.attributes import OF_LIBRARIES, dict_of, is_tensor, own_attributes
from tensornp.core.lowlevel.ordinary import is_of_torch
from tensornp.core.lowlevel.partitioned import is_spread
from tensornp.core.tensor.form import form_of, plain_part
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.paths import PLAIN_CLASSES
from tensornp.core.tensor.stand_ins import stand_in_for
from tensornp.models.entries.entry import WeightEntry


def held_by_tensors(entries: Iterable[WeightEntry]) -> Iterator[tuple[str, Any]]:
    """Yield what the tensors of weights hold, but for plain values, by its name; that of one tensor once.

    Of a class that makes its values of its attributes, these are compared. Nothing of the user's runs.
    """
    seen: set[int] = set()
    for entry in entries:
        tensor = entry._source.held
        # As nearly all are.
        if (is_of_torch(tensor) and not tensor.__dict__) or id(tensor) in seen or not _holds_values(tensor):
            continue
        seen.add(id(tensor))
        for name, value in own_attributes(tensor):
            if id(type(value)) not in PLAIN_CLASSES and type(name) is str and name not in OF_LIBRARIES:
                yield f"{entry.name}.{name}", value


def _holds_values(tensor: Any) -> bool:
    """Return whether a tensor has its values in its own memory, and is not spread over ranks by a library."""
    if not is_tensor(tensor) or stand_in_for(type(tensor)) is not None:
        return False
    if is_spread(dict_of(tensor) or {}):
        return False
    try:
        return is_of_torch(tensor) or plain_part(tensor) is not None or form_of(tensor)[:2] == ("available", STRIDED)
    except Exception:
        # A class may compute what torch asks it for.
        return False
