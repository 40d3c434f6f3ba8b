"""Tensors of a pass, each read once: known again by their storage, their place in it and their version.

None is held, and nothing refers to one weakly, which would keep torch from swapping it: a weak reference to its storage
says that the address is not another one's yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.memory.footprint import check_parts
from tensornp.core.memory.identity import WeakStorages
from tensornp.core.tensor import kinds
from tensornp.core.tensor.form import Bare, plain
from tensornp.core.tensor.kinds import form_of
from tensornp.errors import NotReadError
from tensornp.passes.recording.row_table import RowTable
from tensornp.passes.records import UNWRITTEN

EXPANDED, STORED = "expanded", "figures of the elements that are stored"
IN_A_TRANSFORM = "inside a torch.func transform: not read"
_SWEEP = 32
"""Storages that are known before those are forgotten that have gone."""


class Seen:
    """One state of a tensor: what it is, and the numbers of its figures and of its gradient's in the table.

    `maker` is the call and `operator` the operator that has made it; an operator does not know `requires_grad`.
    """

    __slots__ = (
        "count", "device", "dtype", "gradients", "is_awaited", "is_held", "maker", "note", "operator", "requires_grad",
        "row", "sample", "shape", "task",
    )  # fmt: skip

    def __init__(self, shape: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool | None) -> None:
        self.shape, self.dtype, self.device, self.requires_grad = shape, dtype, device, requires_grad
        self.maker: int | None = None
        self.operator: int | None = None
        self.row: int | None = None
        self.sample: int | None = None
        self.gradients: list[tuple[int, int, float]] = []
        self.note, self.count = "", 0
        self.is_awaited = self.is_held = False
        # The backward that has brought its gradient last.
        self.task: int | None = None

    def as_of(self, requires_grad: bool) -> Seen:
        """Return the same state of a tensor that is another one for autograd, as what was detached is."""
        if self.requires_grad is None:
            self.requires_grad = requires_grad
        if self.requires_grad is requires_grad:
            return self
        twin = Seen(self.shape, self.dtype, self.device, requires_grad)
        for fact in ("maker", "operator", "row", "sample", "note", "count"):
            setattr(twin, fact, getattr(self, fact))
        return twin


class _State:
    """Where a tensor lies in a storage and how often it was written."""

    __slots__ = ("place", "seen", "version")

    def __init__(self, place: Any, version: int | None, seen: Seen) -> None:
        self.place, self.version, self.seen = place, version, seen


class _Memory:
    """A storage that still is what it was, the states of tensors in it, and whether all of it was written.

    `asked` are the addresses of which the system has said that they can be read.
    """

    __slots__ = ("asked", "is_unwritten", "states")

    def __init__(self) -> None:
        self.asked = (0, 0)
        self.states: list[_State] = []
        self.is_unwritten = False

    def found(self, place: Any, version: int | None, requires_grad: bool | None) -> Seen | None:
        """Return what was seen there in this version, best of the same tensor for autograd."""
        twin = None
        for state in reversed(self.states):
            if state.version == version and state.place == place:
                if requires_grad is None or state.seen.requires_grad in (None, requires_grad):
                    return state.seen
                twin = state.seen
        return twin

    def last(self, version: int | None) -> _State | None:
        """Return the state that was seen last, if nothing was written since; of what is not counted, none."""
        return self.states[-1] if self.states and version is not None and self.states[-1].version == version else None

    def put(self, place: Any, version: int | None, seen: Seen) -> None:
        """Take in a state; those of an earlier version are no more."""
        if self.states:
            self.states = [one for one in self.states if one.place != place or one.version == version is not None]
        self.states.append(_State(place, version, seen))


class SeenTensors:
    """What was read of tensors so far; it is asked `outside_modes`, so that no mode of the user's sees a look."""

    def __init__(self) -> None:
        self.table = RowTable()
        self._memories: dict[int, _Memory] = {}
        self._storages = WeakStorages()
        self._next_sweep = _SWEEP

    def seen(
        self, tensor: torch.Tensor, *, maker: int | None = None, has_sample: bool = False, is_written: bool = False
    ) -> Seen:
        """Return what is known of `tensor`, which is read if it was not, or has been written since.

        `maker` is the call that has just given it, of which it is the work if it was not seen before; `is_written` says
        that it may have been written in a way that torch does not count.
        """
        try:
            if is_written:
                self.forget(tensor)
            return self._seen(tensor, maker, has_sample)
        except Exception as error:
            return _unread(tensor, maker, error)

    def glanced(self, tensor: torch.Tensor, operator: int | None = None) -> Seen:
        """Return what is known of `tensor`, of which the extremes alone are read if it was not seen before.

        `operator` is the one that has just made it, in memory of its own.
        """
        try:
            return self._glanced(tensor, operator)
        except Exception as error:
            return _unread(tensor, None, error)

    def end(self) -> None:
        """Mark what a program holds still: of each memory that has not been freed, the last states."""
        gone = set(self._storages.are_gone(self._memories))
        for key, memory in self._memories.items():
            for state in memory.states if key not in gone else ():
                state.seen.is_held = True

    def clear(self) -> None:
        """Let go of all figures and storages: what was read of the table stays."""
        self.table, self._memories = RowTable(), {}
        self._storages.let_go()

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what was read of the memory of a tensor."""
        if (memory := self._memories.get(storage_key(tensor) or -1)) is not None:
            memory.states.clear()

    def is_known(self, tensor: torch.Tensor) -> bool:
        """Return whether the memory of `tensor` was seen before: what an operator gives there is a view."""
        key = storage_key(tensor)
        return key is not None and key in self._memories

    def seen_beside(self, tensor: torch.Tensor) -> list[Seen] | None:
        """Return what was seen in the memory of a tensor; None of one that has no memory of its own."""
        key = storage_key(tensor)
        if key is None:
            return None
        memory = self._memories.get(key)
        return [state.seen for state in memory.states] if memory is not None else []

    def allocated(self, tensor: torch.Tensor) -> None:
        """Take in memory that nothing was written to."""
        memory = self._memory(tensor)
        memory.states.clear()
        memory.is_unwritten = True

    def before_write(self, tensor: torch.Tensor) -> Seen | None:
        """Return what is known of a tensor that is to be written, or of what it is a part of, without a look."""
        try:
            memory = self._memories.get(storage_key(tensor) or -1)
            if memory is None:
                return None
            version = _counted_version(tensor)
            found, last = memory.found(_place_of(tensor), version, None), memory.last(version)
            return found if found is not None or last is None else last.seen
        except Exception:
            return None

    def read_out(self, tensor: torch.Tensor) -> None:
        """Take in that the program has read a number."""
        if (seen := self.before_write(tensor)) is not None:
            seen.is_held = True

    def written(self, tensor: torch.Tensor, operator: int, *, is_counted: bool) -> Seen:
        """Return what an operator that has not returned yet has written; all that was seen in that memory is past.

        Torch counts a write as the operator returns, where it `is_counted`.
        """
        try:
            stored = None if tensor.layout is torch.strided else _stored_of(tensor)
            memory = self._memory(tensor if stored is None else stored)
            memory.states.clear()
            version = _counted_version(tensor)
            if stored is not None or tensor.numel() * tensor.itemsize == tensor.untyped_storage().nbytes():
                memory.is_unwritten = False
            seen = self._new(tensor, None, memory)
            seen.operator = operator
            self._take_extremes(tensor, seen)
            place = _place_of(tensor) if stored is None else _sparse_place_of(tensor, stored)
            memory.put(place, None if version is None else version + is_counted, seen)
            return seen
        except Exception as error:
            return _unread(tensor, None, error)

    def read(self, tensor: torch.Tensor) -> tuple[int, float] | None:
        """Return the number of the figures of a tensor that nobody will ask for again; None where it has none.

        Beside it stands how often each element that was read stands in the tensor, as those of an expanded one do.
        """
        try:
            memory = self._memories.get(storage_key(tensor) or -1) if not tensor.is_nested else None
            found = memory.found(_place_of(tensor), _counted_version(tensor), None) if memory is not None else None
            if found is None or found.row is None:
                readable, note = self.readable_of(tensor)
                if readable is None:
                    return None
                if note == STORED and readable.numel() < tensor.numel():
                    # A gradient counts as a whole, with what is not stored.
                    readable = torch.cat((readable.reshape(-1), readable.new_zeros(1)))
                return self.table.add(readable), _times(_sizes_of(tensor), readable.numel(), note)
            self._take(tensor, found, False)
            return found.row, _times(found.shape, found.count, found.note)
        except Exception:
            return None

    def unread(self, tensor: torch.Tensor) -> Seen:
        """Return what a tensor is, of which nothing is read but what comes back for it."""
        return self._new(tensor, tensor.requires_grad)

    def forget_storages(self, storages: Iterable[int]) -> None:
        """Have what lies on these storages be read again: they may be written without being counted."""
        keys = [key for key in storages if self._memories.pop(key, None) is not None]
        self._storages.let_go(keys)

    def _seen(self, tensor: torch.Tensor, maker: int | None, has_sample: bool) -> Seen:
        if tensor.layout is not torch.strided or tensor.is_nested:
            seen = self._of_layout(tensor, tensor.requires_grad)
            seen.maker = maker if seen.maker is None else seen.maker
            self._take(tensor, seen, has_sample)
            return seen
        memory = self._memory(tensor)
        place, version, requires_grad = _place_of(tensor), _counted_version(tensor), tensor.requires_grad
        found = memory.found(place, version, requires_grad)
        # Where torch counts no versions, a write is only known to who follows operators.
        is_same = found is not None and (version is not None or found.operator is not None)
        if found is None or not is_same:
            seen = self._new(tensor, requires_grad, memory)
            if found is not None:
                maker = found.maker if maker is None else maker
            elif (last := memory.last(version)) is not None:
                # A view of what a call or an operator has given, not written since.
                maker, seen.operator = last.seen.maker if maker is None else maker, last.seen.operator
                if _are_same_elements(last.place, place):
                    seen.row, seen.count, seen.note = last.seen.row, last.seen.count, last.seen.note
            seen.maker = maker
        else:
            if found.requires_grad is None and found.operator is not None:
                # An operator has made it, and this is the first call that gives it.
                found.maker = maker
            seen = found.as_of(requires_grad)
        self._take(tensor, seen, has_sample)
        if seen is not found:
            memory.put(place, version, seen)
        return seen

    def _glanced(self, tensor: torch.Tensor, operator: int | None) -> Seen:
        if tensor.layout is not torch.strided or tensor.is_nested:
            seen = self._of_layout(tensor, None)
            if seen.row is None:
                seen.operator = operator
                self._take_extremes(tensor, seen)
            return seen
        memory = self._memory(tensor)
        place, version = _place_of(tensor), _counted_version(tensor)
        found, last = memory.found(place, version, None), memory.last(version)
        if found is None and last is not None and _are_same_elements(last.place, place):
            # In another order, and a glance tells no more.
            found = last.seen
        if found is not None:
            return found
        seen = self._new(tensor, None, memory)
        # A part of what an operator has made was made by it.
        seen.operator = last.seen.operator if operator is None and last is not None else operator
        self._take_extremes(tensor, seen)
        memory.put(place, version, seen)
        return seen

    def _of_layout(self, tensor: torch.Tensor, requires_grad: bool | None) -> Seen:
        """Return what is known of a tensor that is not strided: a sparse one by the memory of its stored elements."""
        stored = _stored_of(tensor)
        if stored is None:
            return self._new(tensor, requires_grad)
        memory, place, version = self._memory(stored), _sparse_place_of(tensor, stored), _counted_version(tensor)
        found = memory.found(place, version, requires_grad)
        is_same = found is not None and (version is not None or found.operator is not None)
        seen = found if found is not None and is_same else self._new(tensor, requires_grad)
        seen = seen if requires_grad is None else seen.as_of(requires_grad)
        if seen is not found:
            memory.put(place, version, seen)
        return seen

    def _memory(self, tensor: torch.Tensor) -> _Memory:
        storage = tensor.untyped_storage()
        memory = self._memories.get(storage._cdata)
        if memory is None:
            if len(self._memories) >= self._next_sweep:
                # A weak reference keeps a little of each storage that has gone.
                for key in (gone := self._storages.are_gone(self._memories)):
                    del self._memories[key]
                self._storages.let_go(gone)
                self._next_sweep = max(_SWEEP, 2 * len(self._memories))
            memory = self._memories[self._storages.add(storage)] = _Memory()
        return memory

    def _new(self, tensor: torch.Tensor, requires_grad: bool | None, memory: _Memory | None = None) -> Seen:
        # A class may say something else of itself.
        bare = tensor if is_of_torch(tensor) else Bare(tensor)
        seen = Seen(_shape_of(_sizes_of(bare)), bare.dtype, bare.device, requires_grad)
        if memory is not None and memory.is_unwritten:
            seen.note = UNWRITTEN
        return seen

    def _take(self, tensor: torch.Tensor, seen: Seen, has_sample: bool) -> None:
        """Read what is not known of a state."""
        is_new = seen.row is None
        if not is_new and not (has_sample and seen.sample is None) and not self.table.has_extremes_alone(seen.row or 0):
            return
        readable, note = self.readable_of(tensor)
        seen.note = seen.note or note
        if readable is None:
            return
        if seen.row is None:
            seen.count = readable.numel()
            seen.row = self.table.add(readable)
        else:
            self.table.complete(seen.row, readable)
        if has_sample and seen.sample is None:
            seen.sample = self.table.sample(readable, seen.row)

    def _take_extremes(self, tensor: torch.Tensor, seen: Seen) -> None:
        """Read the least and the greatest element of what can hold a NaN."""
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            return
        readable, note = self.readable_of(tensor)
        seen.note = seen.note or note
        if readable is not None:
            seen.count = readable.numel()
            seen.row = self.table.add(readable, has_sums=False)

    def readable_of(self, tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
        """Return a strided tensor with the values of another, or None; and what is to be said of that.

        The program need not read what it holds: of memory that torch has not allocated, the system is asked first,
        once, whether it is there.
        """
        readable, note = _readable_of(tensor)
        if readable is None or not readable.is_cpu or (storage := readable.untyped_storage()).resizable():
            return readable, note
        low, memory = torch_private.address_of(readable), self._memories.get(storage._cdata)
        high = low + readable.numel() * readable.itemsize
        is_row = readable.is_contiguous()
        if is_row and memory is not None and memory.asked[0] <= low <= high <= memory.asked[1]:
            return readable, note
        try:
            check_parts(readable)
        except NotReadError as reason:
            return None, f"not read: {reason}"
        if is_row and memory is not None:
            memory.asked = low, high
        return readable, note


def _is_within_storage(tensor: torch.Tensor) -> bool:
    end = tensor.storage_offset() + _extent(_place_of(tensor))
    return bool(end * tensor.itemsize <= tensor.untyped_storage().nbytes())


def _is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies in one piece of memory that is there, and is read as it is: most do."""
    return (
        is_of_torch(tensor)
        and modes.has_plain_keys(tensor)
        and tensor.dtype is not torch.complex32
        and tensor.is_contiguous()
        and (size := tensor.numel()) > 0
        and (tensor.storage_offset() + size) * tensor.itemsize <= tensor.untyped_storage().nbytes()
    )


def _times(shape: Sequence[Any], count: int, note: str) -> float:
    """Return how often each element that was read stands in a tensor; once, unless it is expanded."""
    return math.prod(shape) / count if note.startswith(EXPANDED) and count else 1.0


def _place_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _stored_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the elements that a sparse tensor stores, or those of all parts of a nested one; None of any other."""
    if (kind := form_of(tensor).kind) is not kinds.SPARSE:
        return _packed(tensor) if kind is kinds.NESTED else None
    raw = plain(tensor)
    return torch_private.stored_elements(raw)[1] if raw.layout == torch.sparse_coo else raw.values()


def _packed(nested: Any) -> torch.Tensor | None:
    """Return the elements of all parts of a nested tensor; None where these have gaps, another order, or no sizes."""
    if nested.layout is torch.strided:
        return plain(nested).values() if nested.is_contiguous() else None
    return plain(nested._values) if nested._lengths is None else None


def _sparse_place_of(tensor: torch.Tensor, stored: torch.Tensor) -> tuple[Any, ...]:
    return tensor.layout, _sizes_of(tensor), *_place_of(stored)


def _sizes_of(tensor: Any) -> tuple[Any, ...]:
    """Return the shape of a tensor, of a nested one with a mark where its parts differ: torch refuses, or names it."""
    if not tensor.is_nested:
        return tensor.shape  # type: ignore[no-any-return]
    sizes = []
    for dim in range(tensor.dim()):
        try:
            sizes.append(tensor.size(dim))
        except RuntimeError:
            sizes.append(None)
    return tuple(size if type(size) is int else "?" for size in sizes)


def _are_same_elements(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Return whether two places in one storage hold the same elements, each in one piece."""
    is_one_place = a[0] == b[0] and a[3] == b[3]
    return bool(is_one_place and a[1].numel() == b[1].numel() == _extent(a) == _extent(b))


def _extent(place: tuple[Any, ...]) -> int:
    extent: int = 1 + sum((size - 1) * step for size, step in zip(place[1], place[2], strict=True))
    return extent


def _counted_version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def storage_key(tensor: torch.Tensor) -> int | None:
    """Return what two tensors on the same storage have in common, while both live; None for one without."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:
        return None


def version_of(tensor: torch.Tensor) -> int | None:
    """Return how often a tensor was written; None where torch does not count."""
    try:
        return tensor._version
    except Exception:
        return None


def _readable_of(tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    if _is_ordinary(tensor):
        return tensor, ""
    form = form_of(tensor)
    if form.kind is kinds.LOCAL:
        return _readable_of(tensor._local_tensor)[0], "figures of the local shard"  # type: ignore[attr-defined]
    if form.state != "available":
        return None, f"{form.state}: not read"
    if form.kind is kinds.SPARSE:
        raw = plain(tensor)
        is_coo = raw.layout == torch.sparse_coo
        if is_coo and not raw.is_coalesced():
            # What stands several times in one place is the sum of these.
            check_parts(raw)
            raw = quietly(raw.coalesce)
        stored = torch_private.stored_elements(raw)[1] if is_coo else raw.values()
        if not _is_within_storage(stored):
            return None, "freed: not read"
        return (_widened(stored) if stored.numel() else None), STORED
    if form.kind is kinds.NESTED and (packed := _packed(tensor)) is not None and _is_within_storage(packed):
        return (packed if packed.numel() else None), ""
    if form.kind not in (kinds.STRIDED, kinds.ZERO):
        return None, f"{form.kind.label or form.kind.name}: not read"
    if not tensor.numel():
        return None, ""
    if not _is_within_storage(tensor):
        return None, "freed: not read"
    # Each element of an expanded one is read once.
    repeated = [d for d, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)) if size > 1 > step]
    inner = plain(tensor)
    for dim in repeated:
        inner = inner.narrow(dim, 0, 1)
    return _widened(inner), f"{EXPANDED}: each element was read once" if repeated else ""


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex32 as complex64, without torch's warning; a modulus may be beyond float16, too."""
    if tensor.dtype != torch.complex32:
        return tensor
    check_parts(tensor)
    return quietly(tensor.to, torch.complex64)


def _unread(tensor: torch.Tensor, maker: int | None, error: Exception) -> Seen:
    """Return what is known of a tensor that could not be read, each fact by itself."""
    facts: list[Any] = []
    for name, otherwise in (("shape", ()), ("dtype", None), ("device", None), ("requires_grad", False)):
        try:
            facts.append(getattr(tensor, name))
        except Exception:
            facts.append(otherwise)
    seen = Seen(_shape_of(facts[0]), *facts[1:])
    seen.maker, seen.note = maker, f"not read: {type(error).__name__}"
    if torch_private.is_functorch_wrapper(tensor):
        seen.note = IN_A_TRANSFORM
    return seen


def not_looked_into(note: str) -> Seen:
    """Return what is known of an object that may hold tensors which nobody sees."""
    seen = Seen(("?",), None, "", False)
    seen.note = note
    return seen


_INTEGERS = {int}


def _shape_of(sizes: Any) -> tuple[Any, ...]:
    """Return sizes as integers, and as its text each that a compiler has not decided yet."""
    shape = tuple(sizes)
    if {*map(type, shape)} <= _INTEGERS:
        return shape
    return tuple(size if type(size) is int else str(size) for size in shape)
