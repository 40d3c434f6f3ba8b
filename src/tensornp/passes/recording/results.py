"""The tensors that a block has bound to names: what its own code, around the modules, has come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.memory.identity import WeakStorages
from tensornp.passes.recording.seen_tensors import Seen, SeenTensors, storage_key, version_of

_MOST_NAMES, _MOST_ELEMENTS = 64, 2**24


class Results:
    """Names of a program, before a block and after it; it is asked `outside_modes`."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        tensors = [value for _, value in _tensors(namespace)]
        self._before = set(map(_state_of, tensors))
        # While they are referred to, even weakly, no storage that is made in the block has their addresses.
        self._storages = WeakStorages()
        for value in tensors:
            if storage_key(value) is not None:
                self._storages.add(value.untyped_storage())

    def read(self, namespace: Mapping[str, Any], tensors: SeenTensors) -> list[tuple[str, Seen]]:
        """Return what is known of tensors that are new, or were written, and that autograd knows or are numbers.

        A container filled with NaN or Inf on purpose, as a mask and a table are, is none of these.
        """
        found: list[tuple[str, Seen]] = []
        for name, value in _tensors(namespace):
            if _state_of(value) in self._before or len(found) == _MOST_NAMES:
                continue
            try:
                is_result = not value.is_leaf or (value.dim() == 0 and not value.requires_grad)
                if is_result and value.is_floating_point() and value.numel() <= _MOST_ELEMENTS:
                    found.append((name, tensors.glanced(value).as_of(value.requires_grad)))
            except Exception:
                # Of an odd class, nothing is known.
                continue
        self._storages.let_go()
        return found


def _state_of(value: torch.Tensor) -> tuple[int, int | None]:
    return storage_key(value) or id(value), version_of(value)


def _tensors(namespace: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(namespace.items()):
        if type(name) is str and not name.startswith("_") and is_tensor(value):
            yield name, value
