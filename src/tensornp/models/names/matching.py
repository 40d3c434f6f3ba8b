"""Match the names of two models despite prefixes and spellings of libraries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import islice, product
from typing import NamedTuple

_WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
"""Names that wrappers put before those of the wrapped module."""
_PREFIXES = (*_WRAPPERS, "model.", "base_model.model.", "state_dict.", "model_state_dict.")
"""Prefixes that wrappers and training scripts put before the names."""
_MAX_NAMES = 2000

_SPELLINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"^({'|'.join(map(re.escape, _PREFIXES))})+", ""),
        (rf"(?<=\.)({'|'.join(map(re.escape, _WRAPPERS))})+", ""),
        # PEFT saves an adapter without its name, such as "default", and what it wraps without what wraps it.
        (r"\.(lora_[AB])\.[^.]+(?=\.weight$)", r".\1"),
        (r"\.(lora_embedding_[AB])\.[^.]+$", r".\1"),
        (r"\.lora_magnitude_vector\.[^.]+(\.weight)?$", ".lora_magnitude_vector"),
        (r"\.modules_to_save\.[^.]+(?=\.)", ""),
        (r"\.base_layer(?=\.)", ""),
        # torch.nn.utils.weight_norm, and its successor in torch.nn.utils.parametrizations.
        (r"\bparametrizations\.(\w+)\.original0$", r"\1_g"),
        (r"\bparametrizations\.(\w+)\.original1$", r"\1_v"),
    )
)
"""Patterns of names that libraries write in several ways, and one way to write them all."""


class Matched(NamedTuple):
    """Pairs of names, and names on one side only."""

    pairs: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    prefixes: tuple[str, str]


def matched(first: Collection[str] | Mapping[str, str], second: Collection[str] | Mapping[str, str]) -> Matched:
    """Match names unchanged, or in a common spelling if that gives more pairs.

    A common prefix is left out, and so is what wrappers put into names. A mapping says by what else each name is found.
    """
    pairs, prefixes = _paired(_by_key(first), _by_key(second))
    if len(pairs) < min(len(first), len(second)):
        spelled = _paired(_by_key(first, _spelled), _by_key(second, _spelled))
        pairs, prefixes = max((pairs, prefixes), spelled, key=lambda found: len(found[0]))
    found = set(pairs.values())
    return Matched(
        pairs,
        tuple(name for name in first if name not in pairs),
        tuple(name for name in second if name not in found),
        prefixes,
    )


def _paired(own: dict[str, str], others: dict[str, str]) -> tuple[dict[str, str], tuple[str, str]]:
    """Return pairs with a common key, and the pair of prefixes that gives most."""
    best: tuple[int, tuple[str, str]] = (-1, ("", ""))
    candidates = product(_prefixes_of(own, others), _prefixes_of(others, own))
    for a, b in sorted(candidates, key=lambda pair: bool(pair[0]) + bool(pair[1])):
        common = len(_without(own, a).keys() & _without(others, b).keys())
        if common > best[0]:
            best = common, (a, b)
    shorter, found = _without(own, best[1][0]), _without(others, best[1][1])
    return {own[key]: others[found[short]] for short, key in shorter.items() if short in found}, best[1]


def _by_key(names: Collection[str] | Mapping[str, str], turned: Callable[[str], str] = str) -> dict[str, str]:
    """Map a key to each name; the key is the name itself if two names share one."""
    keys = {name: turned(names[name] if isinstance(names, Mapping) else name) for name in names}
    times = Counter([*keys.values(), *(name for name, key in keys.items() if key != name)])
    return {key if times[key] == 1 else name: name for name, key in keys.items()}


def _spelled(name: str) -> str:
    for pattern, replacement in _SPELLINGS:
        name = pattern.sub(replacement, name)
    return name


def _prefixes_of(names: Collection[str], others: Collection[str]) -> list[str]:
    """Return the empty prefix, and what most often stands before names of the other side."""
    found: Counter[str] = Counter()
    for name in islice(names, _MAX_NAMES):
        places = (i + 1 for i, letter in enumerate(name) if letter == ".")
        found.update(name[:i] for i in places if name[i:] in others)
    most = max(found.values(), default=0)
    often = [prefix for prefix, times in found.items() if times == most]
    known = [prefix for prefix in often if prefix.startswith(_PREFIXES)]
    return ["", *(often if len(often) == 1 else known[:1])]


def _without(names: Collection[str], prefix: str) -> dict[str, str]:
    """Map names without the prefix to names; a taken short name keeps its prefix."""
    kept = {name for name in names if not name.startswith(prefix)}
    short = {name: name.removeprefix(prefix) for name in names}
    return {name if one in kept else one: name for name, one in short.items()}
