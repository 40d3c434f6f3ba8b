"""Which tensor it was: told later without keeping it alive, and without a weak reference to it.

A weak reference to a tensor, Python's or torch's own, makes torch refuse `swap_tensors` for it, and with that every
conversion of a module whose parameters are of a subclass.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import modes, raw_memory, torch_private
from tensornp.core.lowlevel.attributes import own_attributes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.arrays import bases_of
from tensornp.core.tensor.form import form_of, is_storage
from tensornp.core.tensor.reading import parts_of


class VersionCounter:
    """The version counter of one tensor, kept so that its identity cannot pass to another one.

    A tensor shares its counter with its views and with what `detach` made of it, and keeps it where its storage is
    replaced. What is held is an empty tensor on that counter, which has no memory of the tensor. `counter_of` makes it.
    """

    __slots__ = ("_holder", "address")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.address, self._holder = 0, None
        address = raw_memory.version_counter_of(tensor)
        if address:
            self._holder = _holder_of_counter(tensor)
            # Where it has another one, the address says nothing once the tensor is gone.
            self.address = address if raw_memory.version_counter_of(self._holder) == address else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionCounter) and self.address == other.address != 0

    __hash__ = None  # type: ignore[assignment]  # it compares, and nothing else

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Return whether `tensor` is on this counter; False where that cannot be told."""
        return self.address != 0 and raw_memory.version_counter_of(tensor) == self.address


def _holder_of_counter(tensor: torch.Tensor) -> torch.Tensor:
    """Return an empty tensor that shares the version counter of `tensor`, and no memory."""
    holder = quietly(torch.Tensor.detach, tensor)
    # Setting `.data` keeps the counter and does not move it.
    holder.data = quietly(torch.empty, 0, dtype=holder.dtype, device=holder.device)
    return holder


class TensorReference:
    """What tells a tensor again, and keeps neither it nor its memory alive.

    Its identity as a Python object is checked against its version counter or, where it has none of its own, against
    the storages in which it or the tensors inside it lie.
    """

    __slots__ = ("_counter", "_id", "_storages")

    def __init__(self, tensor: torch.Tensor, counter: VersionCounter | None = None) -> None:
        self._id = id(tensor)
        self._storages = tuple(_storages_of(tensor))
        self._counter = counter if counter is not None else counter_of(tensor)

    @property
    def id(self) -> int:
        """The identity of the Python object; once the tensor is gone, another one may have it."""
        return self._id

    @property
    def counter(self) -> VersionCounter | None:
        """Its version counter; None where that cannot be kept."""
        return self._counter

    @property
    def storages(self) -> frozenset[int]:
        """What identifies the storages in which it lies, for as long as this reference lives."""
        return frozenset(storage.cdata for storage in self._storages)

    @property
    def is_gone(self) -> bool:
        """Whether the tensor is known to be gone; its storage may live on without it."""
        return bool(self._storages) and all(storage.expired() for storage in self._storages)

    def is_of(self, obj: Any) -> bool:
        """Return whether `obj` is that tensor, as far as that can be told."""
        if id(obj) != self._id or not issubclass(type(obj), torch.Tensor):
            return False
        with modes.outside_modes():
            if self._counter is not None and self._counter.address:
                return self._counter.is_of(obj)
            return bool(self._storages) and self._is_in_place(obj)

    def shares_storage(self, obj: torch.Tensor) -> bool:
        """Return whether `obj` lies in the storage in which the tensor lay, which lives on."""
        with modes.outside_modes():
            return bool(self._storages) and self._is_in_place(obj)

    def _is_in_place(self, obj: torch.Tensor) -> bool:
        now = _storages_of(obj)
        return not self.is_gone and {s.cdata for s in now} == {s.cdata for s in self._storages}

    def find(self, likely: Iterable[Any] = ()) -> torch.Tensor | None:
        """Return the tensor, or None where it is gone; looks among the `likely` first, then among all objects.

        Costs some tens of milliseconds where it is not among the likely ones.
        """
        for obj in likely:
            if id(obj) == self._id and self.is_of(obj):
                return obj  # type: ignore[no-any-return]
        return None if self.is_gone else _found([self])[0]


def living(references: list[TensorReference]) -> list[bool]:
    """Return for each whether its tensor lives, told from all objects; costs some tens of milliseconds."""
    return [tensor is not None for tensor in _found(references)]


def _found(references: list[TensorReference]) -> list[torch.Tensor | None]:
    objects = gc.get_objects()
    places = list(map(id, objects))
    found: list[torch.Tensor | None] = []
    for reference in references:
        try:
            obj: Any = objects[places.index(reference._id)]
        except ValueError:
            obj = None
        found.append(obj if reference.is_of(obj) else None)
    return found


def counter_of(tensor: torch.Tensor) -> VersionCounter | None:
    """Return the version counter of a tensor, or None where that cannot be kept."""
    if type(tensor).__torch_dispatch__ not in torch_private.PLAIN_DISPATCH:
        return None
    if torch_private.is_functional_wrapper(tensor):
        # Setting its data ends the process.
        return None
    try:
        with modes.outside_modes():
            return VersionCounter(tensor)
    except Exception:
        # Sparse, nested and other layouts, whose data cannot be set.
        return None


class MemoryReference:
    """What tells when the memory of a tensor, a storage or an array has been given back, and does not keep it."""

    __slots__ = ("_owner", "_storages")

    def __init__(self, obj: Any) -> None:
        self._storages: list[StorageWeakRef] = []
        self._owner: Any = None
        *inner, last = obj, *bases_of(obj)
        if issubclass(type(last), torch.Tensor):
            self._storages = _storages_of(last)
        elif is_storage(last):
            self._storages = [StorageWeakRef(torch_private.untyped(last))]
        else:
            # What the memory belongs to or, where that can have no weak reference, the last view of it that can.
            self._owner = next((reference for o in (last, *reversed(inner)) if (reference := _weakly(o))), None)

    @property
    def is_gone(self) -> bool:
        """Whether it is known to be given back."""
        if self._storages:
            return all(storage.expired() for storage in self._storages)
        return self._owner is not None and self._owner() is None


def _weakly(obj: Any) -> Any:
    try:
        return weakref.ref(obj)
    except TypeError:
        return None


def _storages_of(tensor: torch.Tensor, depth: int = 0) -> list[StorageWeakRef]:
    """Return weak references to the storage of a tensor, or to those of the tensors inside it."""
    with modes.outside_modes():
        try:
            return [StorageWeakRef(torch.Tensor.untyped_storage(tensor))]
        except Exception:
            # Sparse layouts and wrappers have none of their own.
            inner = _inside(tensor) if depth < 3 else []
            return [storage for part in inner for storage in _storages_of(part, depth + 1)]


def _inside(tensor: Any) -> list[torch.Tensor]:
    inner = [value for _, value in own_attributes(tensor) if issubclass(type(value), torch.Tensor)]
    try:
        kind = form_of(tensor).kind
        return inner or parts_of(tensor, kind)
    except Exception:
        return inner
