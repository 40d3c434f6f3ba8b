"""Put the weights of a comparison in rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import legible, quoted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.core.values.compare.compare import Comparison
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.table import Beside
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import MAX_INSIDE, file_name
from tensornp.models.optimizers import GROUPS, STATE
from tensornp.models.outline.fold import Row, folded

STEP = "step"
_MIN_TOGETHER = 3
"""Fewer states of a quantity are seen one by one."""


def quantity_of(entry: WeightEntry) -> str:
    """Return the optimizer's name of a state or a group option, ``""`` for a weight."""
    keys = entry.name.split(".")
    if not (entry.kind == "state" and STATE in keys) and GROUPS not in keys:
        return ""
    return next((key for key in reversed(keys) if not key.isdecimal()), "")


def parameter_of(entry: WeightEntry) -> str:
    """Return "of 'weight'" for a state without its parameter in the name, or ``""``."""
    if len(entry._saved_as or ()) < 2 or not quantity_of(entry):
        return ""
    return entry.note.partition(", ")[0]


def has_other_shape(found: Comparison) -> bool:
    """Return whether a weight has another shape on the other side."""
    return found._shapes[0] != found._shapes[1]


def rows_of(names: Sequence[str], found: Mapping[str, Comparison], first: Mapping[str, WeightEntry]) -> list[Row]:
    """Return some names in rows, sorted by the first weight of each row.

    A row has repeated layers of equal shapes and dtypes on both sides, or the states of one quantity.
    """
    order = {name: i for i, name in enumerate(names)}
    own: list[Row] = []
    weights: dict[object, list[WeightEntry]] = {}
    states: dict[tuple[str, str], list[WeightEntry]] = {}
    # Layers fold if their weights have one order, whatever moved most.
    for name in filter(order.__contains__, first):
        entry, one = first[name], found[name]
        if has_other_shape(one):
            own.append(Row(name, (entry,)))
        elif quantity := quantity_of(entry):
            keys = name.split(".")
            root = ".".join(keys[: keys.index(GROUPS if GROUPS in keys else STATE) + 1])
            states.setdefault((root, quantity), []).append(entry)
        else:
            weights.setdefault(one._dtypes, []).append(entry)
    for some in weights.values():
        rows = folded(one._with_(tied_to=()) for one in some)
        own += [Row(row.pattern, tuple(first[one.name] for one in row.entries)) for row in rows]
    for (root, quantity), some in states.items():
        is_few = len(some) < _MIN_TOGETHER
        own += [Row(one.name, (one,)) for one in some] if is_few else [Row(f"{root}.*.{quantity}", tuple(some))]
    return sorted(own, key=lambda row: min(order[one.name] for one in row.entries))


_NOT_COMPARED = re.compile(rf"(?<![^.]){GROUPS}[.\[]|']\{{…\}}")
"""Options of optimizers, which change from one checkpoint to the next, and elements of sets."""
_NUMBERS = (bool, int, float, complex)


def sides_of(first: WeightsExplorer, second: WeightsExplorer) -> tuple[str, str]:
    """Return the names of both sides for sentences, short and different."""
    a, b = (one if len(one) <= MAX_INSIDE else file_name(one) for one in (first.source, second.source))
    is_told = a != b and all(0 < len(one) <= MAX_INSIDE for one in (a, b))
    return (legible(a), legible(b)) if is_told else ("the first", "the second")


def without_exempt(names: Matched, first: WeightsExplorer, second: WeightsExplorer) -> tuple[Matched, dict[str, str]]:
    """Return the names without exempt ones, and the reason for each exemption."""
    exempt = {name: one.problem for own in (first, second) for name, one in own.items() if one._is_pending}
    exempt |= _exempt_among(names.missing, first, second, names.pairs.keys())
    exempt |= _exempt_among(names.unexpected, second, first, set(names.pairs.values()))
    missing, unexpected = (tuple(one for one in some if one not in exempt) for some in names[1:3])
    return names._replace(missing=missing, unexpected=unexpected), exempt


def _exempt_among(
    names: tuple[str, ...], own: WeightsExplorer, other: WeightsExplorer, paired: Collection[str]
) -> dict[str, str]:
    # Files keep what is tied once.
    may_be_tied = not other.is_of_module and (own.is_of_module or any(one.extents for one in other.values()))
    exempt: dict[str, str] = {}
    for name in names:
        entry = own[name]
        if other.is_of_module and not own.is_of_module and "_extra_state" in name.split("."):
            exempt[name] = "extra state of a module"
        elif own.is_of_module and not other.is_of_module and entry._saved_as is None:
            exempt[name] = "not persistent" if entry.kind == "buffer" else "not registered"
        elif may_be_tied and any(one in paired for one in entry.tied_to):
            exempt[name] = "tied to another name"
    return exempt


def differing_values(first: WeightsExplorer, second: WeightsExplorer, prefixes: tuple[str, str]) -> dict[str, str]:
    """Return by name the plain values beside the weights that differ, such as "2 → 1"."""
    own, others = (_plain_values(one, prefix) for one, prefix in zip((first, second), prefixes, strict=True))
    both = {name: (a, others[short][1]) for short, (name, a) in own.items() if short in others}
    return {name: f"{quoted(a)} → {quoted(b)}" for name, (a, b) in both.items() if not _is_same(a, b)}


def _plain_values(side: WeightsExplorer, prefix: str) -> dict[str, tuple[str, Any]]:
    pairs = side.metadata.items() if isinstance(side.metadata, Beside) else ()
    plain = ((name, value) for name, value in pairs if is_plain_value(value) and not _NOT_COMPARED.search(name))
    return {name.removeprefix(prefix): (name, value) for name, value in plain}


def _is_same(a: Any, b: Any) -> bool:
    if type(a) is not type(b) and not (type(a) in _NUMBERS and type(b) in _NUMBERS):
        return False
    # NaN is not equal to itself.
    return bool(a == b) or repr(a) == repr(b)
