"""Names that repeat: ``layers.{0..31}.weight`` stands for 32 weights of one shape and dtype."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import number_ranges
from tensornp.models.entries.entry import WeightEntry

_MIN_FOLDED = 2
_MAX_DIGITS = 18
_MAX_COMPARED = 200
"""Weights of a part that are compared with those of its neighbours."""
_MAX_NAMED = 3
"""Weights that are named where one part differs from the others."""
_NUM_SAID = 4
"""Facts of a kind that are said where they differ."""
_FIGURES = re.compile(r", (?:scale|zero point) [^,]*")
"""What each quantized weight has of its own."""
_FOLDED = re.compile(r"\{[\d.,]+\}")
_Kind = tuple[Any, ...]


class Row(NamedTuple):
    """One name, or a pattern of names, and its weights, which are alike."""

    pattern: str
    entries: tuple[Any, ...]
    unlike: str = ""


@dataclass(slots=True)
class Branch:
    """A part of the names, and what is below it.

    Attributes
    ----------
    label : str
        What the names have there; ``{0..31}`` for numbers below which all is alike.
    entries : tuple
        The weights of this very name: one, or one for each number in it.
    below : sequence of Branch
        What the names go on with.
    unlike : str
        How it differs from the numbers beside it.
    count : int
        How many parts, which are alike, it stands for.
    """

    label: str
    entries: tuple[Any, ...] = ()
    below: Sequence[Branch] = ()
    unlike: str = ""
    signature: int = -1
    count: int = 1


def folded(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return the weights in rows: numbered parts that consist of the same are folded, the others stand alone."""
    return rows_of(tree_of(entries))


def rows_of(tree: Sequence[Branch]) -> list[Row]:
    """Return the weights of a tree in rows."""
    rows: list[Row] = []
    stack = [("", "", branch) for branch in reversed(tree)]
    while stack:
        before, unlike, branch = stack.pop()
        pattern, unlike = before + branch.label, branch.unlike or unlike
        if branch.entries:
            rows.append(Row(pattern, branch.entries, unlike))
        stack.extend((f"{pattern}.", unlike, child) for child in reversed(branch.below))
    return rows


def tree_of(entries: Iterable[WeightEntry]) -> list[Branch]:
    """Return the weights as a tree of their names, folded; without recursion, since a name may have any number of dots.

    What alone goes on from a name is one branch with it: ``conv1.weight`` where there is no bias.
    """
    signatures: dict[Any, int] = {}
    root = Branch("")
    order, stack = [], [(root, _nested(entries))]
    while stack:
        branch, node = stack.pop()
        order.append(branch)
        own = node.pop((), None)
        branch.entries = () if own is None else (own,)
        children = branch.below = []
        for key, value in node.items():
            label, below = _chain(key, value)
            child = Branch(label)
            children.append(child)
            if type(below) is dict:
                stack.append((child, below))
            else:
                child.entries = (below,)
                child.signature = _signature(child, signatures)
    for branch in reversed(order):
        branch.below = _of_children(branch.below)
        if not branch.entries and len(branch.below) == 1 and branch is not root:
            only = branch.below[0]
            branch.label, branch.entries = f"{branch.label}.{only.label}", only.entries
            branch.below, branch.unlike, branch.count = only.below, only.unlike, only.count
        branch.signature = _signature(branch, signatures)
    return list(root.below)


def repeated_parts(tree: Sequence[Branch]) -> Iterator[tuple[str, Branch, list[WeightEntry]]]:
    """Yield the outermost parts that are alike and hold several weights, as layers do: name, branch, all weights."""
    stack = [("", branch) for branch in reversed(tree)]
    while stack:
        before, branch = stack.pop()
        if branch.count == 1:
            stack.extend((f"{before}{branch.label}.", child) for child in reversed(branch.below))
        elif branch.below:
            below, held = [branch], list[WeightEntry]()
            while below:
                one = below.pop()
                held.extend(one.entries)
                below.extend(one.below)
            yield before + branch.label, branch, held


def _nested(entries: Iterable[WeightEntry]) -> dict[Any, Any]:
    """Return the weights by their keys, in dictionaries; one whose name others go on from is that of no key, ()."""
    root: dict[Any, Any] = {}
    for entry in entries:
        *keys, last = entry.name.split(".")
        node = root
        for key in keys:
            child = node.get(key)
            if type(child) is not dict:
                child = node[key] = {} if child is None else {(): child}
            node = child
        if type(node.get(last)) is dict:
            node[last][()] = entry
        else:
            node[last] = entry
    return root


def _chain(key: str, value: Any) -> tuple[str, Any]:
    """Return the keys that alone go on from one, and what the last of them has."""
    if type(value) is not dict or len(value) > 1:
        return key, value
    keys = [key]
    while type(value) is dict and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return ".".join(keys), value


def _signature(branch: Branch, known: dict[Any, int]) -> int:
    """Return a number that branches have in common below whose first key all is alike."""
    own_kind = _kind(branch.entries[0]) if branch.entries else None
    tail = branch.label.partition(".")[2]
    facts = (own_kind, tail, *((child.label, child.signature) for child in branch.below))
    return known.setdefault(facts, len(known))


def _kind(entry: WeightEntry) -> _Kind:
    """Return what weights have in common that may be folded."""
    related = tuple(one.relation for one in entry.related)
    note = _FIGURES.sub("", entry.note) if entry.note else ""
    return entry.kind, entry.shape, entry.dtype, note, bool(entry.problem), bool(entry.tied_to), related


def note_of(entries: Sequence[WeightEntry]) -> str:
    """Return what is said of all weights of a row: without the figures, where these differ."""
    first = entries[0].note
    return first if all(one.note == first for one in entries) else _FIGURES.sub("", first)


def _of_children(children: Sequence[Branch]) -> Sequence[Branch]:
    """Return the children in their order; those with numbers that are alike as one, at the place of the first."""
    alike: dict[Any, list[Branch]] = {}
    for child in children:
        alike.setdefault(child.signature if _is_number(child.label.partition(".")[0]) else child.label, []).append(
            child
        )
    if len(alike) == len(children):
        return children
    usual = max(alike, key=lambda key: len(alike[key]))
    found = {key: _merged(group) if len(group) >= _MIN_FOLDED else group[0] for key, group in alike.items()}
    numbered = {key: _patterns(one) for key, one in found.items() if type(key) is int}
    where = "elsewhere" if len(numbered) == 2 else "in most others"
    for key, own in numbered.items():
        if key != usual:
            found[key].unlike = _difference(own, numbered[usual], where) or found[key].unlike
    return list(found.values())


def num_keys(label: str) -> int:
    """Return how many keys of a name a label stands for."""
    return _FOLDED.sub("", label).count(".") + 1


def _is_number(key: str) -> bool:
    """Return whether a key is a number that no other key is: one with a leading zero would be taken for another."""
    return key.isdecimal() and key.isascii() and len(key) <= _MAX_DIGITS and str(int(key)) == key


def _merged(group: list[Branch]) -> Branch:
    """Return branches that are alike as one."""
    numbers = sorted(int(one.label.partition(".")[0]) for one in group)
    rest = group[0].label.partition(".")[2]
    return put_together("{" + ",".join(number_ranges(numbers)) + "}" + (f".{rest}" if rest else ""), group)


def put_together(label: str, group: Sequence[Branch]) -> Branch:
    """Return branches as one, below which there is the same: each part of it has the entries of all."""
    top = Branch(label)
    stack: list[tuple[Branch, Sequence[Branch]]] = [(top, group)]
    while stack:
        target, same = stack.pop()
        target.entries = tuple(chain.from_iterable(one.entries for one in same))
        target.signature, target.unlike = same[0].signature, same[0].unlike
        target.count = sum(one.count for one in same)
        together = list(zip(*(one.below for one in same), strict=True))
        target.below = [Branch(children[0].label) for children in together]
        stack.extend(zip(target.below, together, strict=True))
    return top


def _difference(own: Mapping[str, _Kind], usual: Mapping[str, _Kind], where: str) -> str:
    """Return in a few words how a branch differs from the usual one; empty for another kind of layer."""
    lacks = [pattern for pattern in usual if pattern not in own]
    extra = [pattern for pattern in own if pattern not in usual]
    if own.keys().isdisjoint(usual) or not all(lacks + extra):
        return ""
    said = [f"has no {_named(lacks)}"] if lacks else []
    said += [f"has {_named(extra)} besides"] if extra else []
    said += _unlike(own, usual, where)
    more = len(said) - _MAX_NAMED
    return "; ".join([*said[:_MAX_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def _unlike(own: Mapping[str, _Kind], usual: Mapping[str, _Kind], where: str) -> Iterator[str]:
    """Yield which weights are of another kind, shape or dtype, or have another note."""
    found: dict[tuple[Any, Any], list[str]] = {}
    for pattern, mine in own.items():
        # States have the shapes of their parameters.
        facts = zip(mine[:_NUM_SAID], usual.get(pattern, mine)[:_NUM_SAID], strict=True)
        for i, (a, b) in enumerate(facts):
            if a != b and not (i == 1 and mine[0] == "state"):
                # A note may be empty; a shape or a dtype is unknown if the file is not there. That of a number is ().
                unknown = "plain" if i == _NUM_SAID - 1 else "not known"
                pair = unknown if a in (None, "") else a, unknown if b in (None, "") else b
                found.setdefault(pair, []).append(pattern)
    for (a, b), patterns in found.items():
        verb = "is" if len(patterns) == 1 else "are"
        yield f"{_named([one or 'it' for one in patterns])} {verb} {a}, {where} {b}"


def _named(patterns: Sequence[str]) -> str:
    """Return some names, and how many more there are."""
    more = len(patterns) - _MAX_NAMED
    return ", ".join(patterns[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _patterns(branch: Branch) -> dict[str, _Kind]:
    """Return the kinds of the first weights of a branch, by the rest of their names."""
    rest = branch.label.partition("}")[2] if branch.label.startswith("{") else branch.label.partition(".")[2]
    stack = [(rest.lstrip("."), branch)]
    found: list[tuple[str, _Kind]] = []
    while stack and len(found) < _MAX_COMPARED:
        before, node = stack.pop()
        if node.entries:
            found.append((before, _kind(node.entries[0])))
        stack.extend((f"{before}.{child.label}" if before else child.label, child) for child in reversed(node.below))
    return dict(found)
