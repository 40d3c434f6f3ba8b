"""Tensors of a pass, each read once: known again by their storage, their place in it and their version.

None is held, and nothing refers to one weakly, which would keep torch from swapping it: a weak reference to its storage
says that the address is not another one's yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor import kinds
from tensornp.core.tensor.form import form_of, plain
from tensornp.core.values.stats.row_table import RowTable


class Seen:
    """One state of a tensor: what it is, and the numbers of its figures and of its gradient's in the table."""

    __slots__ = (
        "count",
        "device",
        "dtype",
        "gradients",
        "is_awaited",
        "maker",
        "note",
        "requires_grad",
        "row",
        "sample",
        "shape",
    )

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool) -> None:
        self.shape, self.dtype, self.device, self.requires_grad = shape, dtype, device, requires_grad
        self.maker: int | None = None
        self.row: int | None = None
        self.sample: int | None = None
        self.gradients: list[tuple[int, int]] = []
        self.note, self.count = "", 0
        self.is_awaited = False


class _State:
    """Where a tensor lies and how often it was written."""

    __slots__ = ("place", "reference", "seen", "version")

    def __init__(self, reference: StorageWeakRef, place: Any, version: int | None, seen: Seen) -> None:
        self.reference, self.place, self.version, self.seen = reference, place, version, seen


class SeenTensors:
    """What was read of tensors so far; it is asked `undisturbed`, so that no mode of the user's sees a look."""

    def __init__(self) -> None:
        self.table = RowTable()
        self._by_storage: dict[int, list[_State]] = {}

    def seen(self, tensor: torch.Tensor, *, maker: int | None = None, has_sample: bool = False) -> Seen:
        """Return what is known of `tensor`, which is read if it was not, or has been written since.

        `maker` is the call that has just given it, of which it is the work if it was not seen before.
        """
        try:
            return self._seen(tensor, maker, has_sample)
        except Exception as error:
            return _unread(tensor, maker, error)

    def read(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the figures of a tensor that nobody will ask for again; None where it has none."""
        try:
            readable, _ = _readable(tensor)
            return None if readable is None else self.table.add(readable)
        except Exception:
            return None

    def forget(self, storages: Iterable[int]) -> None:
        """Have what lies on these storages be read again: they may be written without being counted."""
        for key in storages:
            self._by_storage.pop(key, None)

    def _seen(self, tensor: torch.Tensor, maker: int | None, has_sample: bool) -> Seen:
        states, place, version = None, None, None
        if tensor.layout is torch.strided and not tensor.is_nested:
            storage = tensor.untyped_storage()
            key = storage._cdata
            states = self._by_storage.get(key)
            place = tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
            version = None if tensor.is_inference() else tensor._version
            if states is None:
                states = self._by_storage[key] = []
            for state in reversed(states):
                if state.place == place:
                    if state.version == version and (version is not None or maker is None):
                        return state.seen
                    break
            if maker is None and states and states[-1].version == version:
                # A view of what a call has given, not written since.
                maker = states[-1].seen.maker
        seen = Seen(_shape_of(tensor.shape), tensor.dtype, tensor.device, tensor.requires_grad)
        seen.maker = maker
        self._take(tensor, seen, has_sample)
        if states is not None:
            reference = states[0].reference if states else StorageWeakRef(tensor.untyped_storage())
            states[:] = [state for state in states if state.place != place]
            states.append(_State(reference, place, version, seen))
        return seen

    def _take(self, tensor: torch.Tensor, seen: Seen, has_sample: bool) -> None:
        readable, seen.note = _readable(tensor)
        if readable is None:
            return
        seen.count = readable.numel()
        seen.row = self.table.add(readable)
        if has_sample:
            seen.sample = self.table.sample(readable)


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


def _readable(tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    """Return a strided tensor with the values of another, or None; and what is to be said of that."""
    form = form_of(tensor)
    if form.kind is kinds.LOCAL:
        return _readable(tensor._local_tensor)[0], "figures of the local shard"  # type: ignore[attr-defined]
    if form.state != "available":
        return None, f"{form.state}: not read"
    if form.kind is kinds.SPARSE:
        raw = plain(tensor)
        stored = torch_private.stored_elements(raw)[1] if raw.layout == torch.sparse_coo else raw.values()
        return (_widened(stored) if stored.numel() else None), "figures of the elements that are stored"
    if form.kind not in (kinds.STRIDED, kinds.ZERO):
        return None, f"{form.kind.label or form.kind.name}: not read"
    if not tensor.numel():
        return None, ""
    if not tensor.untyped_storage().nbytes():
        return None, "freed: not read"
    # Each element of an expanded one is read once.
    repeated = [d for d, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)) if size > 1 > step]
    inner = plain(tensor)
    for dim in repeated:
        inner = inner.narrow(dim, 0, 1)
    return _widened(inner), "expanded: each element was read once" if repeated else ""


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex32 as complex64, without torch's warning; a modulus may be beyond float16, too."""
    return quietly(tensor.to, torch.complex64) if tensor.dtype == torch.complex32 else tensor


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
    return seen


def _shape_of(sizes: Any) -> tuple[Any, ...]:
    """Return sizes as integers, and as its text each that a compiler has not decided yet."""
    return tuple(size if type(size) is int else str(size) for size in sizes)
