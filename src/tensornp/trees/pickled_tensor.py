"""A tensor that a pickle would build: which elements of which storage it shows, and why it is not read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tensornp.core.lowlevel.legible import legible
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.decode import stored_dtype
from tensornp.trees.lazy_bits import AS_STORED, LazyBits, why_not_applied
from tensornp.trees.xray_records import Call, Global, Persistent

_MAX_NDIM = 1000
"""Dimensions that are listed; NumPy has fewer."""
_MAX_WRAPPED = 8
_MAX_SAID = 60
_MAX_KEY_DIGITS = 20
_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip
"""The dtype of each class of storages that torch has pickled."""
_CODES = {"QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32"}
"""The dtype of the codes of quantized tensors."""
_PACKED = {"QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4"}
"""Those of which a byte has several codes."""
_REBUILT = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")
_PARAMETERS = ("_rebuild_parameter", "_rebuild_parameter_with_state")
_QUANTIZED = "_rebuild_qtensor"
_SCHEMES = tuple(
    f"per_{each}" for each in (
        "tensor_affine", "channel_affine", "tensor_symmetric", "channel_symmetric", "channel_affine_float_qparams",
    )
)  # fmt: skip
_BY_TYPE = ("torch._tensor", "_rebuild_from_type_v2")
MAPPINGS = {("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")}
SETS = {(module, name) for module in ("builtins", "__builtin__") for name in ("set", "frozenset")}
WRAPPERS = {("torch.jit._pickle", name) for name in ("build_tensorlist", "restore_type_tag")}
"""What TorchScript puts around lists and dictionaries."""
KNOWN_IMPORTS = frozenset(
    [("torch", name) for name in (*_STORAGES, *KNOWN, "Size", "device", "dtype", "Tensor", "strided")]
    + [
        ("torch", name)
        for name in (*_CODES, *_PACKED, *_PACKED.values(), *map("q{}".format, _CODES.values()), *_SCHEMES)
    ]
    + [("torch._utils", name) for name in (*_REBUILT, _QUANTIZED, *_PARAMETERS)]
    + [("torch.storage", name) for name in ("UntypedStorage", "TypedStorage")]
    + [("torch.nn.parameter", name) for name in ("Parameter", "Buffer")]
    + [_BY_TYPE, *SETS, *WRAPPERS, *MAPPINGS]
)
"""What belongs to tensors and containers; anything else, a file wants to import besides."""


class StorageTold(NamedTuple):
    """What a pickle says of a storage: its key, its class, how many elements it has, and where a view of it begins."""

    key: str
    kind: str
    numel: int
    itemsize: int
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.numel * self.itemsize


class PickledTensor(NamedTuple):
    """A tensor of a pickle: a view of the storage `key`, in elements; `problem` says why it is not read.

    Of a quantized one, `dtype` is that of its codes, and `quantizer` what the pickle says of their meaning.
    """

    path: tuple[Any, ...]
    key: str
    dtype: str
    storage_nbytes: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool
    is_parameter: bool
    lazy: LazyBits = AS_STORED
    problem: str = ""
    is_sound: bool = True
    is_quantized: bool = False
    quantizer: Any = None

    @property
    def dtype_name(self) -> str:
        """The dtype as torch calls it."""
        return f"q{self.dtype}" if self.is_quantized else self.dtype


def tensor_of(path: tuple[Any, ...], call: Call, num_around: int = 0) -> PickledTensor | None:
    """Return the tensor that a call would make, or None for another one."""
    (module, name), args = name_of(call.func), call.args
    if type(args) is not tuple:
        return None
    if num_around > _MAX_WRAPPED:
        return _unread(path, f"it is wrapped more than {_MAX_WRAPPED} times")
    if module == "torch._utils" and name in _PARAMETERS and args:
        inner = tensor_of(path, args[0], num_around + 1) if isinstance(args[0], Call) else None
        is_trained = len(args) > 1 and args[1] is True
        return inner._replace(is_parameter=True, requires_grad=is_trained) if inner is not None else None
    if (module, name) == _BY_TYPE and len(args) == 4 and type(args[2]) is tuple:
        inner = tensor_of(path, Call(args[0], args[2]), num_around + 1)
        return inner if inner is not None else _unread(path, "it is of a subclass, which the file does not lay out")
    if module == "torch._utils" and name in _REBUILT:
        return _strided(path, name, args, _STORAGES)
    if module == "torch._utils" and name == _QUANTIZED:
        return _quantized(path, args)
    if module in ("torch._utils", "torch._tensor") and name.startswith("_rebuild"):
        return _unread(path, f"it is made by {legible(name[:_MAX_SAID])}, which is not read yet")
    return None


def name_of(func: Any) -> tuple[str, str]:
    """Return the module and the name of what would be called; two empty texts for what is not imported."""
    return (func.module, func.name) if isinstance(func, Global) else ("", "")


def told_storage(persistent: Any) -> StorageTold | None:
    """Return what is said of a storage, or None where that is not what torch says."""
    key = persistent.key if isinstance(persistent, Persistent) else None
    if type(key) is not tuple or len(key) < 5 or key[0] != "storage" or not isinstance(key[1], Global):
        return None
    kind, name, numel, view = key[1].name, storage_key(key[2]), key[4], key[5] if len(key) > 5 else None
    dtype = _STORAGES.get(kind) or _CODES.get(kind)
    itemsize = stored_dtype(dtype).itemsize if dtype else int(kind in _PACKED)
    if name is None or not itemsize or not is_size(numel):
        return None
    if view is None:
        return StorageTold(name, kind, numel, itemsize)
    # A view of a storage, as torch 0.3 wrote it: its own key, where it begins, and its size.
    if type(view) is not tuple or len(view) != 3 or not all(map(is_size, view[1:])) or view[1] + view[2] > numel:
        return None
    return StorageTold(name, kind, numel, itemsize, view[1])


def storage_key(key: Any) -> str | None:
    """Return the key of a storage as a text; None of what is neither a text nor a small number."""
    if type(key) is int and key.bit_length() < 64:
        return str(key)
    return key if type(key) is str else None


def is_size(value: Any) -> bool:
    """Return whether it can be a size, or an offset."""
    return type(value) is int and 0 <= value < 2**62


def sizes_of(value: Any) -> tuple[int, ...] | None:
    """Return a shape or strides; as torch.Size, they are the argument of a call."""
    if isinstance(value, Call) and type(value.args) is tuple and len(value.args) == 1:
        value = value.args[0]
    is_short = type(value) in (tuple, list) and len(value) <= _MAX_NDIM
    return tuple(value) if is_short and all(map(is_size, value)) else None


def _unread(path: tuple[Any, ...], problem: str) -> PickledTensor:
    return PickledTensor(path, "", "", 0, 0, (), (), False, False, problem=problem, is_sound=False)


def _quantized(path: tuple[Any, ...], args: tuple[Any, ...]) -> PickledTensor:
    """Return what is laid out by `storage, offset, shape, strides, quantizer, requires_grad, hooks`."""
    storage = told_storage(args[0]) if len(args) > 5 else None
    if storage is not None and storage.kind in _PACKED:
        return _unread(path, f"its codes are {_PACKED[storage.kind]}, several in a byte, which is not read yet")
    made = _strided(path, "", (*args[:4], *args[5:6]), _CODES)
    return made._replace(is_quantized=True, quantizer=args[4]) if made.dtype else made


def _strided(path: tuple[Any, ...], name: str, args: tuple[Any, ...], dtypes: dict[str, str]) -> PickledTensor:
    """Return what is laid out by `storage, offset, shape, strides, requires_grad, hooks`, a dtype, and lazy bits."""
    storage = told_storage(args[0]) if len(args) > 3 else None
    shape, strides = (sizes_of(args[2]), sizes_of(args[3])) if len(args) > 3 else (None, None)
    if storage is None or storage.kind not in dtypes or not is_size(args[1]):
        return _unread(path, "its storage is not told")
    if shape is None or strides is None:
        return _unread(path, f"it has no shape and strides of up to {_MAX_NDIM:,} dimensions")
    dtype: Any = dtypes[storage.kind]
    has_dtype = name == "_rebuild_tensor_v3"
    if has_dtype:
        told = args[6] if len(args) > 6 else None
        dtype = told.name if isinstance(told, Global) and told.module == "torch" else ""
    metadata = args[6 + has_dtype] if len(args) > 6 + has_dtype else None
    offset = args[1] + storage.offset * storage.itemsize // stored_dtype(dtype).itemsize
    tensor = PickledTensor(
        path,
        storage.key,
        legible(dtype[:_MAX_SAID]),
        storage.nbytes,
        offset,
        shape,
        strides,
        requires_grad=len(args) > 4 and args[4] is True,
        is_parameter=False,
        lazy=_lazy_bits(metadata),
    )
    problem = _problem(tensor)
    return tensor._replace(problem=problem or why_not_applied(tensor.lazy, dtype), is_sound=not problem)


def _lazy_bits(metadata: Any) -> LazyBits:
    told = metadata if type(metadata) is dict else {}
    return LazyBits(told.get("conj") is True, told.get("neg") is True)


def _problem(tensor: PickledTensor) -> str:
    if tensor.dtype not in KNOWN:
        return f"its dtype {tensor.dtype} is not known" if tensor.dtype else "its dtype is not told"
    if len(tensor.shape) != len(tensor.strides):
        return "its strides are not those of its shape"
    if math.prod(tensor.shape) >= 2**60:
        return "its shape is too large for any memory"
    reach = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True)) + 1
    is_inside = 0 in tensor.shape or reach * stored_dtype(tensor.dtype).itemsize <= tensor.storage_nbytes
    return "" if is_inside else "it reaches beyond its storage"
