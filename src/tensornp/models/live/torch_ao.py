"""List the weights that torch's quantized modules keep packed in C++ objects.

Shapes come from the sizes of the module, as unpacking copies the whole weight and takes long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from operator import methodcaller
from typing import Any

import torch

from tensornp.core.tensor.dtypes import name_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.live.made import MadeSource, Recipe

_ROOM = "torch.ao.nn.quantized"
_MAYBE = "if there is one"
_SAVED = "_packed_params._packed_params"
"""What a state dict calls the weight and the bias of a linear module, as a pair."""
_BITS = {"qint8": 8, "quint8": 8, "quint4x2": 4, "float16": 16, "float32": 32}
_Held = Mapping[str, Any]


class _Facts:
    """Makes the entries of one quantized module."""

    def __init__(self, module: Any, code: str, held: _Held) -> None:
        self.module, self.code, self.held = module, code, held
        is_dynamic = any(cls.__module__.startswith(f"{_ROOM}.dynamic") for cls in type(module).__mro__)
        self._said = f"packed for {'dynamic' if is_dynamic else 'static'} quantization"
        self.packed: Any = module

    def entry(
        self,
        name: str,
        shape: tuple[Any, ...] | None,
        dtype: str,
        call: str,
        *,
        note: str = "",
        saved_as: str = "",
    ) -> WeightEntry:
        """Return a weight that a method of the module gives."""
        told = None
        if shape is not None and all(type(size) is int and size >= 0 for size in shape):
            told = shape
        source = MadeSource(
            self.module, methodcaller(call), Recipe(self.code, packed_of, name),
            location="cpu", identity=(id(self.packed), name), requires_grad=False, may_be_none=told is None,
        )  # fmt: skip
        nbytes = math.prod(told) * _BITS.get(dtype, 8) // 8 if told is not None else 0
        code = f"{self.code}.{call}()"
        said = ", ".join(filter(None, [self._said, note]))
        return WeightEntry(
            name, "parameter", told, dtype, nbytes, source, code, said, _saved_as=(saved_as,) if saved_as else ()
        )


_Lister = Callable[[_Facts], Iterator[WeightEntry]]


def is_packed(module: Any) -> bool:
    """Return whether a module is one of those that pack their weights."""
    return _lister_of(type(module)) is not None


def is_made_of_packed(entry: WeightEntry) -> bool:
    """Return whether a weight is one that a module unpacks."""
    return isinstance(entry._source, MadeSource) and entry._source.recipe.source is packed_of


def packed_of(module: Any, code: str) -> Iterator[WeightEntry]:
    """Yield the packed weights of a module without unpacking them."""
    lister, held = _lister_of(type(module)), getattr(module, "__dict__", None)
    if lister is not None and held is not None:
        yield from lister(_Facts(module, code, held))


def _lister_of(cls: type) -> _Lister | None:
    for base in cls.__mro__:
        place = base.__module__
        if place.startswith(_ROOM) and (lister := _LISTERS.get((place, base.__name__))) is not None:
            return lister
    return None


def _linear(facts: _Facts) -> Iterator[WeightEntry]:
    inner = _inner(facts)
    facts.packed = inner.get("_packed_params", facts.module)
    shape = facts.held.get("out_features"), facts.held.get("in_features")
    yield facts.entry("weight", shape, _name_of(inner.get("dtype")), "weight", saved_as=f"{_SAVED}.0")
    yield facts.entry("bias", None, "float32", "bias", note=_MAYBE, saved_as=f"{_SAVED}.1")


def _conv(facts: _Facts) -> Iterator[WeightEntry]:
    facts.packed = facts.held.get("_packed_params", facts.module)
    sizes = [facts.held.get(name) for name in ("out_channels", "in_channels", "groups")]
    kernel, shape = facts.held.get("kernel_size"), None
    if all(type(size) is int and size > 0 for size in sizes) and type(kernel) is tuple:
        num_out, num_in, groups = sizes
        is_turned = facts.held.get("transposed") is True
        lead = (num_in, num_out // groups) if is_turned else (num_out, num_in // groups)  # type: ignore[operator]
        shape = (*lead, *kernel)
    yield facts.entry("weight", shape, "qint8", "weight")
    yield facts.entry("bias", None, "float32", "bias", note=_MAYBE)


def _embedding(facts: _Facts) -> Iterator[WeightEntry]:
    inner = _inner(facts)
    facts.packed = inner.get("_packed_weight", facts.module)
    shape = facts.held.get("num_embeddings"), facts.held.get("embedding_dim")
    yield facts.entry("weight", shape, _name_of(inner.get("dtype")), "weight", saved_as="_packed_params._packed_weight")


def _inner(facts: _Facts) -> _Held:
    """Return the attributes of the submodule with the packed object."""
    return getattr(facts.held.get("_modules", {}).get("_packed_params"), "__dict__", None) or {}


def _name_of(dtype: Any) -> str:
    return name_of(dtype) if isinstance(dtype, torch.dtype) else ""


_LISTERS: dict[tuple[str, str], _Lister] = {
    (f"{_ROOM}.modules.linear", "Linear"): _linear,
    (f"{_ROOM}.modules.conv", "_ConvNd"): _conv,
    (f"{_ROOM}.modules.embedding_ops", "Embedding"): _embedding,
}
"""By module and name of a class, also where one that derives from it is met."""
