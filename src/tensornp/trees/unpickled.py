"""The tensors in what a pickle would build: where each lies in its storage, and by which keys it is reached."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.tensor.paths import is_plain_value, key_text
from tensornp.core.values.decode import stored_dtype
from tensornp.trees.xray import Call, Global, Persistent

MAX_ENTRIES = 1_000_000
"""Values that are listed; a pickle may refer to one of them in endlessly many ways."""
_MAX_DEPTH = 100
_MAX_NDIM = 64
"""What NumPy takes."""
_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip
"""The dtype of each class of storages that torch has pickled."""
_TABLES = ("_parameters", "_buffers", "_modules")
_MAPPINGS = {("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")}
_REBUILT = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")
_PARAMETERS = ("_rebuild_parameter", "_rebuild_parameter_with_state")
_BY_TYPE = ("torch._tensor", "_rebuild_from_type_v2")
KNOWN_IMPORTS = frozenset(
    [("torch", name) for name in (*_STORAGES, *KNOWN, "Size", "device", "dtype", "Tensor", "strided")]
    + [("torch._utils", name) for name in (*_REBUILT, *_PARAMETERS)]
    + [("torch.storage", name) for name in ("UntypedStorage", "TypedStorage")]
    + [("torch.nn.parameter", name) for name in ("Parameter", "Buffer")]
    + [_BY_TYPE, ("builtins", "set"), ("__builtin__", "set"), *_MAPPINGS]
)
"""What belongs to tensors and containers; anything else, a file wants to import besides."""


class PickledTensor(NamedTuple):
    """A tensor of a pickle: a view of the storage `key`, in elements; `problem` says why it is not read."""

    path: tuple[Any, ...]
    key: str
    dtype: str
    storage_nbytes: int
    storage_itemsize: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool
    is_parameter: bool
    problem: str = ""


class PickledValue(NamedTuple):
    """Something plain beside the tensors."""

    path: tuple[Any, ...]
    value: Any


def values_of(root: Any) -> Iterator[PickledTensor | PickledValue]:
    """Yield the tensors, and the plain values beside them, depth first; modules by the names of their parameters."""
    stack: list[tuple[tuple[Any, ...], Any, frozenset[int]]] = [((), root, frozenset())]
    num = 0
    while stack:
        path, value, above = stack.pop()
        num += 1
        if num > MAX_ENTRIES:
            return
        tensor = _tensor(path, value) if isinstance(value, Call) else None
        if tensor is not None:
            yield tensor
            continue
        if is_plain_value(value):
            yield PickledValue(path, value)
            continue
        if id(value) in above or len(path) >= _MAX_DEPTH:
            continue
        below = above | {id(value)}
        children = reversed(_children(value))
        stack.extend(((*path, key) if key is not None else path, child, below) for key, child in children)


def _children(value: Any) -> list[tuple[Any, Any]]:
    """Return the keys and the values of a container; the tables of a module count as one."""
    if isinstance(value, dict):
        return _items_of(value)
    if type(value) in (list, tuple):
        return list(enumerate(value))
    if not isinstance(value, Call):
        return []
    if isinstance(value.state, dict) and "_parameters" in value.state:
        return [pair for name in _TABLES for pair in _items_of(value.state.get(name))]
    found = [*_items_of(value), *enumerate(value.appended)]
    if not found and _name(value.func) in _MAPPINGS and type(value.args) is tuple:
        # A dictionary whose items were the arguments of its class.
        found = [(None, one) for one in value.args]
    if isinstance(value.state, Call):
        return [*found, (None, value.state)]
    return found or _children(value.state)


def _items_of(table: Any) -> list[tuple[Any, Any]]:
    """Return the items of a mapping, with a word for a key that would be made by a call."""
    items = table if isinstance(table, dict) else table.items if isinstance(table, Call) else {}
    return [(f"<key {i}>" if type(key) is Call else key, value) for i, (key, value) in enumerate(items.items())]


def _name(func: Any) -> tuple[str, str]:
    return (func.module, func.name) if isinstance(func, Global) else ("", "")


def _tensor(path: tuple[Any, ...], call: Call) -> PickledTensor | None:
    """Return the tensor that a call would make, or None for another one."""
    (module, name), args = _name(call.func), call.args
    if type(args) is not tuple:
        return None
    if module == "torch._utils" and name in _PARAMETERS and args:
        inner = _tensor(path, args[0]) if isinstance(args[0], Call) else None
        is_trained = len(args) > 1 and args[1] is True
        return inner._replace(is_parameter=True, requires_grad=is_trained) if inner is not None else None
    if (module, name) == _BY_TYPE and len(args) == 4 and type(args[2]) is tuple:
        inner = _tensor(path, Call(args[0], args[2]))
        return inner if inner is not None else _unread(path, "it is of a subclass, which the file does not lay out")
    if module == "torch._utils" and name in _REBUILT:
        return _strided(path, args)
    if module in ("torch._utils", "torch._tensor") and name.startswith("_rebuild"):
        return _unread(path, f"it is made by {name}, which is not read yet")
    return None


def _unread(path: tuple[Any, ...], problem: str) -> PickledTensor:
    return PickledTensor(path, "", "", 0, 1, 0, (), (), False, False, problem)


def _strided(path: tuple[Any, ...], args: tuple[Any, ...]) -> PickledTensor:
    untold = _unread(path, "its storage is not told")
    if len(args) < 4 or not isinstance(args[0], Persistent):
        return untold
    key, offset, shape, strides = args[0].key, args[1], sizes_of(args[2]), sizes_of(args[3])
    if type(key) is not tuple or len(key) < 5 or key[0] != "storage" or shape is None or strides is None:
        return untold
    of_storage = _STORAGES.get(key[1].name, "") if isinstance(key[1], Global) else ""
    if not of_storage or not all(type(one) is int and one >= 0 for one in (offset, key[4])):
        return untold
    named = [one.name for one in args[4:] if isinstance(one, Global) and one.module == "torch" and one.name in KNOWN]
    itemsize = stored_dtype(of_storage).itemsize
    tensor = PickledTensor(
        path,
        key[2] if type(key[2]) is str else str(key[2])[:20],
        (named or [of_storage])[0],
        key[4] * itemsize,
        itemsize,
        offset,
        shape,
        strides,
        requires_grad=len(args) > 4 and args[4] is True,
        is_parameter=False,
    )
    return tensor._replace(problem=_problem(tensor))


def _problem(tensor: PickledTensor) -> str:
    if len(tensor.shape) != len(tensor.strides):
        return "its strides are not those of its shape"
    if math.prod(tensor.shape) >= 2**60:
        return "its shape is too large for any memory"
    reach = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True)) + 1
    is_inside = 0 in tensor.shape or reach * stored_dtype(tensor.dtype).itemsize <= tensor.storage_nbytes
    return "" if is_inside else "it reaches beyond its storage"


def sizes_of(value: Any) -> tuple[int, ...] | None:
    """Return a shape or strides; as torch.Size, they are the argument of a call."""
    if isinstance(value, Call) and type(value.args) is tuple and len(value.args) == 1:
        value = value.args[0]
    is_short = type(value) in (tuple, list) and len(value) <= _MAX_NDIM
    return tuple(value) if is_short and all(type(one) is int and 0 <= one < 2**62 for one in value) else None


def shown_key(key: Any) -> str:
    """Return a key as a part of a name."""
    return key if type(key) is str else key_text(key)
