"""Where torch's own objects point to, read from memory: two questions for which torch has no words, public or private.

Which tensors share a version counter, and which tensor an array was lent from by DLPack. Each reader is tried at import
on tensors whose answer is known, and gives no answer where it fails there. Verified with torch 2.13 on Linux.
"""

from __future__ import annotations

import ctypes
import datetime
from typing import Any, cast

import torch

from tensornp.core.torch_private import find, undisturbed


def version_counter_of(tensor: torch.Tensor) -> int:
    """Return what identifies the version counter of `tensor`, or 0 where that cannot be told.

    A tensor shares its counter with its views and with what `detach` made of it, and keeps it where its storage is
    replaced (`set_`, ``.data =``, `Module.half`). So two tensors with one counter and two storages shared memory once.
    torch has no way to ask for it. The word that holds the pointer is found by trying: it is the only one that a tensor
    has in common with its detached alias, and neither with its ``.data`` nor with a copy. Only memory of the living
    object is read.
    """
    return int(_word_at(_handle_of(tensor) + _COUNTER_OFFSET).value) if _COUNTER_OFFSET else 0


_word_at = ctypes.c_uint64.from_address
_handle_of = find("Tensor._cdata.__get__")


def _word(tensor: torch.Tensor, index: int) -> int:
    return int(_word_at(_handle_of(tensor) + 8 * index).value)


def _find_counter_word() -> int:
    """Return which word of a tensor's own memory points to its version counter; 0 where none qualifies."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or _handle_of is None:
        return 0
    with undisturbed():
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


_COUNTER_OFFSET = 8 * _find_counter_word()

_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def tensor_in_capsule(capsule: Any) -> torch.Tensor | None:
    """Return the tensor that torch has lent by DLPack to an array whose base is `capsule`; None if it was not torch.

    Neither DLPack nor NumPy has a way to ask for it. A capsule is torch's own if its deleter is; torch then keeps the
    pointer to the tensor at the start of its part.
    """
    name = _capsule_name(capsule)
    if not _LENT_BY_TORCH or name not in (b"numpy_dltensor_versioned", b"dltensor_versioned"):
        return None
    handle, deleter = _lender(capsule, name)
    return _tensor_at(handle) if deleter == _LENT_BY_TORCH else None


def _tensor_at(handle: int) -> torch.Tensor:
    with undisturbed():
        return cast(Any, torch.Tensor)(cdata=handle)  # type: ignore[no-any-return]


def _lender(capsule: Any, name: bytes) -> tuple[int, int]:
    """Return the first word of what the lender keeps, and its deleter, from the second and third word of the struct.

    https://dmlc.github.io/dlpack/latest/c_api.html#c.DLManagedTensorVersioned
    """
    _version, context, deleter = (int(_word_at(_capsule_pointer(capsule, name) + 8 * i).value) for i in range(3))
    return (int(_word_at(context).value) if context else 0), deleter


def _find_deleter() -> int:
    """Return the address of the function that ends what torch has lent; 0 where the tensor is not found beside it."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return 0
    with undisturbed():
        tensor = torch.zeros(3, device="cpu")
        try:
            capsule = tensor.__dlpack__(max_version=(1, 0))
            handle, deleter = _lender(capsule, b"dltensor_versioned")
            return deleter if handle == tensor._cdata and _tensor_at(handle) is tensor else 0
        except Exception:
            return 0


CAPSULE: type = type(datetime.datetime_CAPI)
"""The type of capsules, to which Python gives a name only since 3.13."""
_LENT_BY_TORCH = _find_deleter()
