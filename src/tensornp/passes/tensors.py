"""States of tensors, each read once and recognized by storage, place and version.

No tensor is held, and nothing refers to one weakly, which would keep torch from swapping it: a weak reference to the
storage guarantees that no other storage has its address yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import plain
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.strides import num_reached
from tensornp.passes.readable import STORED, RowTable, is_ordinary, readable_of, stored_of
from tensornp.passes.records import IN_PLACE, NEW, VIEW, Value

MAX_KEPT = 256 * 2**20
"""Bytes of all copies."""
_SWEEP = 64
"""Storages that are known before those that were freed are forgotten."""


_State = tuple[Any, int | None, Value]
"""A place in a storage, the version of the tensor there, and its value."""


class _Memory(StorageWeakRef):
    """A storage and the states of tensors in it by place; `last` is the newest."""

    __slots__ = ("last", "states")

    def __init__(self, storage: torch.UntypedStorage) -> None:
        super().__init__(storage)  # type: ignore[no-untyped-call]  # torch's own
        self.clear()

    def clear(self) -> None:
        self.states: dict[Any, _State] = {}
        self.last: _State | None = None

    def put(self, place: Any, version: int | None, value: Value) -> None:
        self.states[place] = self.last = place, version, value


class Tensors:
    """All states read so far; until the end of the block, statistics are numbers of rows of the `table`.

    `counts` has for each row the number of elements, how often an expanded tensor has each, and whether it has sums.
    """

    def __init__(self, *, sees_writes: bool = False) -> None:
        self.table = RowTable()
        self.values: list[Value] = []
        self.counts: dict[int, tuple[int, float, bool]] = {}
        self.num_left_out = 0
        self._sees_writes = sees_writes
        self._nbytes_kept = 0
        self._memories: dict[int, _Memory] = {}
        self._next_sweep = _SWEEP

    def value(
        self, tensor: torch.Tensor, maker: int | None = None, *, has_sums: bool = True, has_sample: bool = False
    ) -> Value:
        """Return the current state of a tensor; `maker` has just given it, unless the state was known before."""
        try:
            memory, place = self._place_of(tensor)
            version = _version_of(tensor)
            value = self._known(memory, place, version, tensor.requires_grad)
            if value is None:
                value = self._new(tensor, maker, memory, place, version)
            self._take(tensor, value, has_sums=has_sums, has_sample=has_sample)
            return value
        except Exception as error:
            return _unread(tensor, maker, error)

    def written(self, tensor: torch.Tensor, maker: int, *, is_counted: bool) -> Value:
        """Return the state that an operator has just written; torch counts the write later if it `is_counted`."""
        try:
            memory, place = self._place_of(tensor)
            memory.clear()
            version = _version_of(tensor)
            value = self._create(tensor, maker, IN_PLACE)
            self._take(tensor, value, has_sums=False, has_sample=False)
            memory.put(place, None if version is None else version + is_counted, value)
            return value
        except Exception as error:
            return _unread(tensor, maker, error)

    def before_write(self, tensor: torch.Tensor) -> Value | None:
        """Return the known state of a tensor, or of the one that it is a part of, without a read."""
        memory = self._memories.get(_key_of(tensor))
        if memory is None or memory.last is None:
            return None
        version = _version_of(tensor)
        found = memory.states.get(_strided_place(tensor))
        if found is not None and found[1] == version:
            return found[2]
        return memory.last[2] if memory.last[1] == version else None

    def is_known(self, tensor: torch.Tensor) -> bool:
        """Return whether the memory of a tensor was seen before: a result of an operator there is a view."""
        return _key_of(tensor) in self._memories

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Read the memory of these again when next seen: it may be written without being counted."""
        for tensor in tensors:
            self._memories.pop(_key_of(tensor), None)

    def read_gradient(self, tensor: torch.Tensor) -> int | None:
        """Read a gradient; return its row, or None if it cannot be read."""
        try:
            readable, note = readable_of(tensor)
            if readable is None:
                return None
            memory = self._memories.get(_key_of(tensor)) if self._sees_writes and not note else None
            if memory is not None and memory.last is not None and memory.last[1] == _version_of(tensor):
                row: Any = memory.last[2].figures
                if row is not None and _are_same_elements(memory.last[0], _strided_place(tensor)):
                    # The operator that returned it has read its extremes.
                    self.table.complete(row, readable, has_sum=False)
                    return int(row)
            if note == STORED and readable.numel() < tensor.numel():
                # A sparse gradient counts as a whole, with the elements that are not stored.
                readable = torch.cat((readable.reshape(-1), readable.new_zeros(1)))
            return self._add(readable, tensor.numel(), is_stored=note == STORED, has_sum=False)
        except Exception:
            return None

    def zero_units(self, tensor: torch.Tensor, *, is_row: bool) -> tuple[int, int, int] | None:
        """Return the row of the number of units that are 0 at all positions, and how many units and positions."""
        dim = tensor.dim()
        if dim < 2 or not is_ordinary(tensor) or not tensor.numel() or not tensor.is_floating_point():
            return None
        axis = 1 if dim > 3 or (is_row and dim == 3) else dim - 1
        most = tensor.detach().amax([i for i in range(dim) if i != axis])
        row = self.table.add((most == 0).sum(dtype=torch.float32))
        return row, len(most), tensor.numel() // len(most)

    def keep(self, tensor: torch.Tensor, value: Value) -> None:
        """Copy a tensor to the host, up to a bound for all copies; a copy from a device waits for it."""
        if value.tensor is None and value.figures is not None:
            if self._nbytes_kept + tensor.nbytes > MAX_KEPT:
                self.num_left_out += 1
                return
            self._nbytes_kept += tensor.nbytes
            value.tensor = plain(tensor).detach().to("cpu", copy=True)

    def _place_of(self, tensor: torch.Tensor) -> tuple[_Memory, Any]:
        """Return the memory of a tensor, or of its stored elements, and its place there."""
        if tensor.layout is torch.strided and not tensor.is_nested:
            return self.memory(tensor.untyped_storage()), _strided_place(tensor)
        stored = stored_of(tensor)
        return self.memory(stored.untyped_storage()), (tensor.layout, _shape_of(tensor), *_strided_place(stored))

    def memory(self, storage: torch.UntypedStorage) -> _Memory:
        """Return the record of a storage, which has no states before the first write."""
        memory = self._memories.get(storage._cdata)
        if memory is None:
            if len(self._memories) >= self._next_sweep:
                # A weak reference keeps a little of each freed storage.
                self._memories = {key: one for key, one in self._memories.items() if not one.expired()}  # type: ignore[no-untyped-call]
                self._next_sweep = max(_SWEEP, 2 * len(self._memories))
            memory = self._memories[storage._cdata] = _Memory(storage)
        return memory

    def _known(self, memory: _Memory, place: Any, version: int | None, requires_grad: bool) -> Value | None:
        found = memory.states.get(place)
        # If torch counts no versions, as for inference tensors, writes are known to the followed operators alone.
        if found is None or found[1] != version or (version is None and not self._sees_writes):
            return None
        value = found[2]
        if value.requires_grad is requires_grad:
            return value
        # The same elements are another tensor for autograd, as after `detach`.
        twin = memory.states.get((place, requires_grad))
        if twin is None or twin[1] != version:
            twin = place, version, replace(value, requires_grad=requires_grad, grad=None, grad_order=-1)
            memory.states[place, requires_grad] = twin
            self.values.append(twin[2])
        return twin[2]

    def _new(self, tensor: torch.Tensor, maker: int | None, memory: _Memory, place: Any, version: int | None) -> Value:
        last, relation = memory.last, NEW
        if last is not None:
            is_view = last[1] == version is not None
            relation = VIEW if is_view else IN_PLACE
            if is_view or (version is None and maker is None):
                # A part of what a call returned was made by that call.
                maker = last[2].maker
        value = self._create(tensor, maker, relation if maker is not None else "")
        if last is not None and relation == VIEW and _are_same_elements(last[0], place):
            value.figures = last[2].figures
        memory.put(place, version, value)
        return value

    def _create(self, tensor: torch.Tensor, maker: int | None, relation: str) -> Value:
        device = "cpu" if tensor.is_cpu else str(tensor.device)
        value = Value(_shape_of(tensor), name_of(tensor.dtype), device, tensor.requires_grad, maker, relation)
        self.values.append(value)
        return value

    def _take(self, tensor: torch.Tensor, value: Value, *, has_sums: bool, has_sample: bool) -> None:
        """Read everything asked for and not known of a state."""
        row: Any = value.figures
        has_row = row is not None and (not has_sums or self.counts[row][2])
        has_sample = has_sample and value.sample == ()
        is_mask = not has_sums and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
        if (has_row or is_mask) and not has_sample:
            return
        readable, value.note = readable_of(tensor)
        if readable is None:
            if not value.note and tensor.numel():
                value.note = "freed: not read"
            return
        if row is not None and not has_row:
            self.table.complete(row, readable, has_sum=True)
            self.counts[row] = *self.counts[row][:2], True
        elif row is None:
            is_stored = value.note == STORED
            count = readable.numel() if is_stored else tensor.numel()
            row = self._add(readable, count, is_stored=is_stored, has_norm=has_sums, has_sum=has_sums)
            value.figures = row
        if has_sample:
            value.sample = self.table.sample(readable)  # type: ignore[assignment]

    def _add(
        self, readable: torch.Tensor, count: int, *, is_stored: bool, has_norm: bool = True, has_sum: bool = True
    ) -> int:
        row = self.table.add(readable, has_norm=has_norm, has_sum=has_sum)
        self.counts[row] = count, 1.0 if is_stored else count / readable.numel(), has_sum
        return row


def _strided_place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _are_same_elements(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Return whether two places in one storage have the same elements, each in one piece."""
    if len(a) != len(b) or len(a) != 4 or a[0] != b[0] or a[3] != b[3]:
        return False
    return bool(a[1].numel() == b[1].numel() == num_reached(*a[1:3]) == num_reached(*b[1:3]))


def _version_of(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _key_of(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:
        # Sparse tensors and wrappers have no storage.
        return -1


def _shape_of(tensor: Any) -> tuple[Any, ...]:
    """Return the sizes of a tensor; "?" for sizes that differ between parts or are not decided yet."""
    try:
        return tuple([size if type(size) is int else "?" for size in tensor.shape])
    except RuntimeError:
        return ("?",) * int(tensor.dim())


def _unread(tensor: Any, maker: int | None, error: Exception) -> Value:
    is_wrapped = torch_private.is_functorch_wrapper(tensor)
    note = "inside a torch.func transform: not read" if is_wrapped else f"not read: {type(error).__name__}"
    value = Value((), "", "", False, maker, note=note)
    with suppress(Exception):
        value.shape, value.dtype, value.device = _shape_of(tensor), name_of(tensor.dtype), str(tensor.device)
        value.requires_grad = bool(tensor.requires_grad)
    return value
