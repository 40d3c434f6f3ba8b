"""What two containers hold beside their weights under one name: numbers, texts and None, which may be others."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.comparing.one_sided import sides_of
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside
from tensornp.models.formats.dcp.values import ByteValues
from tensornp.models.names.matching import matched
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS

_OF_SET = "']{…}"
_KEYS = re.compile(rf"(?:^|\.){GROUPS}\.\d+\.(?:{PARAMS}|{NAMES})\.")
_GROUP = re.compile(rf"(?:^|\.){GROUPS}\.\d+\.")
_LIVE_GROUP = re.compile(rf"(?<![^.]){GROUPS}\[(\d+)\]\.")
_NUMBERS = (bool, int, float, complex)


def beside(first: WeightsExplorer, second: WeightsExplorer, prefixes: tuple[str, str]) -> dict[str, str]:
    """Return by name what is another in the second, without the prefixes of both; nothing of the user's runs.

    What groups of optimizers say changes from step to step, what a file says of itself is none of its container, and
    sets have no order by which to compare them.
    """
    own, others = _both(first, second, prefixes)
    return {
        name: f"{quoted(value)} → {quoted(others[name])}"
        for name, value in own.items()
        if name in others
        and not (_GROUP.search(name) or _is_of_set(name, own, others) or _is_same(value, others[name]))
    }


def not_compared(first: WeightsExplorer, second: WeightsExplorer, prefixes: tuple[str, str]) -> dict[str, str]:
    """Return by name why what is beside the weights was not compared: its class, or the one side that has it."""
    own, others = both = _both(first, second, prefixes)
    has_same_sets = _in_sets(own) == _in_sets(others)
    told: dict[str, str] = {}
    for name in dict.fromkeys([*own, *own.others, *others, *others.others]):
        has = [name in one or name in one.others for one in both]
        if _is_of_set(name, *both):
            told |= {} if has_same_sets else {name: "in sets that are not alike"}
        elif not all(has):
            # A saved one has the numbers of its parameters in them, which a live one does not tell.
            told |= {} if _KEYS.search(name) else {name: f"only in {sides_of(first, second)[has[1]]}"}
        elif cls := own.others.get(name) or others.others.get(name):
            told[name] = f"of the class {cls}"
        elif not (is_plain_value(own[name]) and is_plain_value(others[name])):
            told[name] = "no plain value"
        elif _GROUP.search(name) and not _is_same(own[name], others[name]):
            told[name] = "another value in the groups of an optimizer"
    return told


def _both(first: WeightsExplorer, second: WeightsExplorer, prefixes: tuple[str, str]) -> tuple[Beside, Beside]:
    """Return what both hold besides, if both are containers; nothing of one that is not."""
    own, others = (
        Beside(one.beside()) if type(one) is ByteValues else one for one in (first.metadata, second.metadata)
    )
    both = (own, others) if type(own) is Beside and type(others) is Beside else (Beside(), Beside())
    own, others = _as_saved(both[0]), _as_saved(both[1])
    return own, _named_as(own, others, prefixes)


def _named_as(own: Beside, others: Beside, prefixes: tuple[str, str]) -> Beside:
    """Return what the second holds by the names that the first has for it, where they are one without the prefixes.

    Where no name is that of another, and no weight tells the prefixes, the names themselves do: no step was made yet.
    """
    names, taken = dict.fromkeys([*own, *own.others]), dict.fromkeys([*others, *others.others])
    if not any(prefixes) and names.keys().isdisjoint(taken):
        prefixes = matched(names.keys(), taken.keys()).prefixes
    by_short = {name.removeprefix(prefixes[0]): name for name in names}

    def called(name: str) -> str:
        found = by_short.get(name.removeprefix(prefixes[1]), name)
        return name if name in names or found in taken else found

    made = Beside({called(name): value for name, value in others.items()})
    made.of_sets = {called(name) for name in others.of_sets}
    made.others = {called(name): cls for name, cls in others.others.items()}
    return made


def _as_saved(held: Beside) -> Beside:
    """Return what the groups of live optimizers say under the names that their state dicts have."""
    made = Beside()
    made.of_sets, made.others = held.of_sets, held.others
    for name, value in held.items():
        saved, is_live = _LIVE_GROUP.subn(rf"{GROUPS}.\1.", name)
        is_row = is_live and type(value) in (tuple, list)
        made |= {f"{saved}.{i}": one for i, one in enumerate(value)} if is_row else {saved: value}
    return made


def _is_of_set(name: str, *both: Beside) -> bool:
    return _OF_SET in name or any(name in one.of_sets for one in both)


def _in_sets(held: Beside) -> Counter[str]:
    return Counter(repr(value) for name, value in held.items() if _is_of_set(name, held) and is_plain_value(value))


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two are the same value; what is no plain one is not looked into."""
    if not (is_plain_value(a) and is_plain_value(b)):
        return True
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        # What is no number is not equal to itself.
        return bool(a == b) or (type(a) in (float, complex) and type(b) is type(a) and repr(a) == repr(b))
    return type(a) is type(b) and bool(a == b)
