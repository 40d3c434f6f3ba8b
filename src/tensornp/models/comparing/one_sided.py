"""Find weights that need not be in both, ties, and plain values that differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.text import legible, quoted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.repeated import same_elements_as
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside
from tensornp.models.formats.dcp.values import ByteValues
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import MAX_INSIDE, file_name, shown_name
from tensornp.models.optimizers import GROUPS

_EXTRA_STATE = "_extra_state"
"""Under which `torch.nn.Module.state_dict` keeps what a module makes when it is asked."""
_OF_SET = "']{…}"
_GROUP = re.compile(rf"(?<![^.]){GROUPS}[.\[]")
"""Options of optimizers, which change from one checkpoint to the next."""
_NUMBERS = (bool, int, float, complex)


def sides_of(first: WeightsExplorer, second: WeightsExplorer) -> tuple[str, str]:
    """Return the names of both sides for sentences, short and different."""
    a, b = (one if len(one) <= MAX_INSIDE else file_name(one) for one in (first.source, second.source))
    is_told = a != b and all(0 < len(one) <= MAX_INSIDE for one in (a, b))
    return (legible(a), legible(b)) if is_told else ("the first", "the second")


def without_exempt(names: Matched, first: WeightsExplorer, second: WeightsExplorer) -> tuple[Matched, dict[str, str]]:
    """Return the names without exempt ones, and the reason for each exemption."""
    sides = sides_of(first, second)
    exempt: dict[str, str] = {}
    for own, side in zip((first, second), sides, strict=True):
        exempt |= {name: f"without values in {side} ({one.problem})" for name, one in own.items() if one._is_pending}
    kept: list[tuple[str, ...]] = []
    for own, other, alone, paired, side in (
        (first, second, names.missing, names.pairs.keys(), sides[0]),
        (second, first, names.unexpected, set(names.pairs.values()), sides[1]),
    ):
        is_of_file = any(one.extents for one in other.values())
        why = {name: _why_alone(own, other.is_of_module, is_of_file, name, paired) for name in alone}
        exempt |= {name: f"only in {side}, {said}" for name, said in why.items() if said}
        kept.append(tuple(name for name in alone if not why[name]))
    return names._replace(missing=kept[0], unexpected=kept[1]), exempt


def _why_alone(own: WeightsExplorer, is_other_module: bool, is_other_file: bool, name: str, paired: Any) -> str:
    """Return why a weight may be on one side only, ``""`` if it is a difference."""
    if is_other_module:
        is_extra = not own.is_of_module and _EXTRA_STATE in name.split(".")
        return "the extra state of a module" if is_extra else ""
    entry = own[name]
    if own.is_of_module and entry._saved_as is None:
        return "not persistent" if entry.kind == "buffer" else "not registered"
    # Files keep what is tied once.
    if own.is_of_module or is_other_file:
        twin = next((one for one in (*entry.tied_to, *same_elements_as(entry)) if one in paired), None)
        return f"tied to {shown_name(twin)}" if twin is not None else ""
    return ""


def ties_of(
    first: WeightsExplorer, second: WeightsExplorer, pairs: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return further names of weights with the first name, and weights tied to others now."""
    own = _first_names(first, {a: a for a in pairs})
    others = _first_names(second, {b: a for a, b in pairs.items()})
    place = {a: i for i, a in enumerate(pairs)}
    retied: set[str] = set()
    for a, b in pairs.items():
        if own[a] != others[a] and _is_known(first[a]) and _is_known(second[b]):
            retied |= {a, own[a], others[a]}
    further = [a for a in pairs if a not in retied and not own[a] == others[a] == a]
    tied = {a: min(own[a], others[a], key=place.__getitem__) for a in further}
    return tied, tuple(a for a in pairs if a in retied)


def _is_known(entry: Any) -> bool:
    """Return whether ties of a weight are known; a file may have copies instead."""
    return entry.tensor is not None or bool(entry.tied_to)


def _first_names(explorer: WeightsExplorer, names: Mapping[str, str]) -> dict[str, str]:
    """Return the first name of the same elements for each weight.

    `names` are those of the first side.
    """
    found: dict[str, str] = {}
    for name, own in names.items():
        entry = explorer[name]
        same = (names[one] for one in (*entry.tied_to, *same_elements_as(entry)) if one in names)
        found[own] = next((found[one] for one in same if one in found), own)
    return found


def differing_values(first: WeightsExplorer, second: WeightsExplorer, prefixes: tuple[str, str]) -> dict[str, str]:
    """Return by name the plain values beside the weights that differ, such as "2 → 1".

    Options of optimizers and elements of sets are not compared.
    """
    own, others = (_plain_values(one, prefix) for one, prefix in zip((first, second), prefixes, strict=True))
    return {
        name: f"{quoted(a)} → {quoted(others[short][1])}"
        for short, (name, a) in own.items()
        if short in others and not _is_same(a, others[short][1])
    }


def _plain_values(side: WeightsExplorer, prefix: str) -> dict[str, tuple[str, Any]]:
    """Return names and values in a container, by the names without the prefix."""
    held = Beside(side.metadata.beside()) if isinstance(side.metadata, ByteValues) else side.metadata
    if not isinstance(held, Beside):
        return {}
    return {
        name.removeprefix(prefix): (name, value)
        for name, value in held.items()
        if is_plain_value(value) and not (_GROUP.search(name) or _OF_SET in name)
    }


def _is_same(a: Any, b: Any) -> bool:
    if type(a) is not type(b) and not (type(a) in _NUMBERS and type(b) in _NUMBERS):
        return False
    # NaN is not equal to itself.
    return bool(a == b) or repr(a) == repr(b)
