"""What only one of two models has and the other need not have, or has no values of yet: neither is a difference."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tensornp.core.lowlevel.text import legible
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.repeated import same_elements_as
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.made import is_maybe_none
from tensornp.models.live.torch_ao import output_scheme
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import MAX_INSIDE, file_name, shown_name

_EXTRA_STATE = "_extra_state"
"""Under which `torch.nn.Module.state_dict` keeps what a module makes when it is asked."""
_SCHEME = ("scale", "zero_point")
"""What a state dict of a packed module has besides, which are no tensors of the module."""


def without_exempt(
    names: Matched, explorers: tuple[WeightsExplorer, WeightsExplorer]
) -> tuple[Matched, dict[str, str]]:
    """Return the names without those that need not be in both, and of each of these why."""
    first, second = explorers
    sides = sides_of(first, second)
    kept: list[tuple[str, ...]] = []
    exempt = dict(_pending(explorers))
    for own, other, alone, paired, side in (
        (first, second, names.missing, names.pairs.keys(), sides[0]),
        (second, first, names.unexpected, set(names.pairs.values()), sides[1]),
    ):
        is_of_file = any(one.extents for one in other.values())
        why = {name: _why_alone(own, other, name, paired, is_of_file=is_of_file) for name in alone}
        exempt |= {name: f"only in {side}, {said}" for name, said in why.items() if said}
        kept.append(tuple(name for name in alone if not why[name]))
    return names._replace(missing=kept[0], unexpected=kept[1]), exempt


def sides_of(first: WeightsExplorer, second: WeightsExplorer) -> tuple[str, str]:
    """Return what two are called in sentences: as they were given, if that tells them apart and is no long text."""
    a, b = (one if len(one) <= MAX_INSIDE else file_name(one) for one in (first.source, second.source))
    is_told = a != b and all(0 < len(one) <= MAX_INSIDE for one in (a, b))
    return (legible(a), legible(b)) if is_told else ("the first", "the second")


def _pending(explorers: tuple[WeightsExplorer, WeightsExplorer]) -> Iterator[tuple[str, str]]:
    """Yield what has no values yet, and on which side; the other may have them, under names of their own."""
    sides = [{name: one.problem for name, one in explorer.items() if one._is_pending} for explorer in explorers]
    for name, problem in (sides[1] | sides[0]).items():
        where = [side for own, side in zip(sides, sides_of(*explorers), strict=True) if name in own]
        yield name, f"without values in {'both' if len(where) > 1 else where[0]} ({problem})"


def _why_alone(
    own: WeightsExplorer, other: WeightsExplorer, name: str, paired: Collection[str], *, is_of_file: bool
) -> str:
    """Return why a weight need not be in the other; empty where it is a difference, as between any two modules.

    `is_of_file` says that of the other.
    """
    if other.is_of_module:
        if not own.is_of_module and _EXTRA_STATE in name.split("."):
            return "where it is the extra state of a module"
        module, _, last = name.rpartition(".")
        weight = f"{module}.weight" if module else "weight"
        is_asked = not own.is_of_module and last in _SCHEME and weight in other
        scheme = output_scheme(other[weight]) if is_asked else None
        is_same = scheme is not None and _is_number(own[name], scheme[_SCHEME.index(last)])
        return "where it is a number that a packed module keeps apart from its weights" if is_same else ""
    entry = own[name]
    if _is_none(entry):
        return "where it is none"
    if own.is_of_module and entry._saved_as is None:
        return "not persistent" if entry.kind == "buffer" else "not registered"
    # Files keep what is tied once.
    if own.is_of_module or is_of_file:
        twin = next((one for one in (*entry.tied_to, *same_elements_as(entry)) if one in paired), None)
        return f"tied to {shown_name(twin)}" if twin is not None else ""
    return ""


def _is_number(entry: WeightEntry, number: float) -> bool:
    """Return whether a weight is a single number, which a module has as one of Python."""
    try:
        value = entry.to_numpy()
    except TensornpError:
        return False
    return bool(value.size == 1 and value.item() == value.dtype.type(number))


def _is_none(entry: WeightEntry) -> bool:
    """Return whether a weight that may be there is not, which is told by making it."""
    try:
        return is_maybe_none(entry._source) and not entry.stats().count
    except TensornpError:
        return False
