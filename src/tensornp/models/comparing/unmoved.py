"""Say why weights did not move: one memory, frozen, no gradient, or a gradient of 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.states import quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.gradients import changes_nothing, gradients_of

_NAME, _KEY = r"[^\W\d]\w*", r"\[[^\]]*\]"
_OPTIMIZER = re.compile(r"(.+?)(?=\.state\[\1\.param_groups\b)")
"""What reaches an optimizer, in the expression of one of its states."""
_FROZEN = "frozen (requires_grad=False)"


class Unmoved(NamedTuple):
    """Some weights that did not move, or none where they are only counted, and what is said before and after them.

    `has_gradients` says that gradients had come, which did not move them.
    """

    before: str
    names: list[str]
    after: str = ""
    has_gradients: bool = False


class _Parameter(NamedTuple):
    """A trained parameter that did not move: the norm of its gradient, None without one.

    `lost_in` is its dtype where the gradient is too small to change it.
    """

    norm: float | None
    lost_in: str = ""


@outside_modes
def memory_told(found: WeightsComparison) -> tuple[str, str]:
    """Return that both sides are one memory, and what would not be; or that some weights are. Empty where none is."""
    num = len(found._same_memory)
    if not num:
        return "", ""
    are = "both sides are the same memory" if num == len(found) else f"{counted(num, 'weight')} of both sides "
    if num < len(found):
        return are + ("is one memory" if num == 1 else "are the same memory"), ""
    sides = (found._second, found._first)
    live = (f"{name}.state_dict()" for name in map(_live_name, sides) if name)
    typed = (one.source for one in sides if one.source.endswith(".state_dict()"))
    if shared := next(live, "") or next(typed, ""):
        return are, f": {shared} shares it; copy.deepcopy({shared}) before the step keeps what was"
    return are, f": a copy that is made before a step, as by {_copied(found._first)}, keeps what was"


def _live_name(side: WeightsExplorer) -> str:
    """Return what reaches a model or an optimizer that a side is, or that alone is in it; empty where there is none."""
    codes = [entry.code for entry in side.values() if entry.code]
    if not codes:
        return "model" if "" in side.classes else ""
    found = _OPTIMIZER.match(codes[0])
    if side.classes:
        root = re.escape(side.source) if _is_reached_by(side, side.source) else _NAME
        depth = 0 if "" in side.classes else min(side.classes, key=len).count(".") + 1
        found = re.match(f"{root}(?:{_KEY}){{{depth}}}", codes[0])
    return found[0] if found and all(code.startswith((f"{found[0]}.", f"{found[0]}[")) for code in codes) else ""


def _copied(side: WeightsExplorer) -> str:
    """Return what copies a side: copy.deepcopy refuses what autograd has computed."""
    held = (one.tensor for one in side.values() if is_of_torch(one.tensor))
    try:
        are_leaves = all(one.is_leaf for one in held)
    except RuntimeError:
        # Of a view that it no longer knows how to differentiate, torch does not say.
        are_leaves = False
    if not are_leaves:
        return ".clone() of each"
    return f"copy.deepcopy({side.source})" if _is_reached_by(side, side.source) else "copy.deepcopy"


def _is_reached_by(side: WeightsExplorer, name: str) -> bool:
    """Return whether a source is an expression, with which the code of each weight begins."""
    return any(entry.code.startswith((f"{name}.", f"{name}[")) for entry in side.values())


@outside_modes
def unmoved_told(found: WeightsComparison) -> list[Unmoved]:
    """Return of parameters of a live model that have not moved what is known of each: as facts of now, not as causes.

    That one has no gradient tells nothing where none has: they are set to None between two steps.
    """
    frozen, trained = _unmoved(found)
    told: list[Unmoved] = []
    if frozen:
        told.append(Unmoved(f"{len(frozen):,} {_FROZEN}", frozen))
    kinds: dict[object, list[str]] = {}
    for name, one in trained.items():
        kinds.setdefault(_kind(one), []).append(name)
    for names in kinds.values():
        if said := _said([trained[name] for name in names]):
            told.append(Unmoved("", names, said, has_gradients=bool(trained[names[0]].norm)))
    without = [name for name, one in trained.items() if one.norm is None]
    if without and _tells_something(found):
        have = "has" if len(without) == 1 else "have"
        said = f"{counted(len(without), 'trainable weight')} did not move and {have} no .grad now"
        told.append(Unmoved(said, without))
    return told


@outside_modes
def why_unmoved(found: WeightsComparison) -> dict[str, str]:
    """Return the same of each weight by itself, in words that follow "same bits"."""
    frozen, trained = _unmoved(found)
    told = {name: _said([one]) for name, one in trained.items()}
    told |= {name: "it has no .grad now" for name, one in trained.items() if one.norm is None and not told[name]}
    return dict.fromkeys(frozen, _FROZEN) | {name: said for name, said in told.items() if said}


def _said(alike: Sequence[_Parameter]) -> str:
    """Return what is said of parameters of one kind; empty if they have no gradient."""
    one, is_one = alike[0], len(alike) == 1
    if one.norm is None:
        return ""
    if not one.norm:
        return "its gradient is 0" if is_one else "their gradients are 0"
    norms = [f"{get(other.norm or 0.0 for other in alike):.3g}" for get in (min, max)]
    has = f"has a gradient (norm {norms[0]})" if is_one else f"have gradients (norms {norms[0]} to {norms[1]})"
    if one.lost_in:
        return f"{has} so small that subtracting {'it' if is_one else 'them'} changes nothing in {one.lost_in}"
    return f"{has} and did not move: {'is it' if is_one else 'are they'} in the optimizer?"


def _kind(one: _Parameter) -> tuple[bool | None, str]:
    return None if one.norm is None else bool(one.norm), one.lost_in


def _live(found: WeightsComparison) -> WeightsExplorer:
    return found._second if found._second.is_of_module else found._first


def _parameters(found: WeightsComparison) -> Iterator[tuple[str, WeightEntry]]:
    """Yield the parameters of a live model, each once, by their names in the first."""
    side = _live(found)
    for name in found:
        entry = side[found._pairs[name] if side is found._second else name]
        if entry.kind == "parameter" and entry._is_trained is not None and name not in found._tied:
            yield name, entry


def _unmoved(found: WeightsComparison) -> tuple[list[str], dict[str, _Parameter]]:
    """Return which parameters that did not move are frozen, and what is known of the others."""
    # Of one memory on both sides nothing is known.
    same = frozenset(found._same_memory)
    unmoved = {name: one for name, one in _parameters(found) if found[name].equal and name not in same}
    trained = {name: one for name, one in unmoved.items() if one._is_trained}
    # Where no state moved either, no step came in between; what may compute its gradient is not asked for it.
    has_stepped = found.changed() or not any(quantity_of(found._first[name]) for name in found)
    plain = {name: one for name, one in trained.items() if has_stepped and is_of_torch(one.tensor)}
    unguarded = Unguarded()
    norms = gradients_of(plain.values(), unguarded)
    known = {} if unguarded.left_out else plain
    return [name for name in unmoved if name not in trained], {
        name: _Parameter(
            norms[one.name].norm if one.name in norms else None,
            one.dtype if one.name in norms and norms[one.name].norm and changes_nothing(one, unguarded) else "",
        )
        for name, one in known.items()
        if one.name not in norms or norms[one.name].norm is not None
    }


def _tells_something(found: WeightsComparison) -> bool:
    """Return whether a parameter that moved has a gradient now."""
    unguarded = Unguarded()
    moved = (one for name, one in _parameters(found) if one._is_trained and not found[name].equal)
    return any(not is_of_torch(one.tensor) or unguarded.grad_of(one.tensor) is not None for one in moved)
