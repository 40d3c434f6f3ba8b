"""Which weights of two models are the same by their names, though one of them has a common prefix."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

PREFIXES = ("model.", "module.", "_orig_mod.", "base_model.model.", "state_dict.", "model_state_dict.", "ema.")
"""What wrappers and training scripts put before the names."""


_MAX_PREFIXES = 3
"""How many of them may follow each other."""


class Matched(NamedTuple):
    """Pairs of names, and what one side alone has.

    Attributes
    ----------
    pairs : dict of str to str
        The name in the second by that in the first.
    missing, unexpected : tuple of str
        Names that only the first has, and those that only the second has.
    prefixes : tuple of str
        What was taken off the names of the first and of the second.
    """

    pairs: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    prefixes: tuple[str, str]


def matched(first: Collection[str], second: Collection[str]) -> Matched:
    """Return the names that belong together: as they are, unless more do so without a common prefix."""
    best: tuple[int, tuple[str, str]] = (-1, ("", ""))
    for a, b in _candidates(first, second):
        common = len(_without(first, a).keys() & _without(second, b).keys())
        if common > best[0]:
            best = common, (a, b)
    prefixes = best[1]
    own, others = _without(first, prefixes[0]), _without(second, prefixes[1])
    pairs = {name: others[short] for short, name in own.items() if short in others}
    found = set(pairs.values())
    return Matched(
        pairs,
        tuple(name for name in first if name not in pairs),
        tuple(name for name in second if name not in found),
        prefixes,
    )


def _candidates(first: Collection[str], second: Collection[str]) -> list[tuple[str, str]]:
    """Return the prefixes that are worth a try, none at all first, and then those of one side."""
    own, others = _prefixes_of(first), _prefixes_of(second)
    pairs = [(a, b) for a in own for b in others if a != b or not a]
    return sorted(pairs, key=lambda pair: bool(pair[0]) + bool(pair[1]))


def _prefixes_of(names: Collection[str]) -> list[str]:
    """Return what some of the names begin with: known prefixes, also several of them."""
    found = [""]
    for _ in range(_MAX_PREFIXES):
        longer = (begun + prefix for begun in found for prefix in PREFIXES)
        found += [one for one in dict.fromkeys(longer) if one not in found and any(n.startswith(one) for n in names)]
    return found


def _without(names: Collection[str], prefix: str) -> dict[str, str]:
    """Return the names by what they are without the prefix; where that is another name, the one that had it stays."""
    found = {name: name for name in names if not prefix or not name.startswith(prefix)}
    for name in names if prefix else ():
        if name.startswith(prefix):
            short = name.removeprefix(prefix)
            found[name if short in found else short] = name
    return found
