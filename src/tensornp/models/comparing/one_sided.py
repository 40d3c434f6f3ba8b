"""Find weights that need not be in both, and plain values that differ."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from tensornp.core.lowlevel.text import legible, quoted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import MAX_INSIDE, file_name
from tensornp.models.optimizers import GROUPS

_EXTRA_STATE = "_extra_state"
"""Under which `torch.nn.Module.state_dict` keeps what a module makes when it is asked."""
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
    """Return why some names may be on one side only."""
    # Files keep what is tied once.
    may_be_tied = not other.is_of_module and (own.is_of_module or any(one.extents for one in other.values()))
    exempt: dict[str, str] = {}
    for name in names:
        entry = own[name]
        if other.is_of_module and not own.is_of_module and _EXTRA_STATE in name.split("."):
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
    """Return names and values in a container, by the names without the prefix."""
    pairs = side.metadata.items() if isinstance(side.metadata, Beside) else ()
    plain = ((name, value) for name, value in pairs if is_plain_value(value) and not _NOT_COMPARED.search(name))
    return {name.removeprefix(prefix): (name, value) for name, value in plain}


def _is_same(a: Any, b: Any) -> bool:
    if type(a) is not type(b) and not (type(a) in _NUMBERS and type(b) in _NUMBERS):
        return False
    # NaN is not equal to itself.
    return bool(a == b) or repr(a) == repr(b)
