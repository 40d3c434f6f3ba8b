"""The weights of models that a program can name, as a block begins: the memory of each, and how often it was written.

No value is read, and no tensor held: what is found in a weight at a call is known to have been there before by this.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import attrgetter
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.memory.identity import WeakStorages
from tensornp.passes.recording.modules_among import items_of, modules_among
from tensornp.passes.recording.seen_tensors import version_of
from tensornp.passes.records import GIVEN, NOT_SEEN, PUT_IN, WRITTEN

_MOST_TENSORS = 50_000
_TABLES = ("_parameters", "_buffers")

_State = tuple[int, int | None, int | None]
"""A tensor by its number, its version, and its storage; None of what torch does not count, or has no memory."""


class AtBegin:
    """What is noted of weights, from `note` to `end`; it is asked `outside_modes`."""

    def __init__(self) -> None:
        self._noted: dict[int, tuple[weakref.ref[torch.nn.Module], dict[str, _State]]] = {}
        # While they are referred to, no other storage has their addresses.
        self._storages = WeakStorages()
        self._shared: set[int] = set()

    def note(self, objects: Iterable[Any]) -> None:
        """Note the weights of the modules among some objects, and in what these hold: of so many at most."""
        num_left, add, owners = _MOST_TENSORS, self._storages.add, dict[int | None, int]()
        # Of a class of the user's anything may raise: what is not noted is not known.
        with suppress(Exception), modes.outside_modes():
            for module, held in modules_among(objects):
                states: dict[str, _State] = {}
                tables = [held.get(table, {}) for table in _TABLES]
                if not all(issubclass(type(table), dict) for table in tables):
                    # A scripted one keeps its own elsewhere.
                    continue
                for table in tables:
                    for name, tensor in items_of(table):
                        if tensor is not None:
                            states[name] = state = _state_of(tensor, add)
                            if owners.setdefault(state[2], state[0]) != state[0] and state[2] is not None:
                                self._shared.add(state[2])
                self._noted[id(module)] = weakref.ref(module), states
                num_left -= len(states)
                if num_left <= 0:
                    return

    def since(self, module: torch.nn.Module, name: str, tensor: torch.Tensor, *, is_functional: bool) -> str:
        """Return what has happened to a weight since: nothing, as far as torch counts, or what is known of it.

        `is_functional` says that a functional call may have put another one in its place.
        """
        noted = self._noted.get(id(module))
        if noted is None or noted[0]() is not module:
            return GIVEN if is_functional and type(tensor) is torch.Tensor else NOT_SEEN
        was, now = noted[1].get(name), _state_of(tensor, _number_of)
        if was is None:
            step, _, rest = str(name).partition(".")
            below = (
                dict(items_of((getattr(module, "__dict__", None) or {}).get("_modules"))).get(step) if rest else None
            )
            if below is not None:
                # It computes with the weights of what it holds.
                return self.since(below, rest, tensor, is_functional=is_functional)
            return GIVEN if is_functional else PUT_IN
        is_same = was[0] == now[0]
        if was[1] is None or (was[2] is None and not (is_same and now[2] is None)):
            # For what is sharded, another one stands in at each call; what is lazy is made in its first.
            return NOT_SEEN
        if was[1:] == now[1:]:
            return ""
        if is_same and was[2] == now[2]:
            # Of several in one memory, as in a flat buffer, torch counts together what is written.
            return NOT_SEEN if was[2] in self._shared else WRITTEN
        if is_same:
            return PUT_IN
        return GIVEN if is_functional else PUT_IN

    def end(self) -> None:
        """Forget all of them."""
        self._noted = {}
        self._shared.clear()
        self._storages.let_go()


_number_of = attrgetter("_cdata")


def _state_of(tensor: Any, number_of: Callable[[torch.UntypedStorage], int]) -> _State:
    try:
        return id(tensor), tensor._version, number_of(tensor.untyped_storage()) if is_of_torch(tensor) else None
    except Exception:
        # Those of inference are not counted; what a transform of torch.func wraps has no storage.
        return id(tensor), version_of(tensor), None
