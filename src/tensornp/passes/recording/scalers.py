"""The gradient scalers that a program can name, as they are when a block begins and when it ends.

A step that a scaler skips is called by nobody: what is left of it is the scale, which it lowers in `update`, and before
that what it has found. Its tensors are read on their own device, as all others, and it is asked for nothing.
"""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import has_attributes, is_tensor
from tensornp.passes.recording.row_table import Row
from tensornp.passes.recording.seen_tensors import SeenTensors
from tensornp.passes.records import LossScaling

_MOST_OBJECTS, _MOST_DEPTH = 2000, 3
_OPAQUE = (types.ModuleType, types.FunctionType, type, torch.nn.Module, torch.Tensor)
"""What no scaler is looked for in; in all else by the names that an instance holds itself."""


class _State(NamedTuple):
    """The rows of a scaler's tensors: its own two, made when it first scales, and what it has found in gradients."""

    own: tuple[int, ...]
    found: tuple[tuple[str, int], ...]


class Scalers:
    """What is remembered of scalers: they are held while the block lasts, and no longer."""

    def __init__(self, tensors: SeenTensors) -> None:
        self._tensors = tensors
        self._before: list[tuple[Any, list[_State]]] = []
        self._states: list[tuple[_Facts, list[_State], _State]] = []

    def begin(self, namespace: Mapping[str, Any]) -> None:
        """Look at the scalers that have names when the block begins."""
        # Of a class of the user's anything may raise.
        with suppress(Exception):
            self._before = [(one, [self._state_of(one)]) for one in scalers_in(namespace)]

    def step_begins(self) -> None:
        """Look at them as a step is made, after which a scale may grow."""
        with suppress(Exception):
            for one, states in self._before:
                states.append(self._state_of(one))

    def end(self, namespace: Mapping[str, Any]) -> None:
        """Look at them again, and at those that have been made since."""
        before, self._before = self._before, []
        with suppress(Exception):
            self._look_again(before, namespace)

    def _look_again(self, before: list[tuple[Any, list[_State]]], namespace: Mapping[str, Any]) -> None:
        known = {id(one): states for one, states in before}
        scalers = {id(one): one for one in (*(one for one, _ in before), *scalers_in(namespace))}
        facts = ((_Facts.of(one), known.get(id(one), []), self._state_of(one)) for one in scalers.values())
        self._states = [one for one in facts if one[0].is_enabled]

    def recorded(self, rows: Sequence[Row]) -> LossScaling | None:
        """Return how the losses were scaled: by a scaler that has been at work in the block, if there is one."""
        found = [_scaling(*one, rows) for one in self._states]
        used = [one for one in found if one.was_used]
        if len(used) > 1:
            return replace(used[0], is_sole=False)
        return used[0] if used else found[0] if found else None

    @modes.outside_modes
    def _state_of(self, scaler: Any) -> _State:
        # By private names: the public way to ask for the scale waits for the device.
        states = getattr(scaler, "_per_optimizer_states", {})
        found = [
            (getattr(state.get("stage"), "name", ""), row)
            for state in list(states.values())
            for tensor in state.get("found_inf_per_device", {}).values()
            if (row := self._row(tensor)) is not None
        ]
        own = (self._row(getattr(scaler, name, None)) for name in ("_scale", "_growth_tracker"))
        return _State(tuple(row for row in own if row is not None), tuple(found))

    def _row(self, tensor: Any) -> int | None:
        read = self._tensors.read(tensor) if is_tensor(tensor) else None
        return read[0] if read is not None else None


class _Facts(NamedTuple):
    """What a scaler was made with."""

    is_enabled: bool
    first_scale: float
    backoff: float
    growth: float
    interval: int

    @staticmethod
    def of(scaler: Any) -> _Facts:
        if not getattr(scaler, "_enabled", False):
            return _Facts(False, 1.0, 0.5, 2.0, 2000)
        first, backoff, growth = (
            float(getattr(scaler, f"_{name}", otherwise))
            for name, otherwise in (("init_scale", 1.0), ("backoff_factor", 0.5), ("growth_factor", 2.0))
        )
        return _Facts(True, first, backoff, growth, int(getattr(scaler, "_growth_interval", 2000)))


def scalers_in(namespace: Mapping[str, Any]) -> list[Any]:
    """Return the scalers that have a name, or are an attribute of what has one: of so many objects at most."""
    found: dict[int, Any] = {}
    level, seen, kinds = list(namespace.values()), set[int](), dict[int, tuple[type, str]]()
    for depth in range(_MOST_DEPTH + 1):
        below: list[Any] = []
        for obj in level:
            cls = type(obj)
            # By identity: a metaclass of the user's may compute hashes.
            _, kind = kinds.get(id(cls)) or kinds.setdefault(id(cls), (cls, _known_kind_of(cls)))
            if kind == "scaler":
                found[id(obj)] = obj
            elif kind == "holder" and depth < _MOST_DEPTH and id(obj) not in seen and len(below) < _MOST_OBJECTS:
                seen.add(id(obj))
                below.extend((getattr(obj, "__dict__", None) or {}).values())
        level = below
    return list(found.values())


def _known_kind_of(cls: type) -> str:
    return _KINDS.get(cls) or _KINDS.setdefault(cls, _kind_of(cls))


_KINDS: WeakKeyDictionary[type, str] = WeakKeyDictionary()


def _kind_of(cls: type) -> str:
    if issubclass(cls, torch.amp.GradScaler):
        return "scaler"
    is_opaque = not has_attributes(cls) or any(issubclass(cls, base) for base in _OPAQUE)
    return "opaque" if is_opaque else "holder"


def _scaling(facts: _Facts, before: list[_State], after: _State, rows: Sequence[Row]) -> LossScaling:
    read = [[rows[one].min for one in state.own] for state in (*before, after)]
    states = read if before else [[], *read]
    # Of one that has not scaled yet there is nothing to read.
    known = [one or [facts.first_scale, 0.0] for one in states]
    odd = [stage for stage, row in after.found if rows[row].max > 0]
    # All but the first were read as a step was made, if not by a fused optimizer that has skipped it.
    is_made = [False, *(not any(rows[row].max > 0 for _, row in state.found) for state in before[1:])]
    pairs = zip(is_made, itertools.pairwise(known), strict=True)
    num_lowered = sum(
        _num_lowered(_grown(facts, then, now) if made else then[0], now[0], facts.backoff)
        for made, (then, now) in pairs
    )
    was_used = bool(after.found) or any(one != states[0] for one in states)
    has_one_scale = all(one[0] == known[0][0] for one in known)
    return LossScaling(known[0][0], num_lowered + ("STEPPED" in odd), was_used, "UNSCALED" in odd, has_one_scale)


def _grown(facts: _Facts, then: list[float], now: list[float]) -> float:
    """Return what a scale became after a step that was made; `now` is what was read next."""
    scale, tracker = then
    has_grown = now != then and tracker + 1 == facts.interval
    return scale * facts.growth if has_grown else scale


def _num_lowered(scale: float, now: float, backoff: float) -> int:
    """Return how often a scale was lowered by a factor; 0 of one that was set by hand."""
    if not (0 < now < scale and 0 < backoff < 1):
        return 0
    times = round(math.log(now / scale) / math.log(backoff))
    return times if math.isclose(scale * backoff**times, now, rel_tol=1e-5) else 0
