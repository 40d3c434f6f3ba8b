"""Every read of raw memory: what lies at an address, and where torch's own objects point to; one switch turns it off.

An address is no safe thing to read: another thread may give the memory back, and a page past the end of a file that has
become shorter ends the process. So the memory is held while it is read, and Linux copies it, which answers EFAULT where
there is nothing to read. On other systems it is read where it lies, and a file that has become shorter is not noticed.

Two questions for which torch has no words, public or private, are answered here as well: which tensors share a version
counter, and which tensor an array was lent from by DLPack. Each is tried on tensors whose answer is known, and gives no
answer where it fails there..
"""

from __future__ import annotations

import ctypes
import datetime
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from tensornp.core.lowlevel.mappings import mappings
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import storage_address
from tensornp.errors import NotReadError


@dataclass(slots=True)
class _Known:
    """What the switch turns off: how the system copies memory, and where torch keeps what."""

    is_on: bool = False
    system_copy: Any = None
    counter_offset: int = 0
    torch_deleters: frozenset[int] = frozenset()


_known = _Known()
SHORTENED = "the file behind this memory has become shorter"
GIVEN_BACK = "another thread has given this memory back meanwhile"
PAGE_NBYTES = 4096
_MAX_RUNS = 1024
"""Runs of bytes that one call of the system copies at most (IOV_MAX)."""
_MAX_CALL_NBYTES = 2**26


class Memory(NamedTuple):
    """The bytes of a storage, or those under an array; they are held while this is.

    `owner` is an array, or an alias of a tensor that nobody else has, so that no ``.data =`` moves it elsewhere.
    """

    owner: Any
    address: int
    nbytes: int

    def check(self, low: int, high: int) -> None:
        """Raise NotReadError unless the addresses lie inside, and the storage is still where it was."""
        is_inside = self.address <= low <= high <= self.address + self.nbytes
        if not is_inside or (type(self.owner) is torch.Tensor and self[1:] != memory_of(self.owner)[1:]):
            raise NotReadError(GIVEN_BACK)


def memory_of(alias: torch.Tensor) -> Memory:
    """Return the memory of the storage of `alias`, which the caller has made and shows to nobody."""
    return Memory(alias, storage_address(alias), alias.untyped_storage().nbytes())


def read(memory: Memory, addresses: Sequence[int] | np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
    """Return a copy of the `nbytes` bytes at each of `addresses`, a row each.

    Raises
    ------
    NotReadError
        If they cannot be read, or are no longer those of `memory` in the end.
    """
    copies = np.empty((len(addresses), nbytes), np.uint8)
    if copies.size:
        is_one = len(addresses) == 1
        low, high = (addresses[0], addresses[0]) if is_one else (np.min(addresses), np.max(addresses))
        memory.check(int(low), int(high) + nbytes)
        copy_into(copies, addresses)
        memory.check(memory.address, memory.address)
    return copies


def can_be_read_in_place(memory: Memory, nbytes: int) -> bool:
    """Return whether the memory is not that of a file.

    What torch or NumPy has allocated is no file's;
    of anything else the system is asked where that costs less than a copy. Where the system copies no memory there is
    no other way, and the answer is yes.
    """
    if _known.system_copy is None:
        return True
    owner = memory.owner
    is_own = owner.untyped_storage().resizable() if type(owner) is torch.Tensor else owner.flags.owndata
    return is_own or (nbytes > _ASKED_NBYTES and _is_of_no_file(memory.address, memory.address + memory.nbytes))


_MAX_PAGES = 2**18
_ASKED_NBYTES = 2**22
"""Bytes past which the system is asked whose they are before each page is touched."""


def _is_of_no_file(low: int, high: int) -> bool:
    """Return whether all of it is mapped, can be read, and is no file's."""
    for mapping in mappings(low, high):
        if mapping.low > low or mapping.is_file or not mapping.is_readable:
            return False
        low = mapping.high
    return low >= high


def check_readable(low: int, high: int) -> None:
    """Raise NotReadError if these bytes are those of a file that has become shorter; each page is asked for one byte.

    For what torch reads itself.
    """
    if _known.system_copy is None or not _known.is_on:
        return
    if high - low > _ASKED_NBYTES and _is_of_no_file(low, high):
        return
    check_runs(np.array([low]), high - low)


def check_runs(addresses: np.ndarray[Any, Any], nbytes: int) -> None:
    """Raise NotReadError unless the `nbytes` bytes at each of `addresses` can be read; each page is asked for one."""
    if _known.system_copy is None or not _known.is_on:
        return
    within = np.append(np.arange(0, nbytes - 1, PAGE_NBYTES), nbytes - 1)
    step = max(_MAX_PAGES // len(within), 1)
    for first in range(0, len(addresses), step):
        pages = np.add.outer(addresses[first : first + step], within).reshape(-1)
        copy_into(np.empty((len(pages), 1), np.uint8), pages)


class _Run(ctypes.Structure):
    _fields_ = (("address", ctypes.c_size_t), ("nbytes", ctypes.c_size_t))


def copy_into(into: np.ndarray[Any, Any], addresses: Sequence[int] | np.ndarray[Any, Any]) -> None:
    """Fill each row with the bytes at an address; whoever calls it has asked ``Memory.check``."""
    nbytes = into.shape[1]
    target = into.ctypes.data
    if _known.system_copy is None or nbytes > _MAX_CALL_NBYTES or len(into) == 1:
        for row, address in enumerate(addresses):
            _copy_run(target + row * nbytes, int(address), nbytes)
        return
    runs = np.empty((len(addresses), 2), np.uint64)
    runs[:, 0], runs[:, 1] = addresses, nbytes
    step = max(min(_MAX_RUNS, _MAX_CALL_NBYTES // nbytes), 1)
    for first in range(0, len(runs), step):
        part = runs[first : first + step]
        place = _Run(target + first * nbytes, len(part) * nbytes)
        done = _known.system_copy(os.getpid(), ctypes.byref(place), 1, part.ctypes.data, len(part), 0)
        if done != place.nbytes:
            for row in range(first + max(done, 0) // nbytes, first + len(part)):
                _copy_run(target + row * nbytes, int(addresses[row]), nbytes)


def _copy_run(target: int, address: int, nbytes: int) -> None:
    for at in range(0, nbytes, _MAX_CALL_NBYTES):
        size = min(_MAX_CALL_NBYTES, nbytes - at)
        place, run = _Run(target + at, size), _Run(address + at, size)
        done = size if _known.system_copy is None else _known.system_copy(
            os.getpid(), ctypes.byref(place), 1, ctypes.byref(run), 1, 0
        )  # fmt: skip
        if done != size:
            _refuse_unless_device(address + at + max(done, 0))
        if done != size or _known.system_copy is None:
            ctypes.memmove(target + at, address + at, size)


def _refuse_unless_device(address: int) -> None:
    """Raise NotReadError, unless it is the memory of a device that the system cannot copy: page-locked by CUDA."""
    mapping = next(iter(mappings(address, address + 1)), None)
    if mapping is None:
        raise NotReadError(GIVEN_BACK)
    if mapping.is_file:
        raise NotReadError(SHORTENED)
    if not mapping.is_readable:
        raise NotReadError("this memory is mapped, and cannot be read")
    if not mapping.is_device:
        # It was none just now, and may go again.
        raise NotReadError(GIVEN_BACK)


def array_at(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return an array over elements where they lie, which `can_be_read_in_place`; strides count bytes."""
    steps = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    below = sum(step for step in steps if step < 0)
    nbytes = sum(map(abs, steps)) + dtype.itemsize
    memory: Any = (ctypes.c_char * nbytes).from_address(address + below)
    return np.ndarray(shape, dtype, memory, -below, strides)


@functools.cache
def _find_system_copy() -> Any:
    """Return `process_vm_readv` of Linux if it copies memory of this process; a sandbox may forbid it."""
    try:
        copy = ctypes.CDLL(None, use_errno=True).process_vm_readv
        copy.restype = ctypes.c_ssize_t
        copy.argtypes = (
            ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
        )  # fmt: skip
        known, seen = ctypes.create_string_buffer(b"known"), ctypes.create_string_buffer(6)
        runs = [_Run(ctypes.addressof(buffer), 6) for buffer in (seen, known)]
        copied = copy(os.getpid(), ctypes.byref(runs[0]), 1, ctypes.byref(runs[1]), 1, 0)
        return copy if copied == 6 and seen.raw == known.raw else None
    except (OSError, AttributeError, TypeError):
        return None


def version_counter_of(tensor: torch.Tensor) -> int:
    """Return what identifies the version counter of `tensor`, or 0 where that cannot be told.

    A tensor shares its counter with its views and with what `detach` made of it, and keeps it where its storage is
    replaced (`set_`, ``.data =``, `Module.half`). So two tensors with one counter and two storages shared memory once.
    torch has no way to ask for it. The word that holds the pointer is found by trying: it is the only one that a tensor
    has in common with its detached alias, and neither with its ``.data`` nor with a copy. Only memory of the living
    object is read.
    """
    return int(_word_at(_handle_of(tensor) + _known.counter_offset).value) if _known.counter_offset else 0


_word_at = ctypes.c_uint64.from_address
_handle_of: Any = cast(Any, torch.Tensor._cdata).__get__


def _word(tensor: torch.Tensor, index: int) -> int:
    return int(_word_at(_handle_of(tensor) + 8 * index).value)


@functools.cache
def _find_counter_word() -> int:
    """Return which word of a tensor's own memory points to its version counter; 0 where none qualifies."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or _handle_of is None:
        return 0
    with outside_modes():
        candidates = set(range(2, 12))
        for size in (3, 5):
            tensor = torch.zeros(size, device="cpu")
            same, others = tensor.detach(), (tensor.data, tensor.clone(), torch.zeros(size, device="cpu"))
            candidates &= {
                i
                for i in candidates
                if _word(tensor, i) > 4096
                and _word(tensor, i) == _word(same, i)
                and all(_word(tensor, i) != _word(other, i) for other in others)
            }
    return candidates.pop() if len(candidates) == 1 else 0


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
CAPSULE: type = type(datetime.datetime_CAPI)
"""The type of capsules, to which Python gives a name only since 3.13."""


def tensor_in_capsule(capsule: Any) -> torch.Tensor | None:
    """Return the tensor that torch has lent by DLPack to an array whose base is `capsule`; None if it was not torch.

    Neither DLPack nor NumPy has a way to ask for it. A capsule is torch's own if its deleter is; torch then keeps the
    pointer to the tensor, or to a view that it has made of it, at the start of its part.
    """
    name = _capsule_name(capsule) if _known.torch_deleters else None
    if name not in _LENDER_OFFSETS:
        return None
    context, deleter = _lender(capsule, name)
    # What another producer keeps there need not be a pointer.
    return _tensor_at(int(_word_at(context).value)) if deleter in _known.torch_deleters and context else None


def _tensor_at(handle: int) -> torch.Tensor:
    with outside_modes():
        return cast(Any, torch.Tensor)(cdata=handle)  # type: ignore[no-any-return]


_LENDER_OFFSETS = {
    b"dltensor_versioned": 8, b"numpy_dltensor_versioned": 8, b"dltensor": 48, b"numpy_dltensor": 48,
}  # fmt: skip
"""In which byte of what a capsule of this name holds the lender's part begins: since DLPack 1.0, and before.

https://dmlc.github.io/dlpack/latest/c_api.html#c.DLManagedTensorVersioned and #c.DLManagedTensor
"""


def _lender(capsule: Any, name: bytes) -> tuple[int, int]:
    """Return where the lender keeps its part, and its deleter."""
    start = _capsule_pointer(capsule, name) + _LENDER_OFFSETS[name]
    return int(_word_at(start).value), int(_word_at(start + 8).value)


@functools.cache
def _find_deleters() -> frozenset[int]:
    """Return the addresses of the functions that end what torch has lent, beside which the tensor is found."""
    return frozenset(filter(None, (_find_deleter(max_version=(1, 0)), _find_deleter())))


def _find_deleter(**arguments: Any) -> int:
    """Return the address of one, by what torch lends when asked with these arguments; 0 where it does not qualify."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return 0
    with outside_modes():
        tensor = torch.zeros(3, device="cpu")
        try:
            capsule = tensor.__dlpack__(**arguments)
            context, deleter = _lender(capsule, _capsule_name(capsule))
            return deleter if _is_alias(int(_word_at(context).value), tensor) else 0
        except Exception:
            return 0


def _is_alias(handle: int, tensor: torch.Tensor) -> bool:
    """Return whether at `handle` there is a tensor over the memory of `tensor`: itself or, before 2.9, a view of it."""
    first_word = np.empty((1, 8), np.uint8)
    copy_into(first_word, [handle])
    # It tells the class of an object of C++.
    is_tensor = first_word.view(np.uint64) == _word(tensor, 0)
    return bool(is_tensor) and storage_address(_tensor_at(handle)) == storage_address(tensor)


def is_on() -> bool:
    """Return whether raw memory is read in this process."""
    return _known.is_on


def switch(on: bool) -> None:
    """Have raw memory read in this process, or not.

    Where it is not, a card prints what torch's own operators read, a fingerprint is a sum that they compute, and what
    only pointers tell is not known: that an array made through DLPack belongs to a tensor, and that one whose memory
    was never seen before has moved away.
    """
    _known.is_on = on
    _known.system_copy = _find_system_copy() if on else None
    _known.counter_offset = 8 * _find_counter_word() if on else 0
    _known.torch_deleters = _find_deleters() if on else frozenset()


switch(os.environ.get("TENSORNP_RAW_MEMORY", "1") != "0")
