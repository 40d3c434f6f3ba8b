"""Tensors of many kinds, and objects that want to be noticed: what a look must not ask anything of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch


class Raising(torch.Tensor):
    """Refuses every operation, and every attribute that torch hands to it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"{func} was called")


class Overriding(torch.Tensor):
    """Counts what is asked of it."""

    asked: list[str] = []  # noqa: RUF012

    shape = dtype = device = grad = data = requires_grad = is_leaf = property(lambda self: self.asked.append("fact"))

    def numpy(self, **_):
        self.asked.append("numpy")

    def __len__(self):
        self.asked.append("len")
        return 7

    def __array__(self, *_):
        self.asked.append("array")
        return np.zeros(1)

    __iter__ = __bool__ = __eq__ = __hash__ = __repr__ = __getitem__ = numpy  # type: ignore[assignment]


class Lying:
    """Lies about its class, and about all else."""

    asked: list[str] = []  # noqa: RUF012

    def _answer(self, *_: Any) -> Any:
        self.asked.append("asked")
        return torch.Tensor

    __class__ = property(_answer)  # type: ignore[assignment]
    __getattr__ = __len__ = __bool__ = __eq__ = __iter__ = __repr__ = __fspath__ = _answer  # type: ignore[assignment]
    __hash__ = __array__ = __array_interface__ = __dlpack__ = __buffer__ = _answer  # type: ignore[assignment]


class OddArray(np.ndarray):
    """Overrides what NumPy asks of an array."""

    asked: list[str] = []  # noqa: RUF012

    def __array_finalize__(self, obj):
        self.asked.append("finalize")

    def __array_ufunc__(self, *args, **kwargs):
        raise RuntimeError("a ufunc was called")

    def __array_function__(self, *args, **kwargs):
        raise RuntimeError("a function was called")

    shape = nbytes = dtype = property(lambda self: self.asked.append("fact"))


NOTICING = (Overriding, Lying, OddArray)


def many_kinds() -> dict[str, torch.Tensor]:
    """Return tensors by name, two of classes that notice what is asked of them."""
    p = torch.nn.Parameter(torch.ones(2, 3))
    (p * p).sum().backward()
    base = torch.arange(12.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        sparse = torch.eye(3).to_sparse_csr()
    return {
        "y": base, "view": base[2:6], "p": p, "grown": (p * 2).exp(), "half": torch.ones(3).bfloat16(),
        "conj": torch.ones(2, dtype=torch.complex64).conj(), "coo": torch.eye(3).to_sparse(), "csr": sparse,
        "nested": nested, "empty": torch.ones(0, 3), "scalar": torch.tensor(1.0),
        "raising": torch.ones(3).as_subclass(Raising), "overriding": torch.ones(3).as_subclass(Overriding),
        "cow": torch._lazy_clone(torch.ones(4)), "inference": _inference(),
    }  # fmt: skip


def _inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2)


def plain(t: torch.Tensor) -> torch.Tensor:
    """Return an alias of `t` that can be compared before and after; its class would count that, or raise."""
    return t.as_subclass(torch.Tensor) if type(t) in (Raising, Overriding) else t


def nothing_was_asked() -> bool:
    """Return whether no object of the classes above was asked anything."""
    return not any(cls.asked for cls in NOTICING)


def forget_what_was_asked() -> None:
    for cls in NOTICING:
        cls.asked.clear()
