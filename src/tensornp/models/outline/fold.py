"""Fold names that repeat: ``layers.{0..31}.weight`` stands for 32 weights of one shape and dtype."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import number_ranges
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import names_above

_MAX_DEPTH = 100
"""Keys of a name; the rest of a longer one is one key."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_MAX_NAMED = 3
HOLDERS = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
"""Classes that hold others, and do nothing."""


class Row(NamedTuple):
    """A name or a pattern, and its weights, which are alike; `module` describes one without weights."""

    pattern: str
    entries: tuple[Any, ...]
    unlike: str = ""
    module: str = ""


class Bare(NamedTuple):
    """A module without weights and modules: its name, and its class with settings."""

    name: str
    text: str


@dataclass(slots=True)
class Branch:
    """A part of the names with its weights and branches, or a module without weights."""

    label: str
    entries: tuple[Any, ...] = ()
    below: Sequence[Branch] = ()
    unlike: str = ""
    signature: int = -1
    module: str = ""
    prefixes: tuple[str, ...] = ()
    """Full names of the modules that it stands for."""
    number: int = -1


def folded(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return the weights in rows, with equal numbered parts in one row."""
    return rows_of(tree_of(entries))


def rows_of(tree: Sequence[Branch]) -> list[Row]:
    """Return the weights of a tree in rows; the first row of an odd part tells how it differs."""
    found: list[Row] = []
    before = ""
    for name, branch, unlike in _walk(tree):
        if branch.entries or branch.module:
            found.append(Row(name, branch.entries, unlike if unlike != before else "", branch.module))
            before = unlike
    return found


def _walk(tree: Sequence[Branch], before: str = "", unlike: str = "") -> Iterator[tuple[str, Branch, str]]:
    for branch in tree:
        name, said = before + branch.label, branch.unlike or unlike
        yield name, branch, said
        yield from _walk(branch.below, f"{name}.", said)


def with_modules(weights: Sequence[WeightEntry], classes: Mapping[str, str]) -> list[Any]:
    """Return the weights and each `Bare` module in the order of registration; `classes` are in this order."""
    places = {name: i for i, name in enumerate(classes)}
    filled = {above for one in (*(weight.name for weight in weights), *classes) for above in names_above(one)}
    bare = [Bare(name, text) for name, text in classes.items() if name and name not in filled]
    shown = [one for one in bare if one.text not in HOLDERS]

    def place(one: Any) -> int:
        above = one.name if isinstance(one, Bare) else next(filter(places.__contains__, names_above(one.name)), "")
        return places.get(above, -1)

    return sorted([*weights, *shown], key=place) if shown else list(weights)


def tree_of(entries: Iterable[WeightEntry | Bare]) -> list[Branch]:
    """Return the folded tree of names; a chain of single keys is one branch."""
    root: dict[Any, Any] = {}
    for entry in entries:
        node = root
        for key in entry.name.split(".", _MAX_DEPTH):
            node = node.setdefault(key, {})
        node[None] = entry
    return _branches(root, {}, "")


def _branches(table: dict[Any, Any], known: dict[Any, int], above: str) -> list[Branch]:
    found: list[Branch] = []
    for key, below in table.items():
        if key is None:
            continue
        entry = below.get(None)
        prefix = f"{above}{key}"
        children = _branches(below, known, f"{prefix}.") if entry is None or len(below) > 1 else []
        prefixes = (prefix,) if children else ()
        if entry is None and len(children) == 1:
            branch = children[0]
            branch.label, branch.prefixes = f"{key}.{branch.label}", branch.prefixes or prefixes
        elif isinstance(entry, Bare):
            branch = Branch(key, (), children, module=entry.text, prefixes=prefixes)
        else:
            branch = Branch(key, () if entry is None else (entry,), children, prefixes=prefixes)
        kind = _kind(branch.entries[0]) if branch.entries else branch.module
        rest = branch.label.partition(".")[2]
        facts = (kind, rest, *((child.label, child.signature) for child in branch.below))
        branch.signature = known.setdefault(facts, len(known))
        found.append(branch)
    return _of_children(found)


def _kind(entry: WeightEntry) -> tuple[Any, ...]:
    """Return the facts that folded weights share; reports name the first four."""
    return entry.kind, entry.shape, entry.dtype, entry.note, bool(entry.problem), bool(entry.tied_to)


def _of_children(children: list[Branch]) -> list[Branch]:
    alike: dict[Any, list[Branch]] = {}
    for child in children:
        # Modules without weights stay between their neighbours.
        is_numbered = not child.module and _NUMBER.fullmatch(child.label.partition(".")[0])
        alike.setdefault(child.signature if is_numbered else child.label, []).append(child)
    if len(alike) == len(children):
        return children
    usual = max(alike, key=lambda key: len(alike[key]))
    found = {key: _merged(group) if len(group) > 1 else group[0] for key, group in alike.items()}
    for key, branch in found.items():
        # The tensors of a list need not be alike.
        if key != usual and type(key) is int and (branch.below or "." in branch.label):
            branch.unlike = _difference(_kinds(branch), _kinds(found[usual])) or branch.unlike
    return list(found.values())


def _merged(group: list[Branch]) -> Branch:
    numbers = sorted(int(one.label.partition(".")[0]) for one in group)
    rest = group[0].label.partition(".")[2]
    return put_together("{" + ",".join(number_ranges(numbers)) + "}" + (f".{rest}" if rest else ""), group)


def put_together(label: str, group: Sequence[Branch]) -> Branch:
    """Merge branches with equal content; each part has the entries of all."""
    first = group[0]
    below = [put_together(some[0].label, some) for some in zip(*(one.below for one in group), strict=True)]
    entries = tuple(chain.from_iterable(one.entries for one in group))
    prefixes = tuple(chain.from_iterable(one.prefixes for one in group))
    return Branch(label, entries, below, first.unlike, first.signature, first.module, prefixes)


def _kinds(branch: Branch) -> dict[str, tuple[Any, ...]]:
    """Return the kinds of a branch's first weights by the name after the number."""
    rest = branch.label.partition("}" if branch.label.startswith("{") else ".")[2].lstrip(".")
    found = {"": _kind(branch.entries[0])} if branch.entries else {}
    for name, one, _ in _walk(branch.below):
        if one.entries:
            found[name] = _kind(one.entries[0])
    return {".".join(filter(None, (rest, name))): kind for name, kind in found.items()}


def _difference(own: Mapping[str, tuple[Any, ...]], usual: Mapping[str, tuple[Any, ...]]) -> str:
    """Return a text on the difference from the usual branch, or ``""``."""
    has_unknown = any(kind[1] is None for kind in (*own.values(), *usual.values()))
    if has_unknown or own.keys().isdisjoint(usual) or "" in own.keys() ^ usual.keys():
        return ""
    lacks = [name for name in usual if name not in own]
    extra = [name for name in own if name not in usual]
    said = [f"has no {_named(lacks)}"] if lacks else []
    said += [f"has {_named(extra)} besides"] if extra else []
    other: dict[tuple[Any, Any], list[str]] = {}
    for name in (one for one in own if one in usual):
        for i, pair in enumerate(zip(own[name][:4], usual[name][:4], strict=True)):
            # States have the shapes of their parameters.
            if pair[0] != pair[1] and not (i == 1 and own[name][0] == "state"):
                other.setdefault(pair, []).append(name or "it")
    for (a, b), names in other.items():
        verb = "is" if len(names) == 1 else "are"
        facts = ["not noted" if fact in ("", None) else str(fact) for fact in (a, b)]
        said.append(f"{_named(names)} {verb} {facts[0]}, usually {facts[1]}")
    return "; ".join(said[:_MAX_NAMED]) + (f"; and {len(said) - _MAX_NAMED:,} more" if len(said) > _MAX_NAMED else "")


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def class_said(branch: Branch, classes: Mapping[str, str]) -> str:
    """Return the common class of the modules of a branch, such as ``6 × BertLayer``, if its name differs."""
    if branch.module:
        return branch.module
    found = {classes.get(prefix, "") for prefix in branch.prefixes}
    if len(found) != 1 or found & {"", *HOLDERS}:
        return ""
    (said,) = found
    key = branch.prefixes[0].rpartition(".")[2]
    if len(branch.prefixes) > 1 and key.isdecimal():
        return f"{len(branch.prefixes):,} × {said}"
    return "" if key.replace("_", "").lower() == said.lower() else said


def distinguishing(name: str, entries: Sequence[Any]) -> str:
    """Return the keys of a name that differ among the weights of a fold."""
    # The outermost number differs between the first and the last, the innermost one between the first two.
    keys, first, *others = (one.split(".") for one in (name, *(one.name for one in (*entries[:2], entries[-1]))))
    places = [i for other in others for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b]
    return ".".join(keys[max(min(places) - 1, 0) : max(places) + 1]) if places else name
