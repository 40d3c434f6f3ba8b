"""A tensor that a pickle would build: which elements of which storage it shows, and why it is not read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import num_reached
from tensornp.models.pickles.records import Call, Global, Persistent
from tensornp.models.reading.lazy_signs import AS_STORED, LazyBits, why_not_applied

_MAX_NDIM = 1000
"""Dimensions that are listed; NumPy has fewer."""
MAX_NUMEL = 2**60
"""More elements than any memory has."""
MAX_SAID = 60
"""Characters of a word of the pickle that are told."""
STORAGES = {
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
REBUILT = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")
NUM_BEFORE_METADATA = 6
"""Arguments of a tensor before its metadata, and before its dtype."""
PARAMETERS = ("_rebuild_parameter", "_rebuild_parameter_with_state")
QUANTIZED = "_rebuild_qtensor"
_SCHEMES = tuple(
    f"per_{each}" for each in (
        "tensor_affine", "channel_affine", "tensor_symmetric", "channel_symmetric", "channel_affine_float_qparams",
    )
)  # fmt: skip
BY_TYPE = ("torch._tensor", "_rebuild_from_type_v2")
WRAPPER = ("torch._utils", "_rebuild_wrapper_subclass")
"""By which a tensor is made that has no storage of its own, and others as attributes."""
DTENSOR = "DTensor"
_OF_DTENSORS = (
    "DTensor api.DTensor _dtensor_spec.DTensorSpec _dtensor_spec.TensorMeta _dtensor_spec.ShardOrderEntry "
    "placement_types.Shard placement_types._StridedShard placement_types.Replicate placement_types.Partial"
).split()
_OF_MESHES = "device_mesh.DeviceMesh _mesh_layout._MeshLayout _mesh_layout._FlatLayout".split()
MAPPINGS = {("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")}
BY_POSITION = "torch.return_types"
"""Where the classes are of which the fields are listed by their places."""
SIZE = ("torch", "Size")
SETS = {(module, name) for module in ("builtins", "__builtin__") for name in ("set", "frozenset")}
WRAPPERS = {("torch.jit._pickle", name) for name in ("build_tensorlist", "restore_type_tag")}
"""What TorchScript puts around lists and dictionaries."""
KNOWN_IMPORTS = frozenset(
    [("torch", name) for name in (*STORAGES, *KNOWN, "Size", "device", "dtype", "Tensor", "strided")]
    + [
        ("torch", name)
        for name in (*_CODES, *_PACKED, *_PACKED.values(), *map("q{}".format, _CODES.values()), *_SCHEMES)
    ]
    + [("torch._utils", name) for name in (*REBUILT, QUANTIZED, *PARAMETERS)]
    + [("torch.storage", name) for name in ("UntypedStorage", "TypedStorage")]
    + [("torch.nn.parameter", name) for name in ("Parameter", "Buffer")]
    + [(f"torch.distributed.{name}".rpartition(".")[::2]) for name in _OF_MESHES]
    + [
        f"torch.distributed.{package}.{name}".rpartition(".")[::2]
        for name in _OF_DTENSORS
        for package in ("tensor", "_tensor")
    ]
    + [("torch.serialization", "_get_layout"), WRAPPER, BY_TYPE, *SETS, *WRAPPERS, *MAPPINGS]
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

    `storage_dtype` is that of the storage, where it alone tells that of the elements; else it is empty. Of a quantized
    one, `dtype` is that of its codes, and `quantizer` what the pickle says of their meaning. One that
    `is_wrapper` has no storage: its class computes its values from `inner`, the tensors that are its attributes, and
    `number` tells it from others of its pickle.
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
    class_name: str = ""
    inner: tuple[tuple[str, PickledTensor], ...] = ()
    number: int = 0
    storage_dtype: str = ""

    @property
    def is_wrapper(self) -> bool:
        """Whether it is of a class of its own, without a storage."""
        return bool(self.class_name) and not self.key

    @property
    def is_computed(self) -> bool:
        """Whether its class computes values that none of `inner` has."""
        return self.is_wrapper and self.class_name != DTENSOR

    @property
    def dtype_name(self) -> str:
        """The dtype as torch calls it."""
        return f"q{self.dtype}" if self.is_quantized else self.dtype


def name_of(func: Any) -> tuple[str, str]:
    """Return the module and the name of what would be called; two empty texts for what is not imported."""
    return (func.module, func.name) if isinstance(func, Global) else ("", "")


def told_storage(persistent: Any) -> StorageTold | None:
    """Return what is said of a storage, or None where that is not what torch says."""
    key = persistent.key if isinstance(persistent, Persistent) else None
    if type(key) is not tuple or len(key) < 5 or key[0] != "storage" or not isinstance(key[1], Global):
        return None
    kind, name, numel, view = key[1].name, storage_key(key[2]), key[4], key[5] if len(key) > 5 else None
    dtype = STORAGES.get(kind) or _CODES.get(kind)
    itemsize = stored_dtype(dtype).itemsize if dtype else int(kind in _PACKED)
    if name is None or not itemsize or not is_size(numel):
        return None
    if view is None:
        return StorageTold(name, kind, numel, itemsize)
    # A view of a storage, as torch 0.3 wrote it: its own key, where it begins, and its size.
    if type(view) is not tuple or len(view) != 3 or not all(map(is_size, view[1:])) or view[1] + view[2] > numel:
        return None
    return StorageTold(name, kind, numel, itemsize, view[1])


def first_told(persistent: Iterable[Persistent]) -> dict[str, StorageTold]:
    """Return what is said of each storage first: torch keeps it, whatever else is said; empty ones it does not keep."""
    every = [told_storage(one) for one in persistent]
    return {one.key: one for one in reversed(every) if one is not None and one.nbytes}


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


def told_dtype(told: Any) -> str:
    """Return the name of one of torch's dtypes; empty for another thing."""
    return told.name if isinstance(told, Global) and told.module == "torch" else ""


def unread(path: tuple[Any, ...], problem: str) -> PickledTensor:
    """Return a tensor of which nothing is known but why."""
    return PickledTensor(path, "", "", 0, 0, (), (), False, False, problem=problem, is_sound=False)


def quantized(path: tuple[Any, ...], args: tuple[Any, ...]) -> PickledTensor:
    """Return what is laid out by `storage, offset, shape, strides, quantizer, requires_grad, hooks`."""
    storage = told_storage(args[0]) if len(args) > 5 else None
    if storage is not None and storage.kind in _PACKED:
        return unread(path, f"its codes are {_PACKED[storage.kind]}, several in a byte, which is not read yet")
    made = strided(path, "", (*args[:4], *args[5:6]), _CODES)
    return made._replace(is_quantized=True, quantizer=args[4]) if made.dtype else made


def strided(
    path: tuple[Any, ...], name: str, args: tuple[Any, ...], dtypes: dict[str, str] = STORAGES
) -> PickledTensor:
    """Return what is laid out by `storage, offset, shape, strides, requires_grad, hooks`, a dtype, and lazy bits."""
    storage = told_storage(args[0]) if len(args) > 3 else None
    shape, strides = (sizes_of(args[2]), sizes_of(args[3])) if len(args) > 3 else (None, None)
    if storage is None or storage.kind not in dtypes or not is_size(args[1]):
        return unread(path, "its storage is not told")
    if shape is None or strides is None:
        return unread(path, f"it has no shape and strides of up to {_MAX_NDIM:,} dimensions")
    dtype: Any = dtypes[storage.kind]
    has_dtype = name == "_rebuild_tensor_v3"
    if has_dtype:
        dtype = told_dtype(args[6] if len(args) > 6 else None)
    at = NUM_BEFORE_METADATA + has_dtype
    lazy = _lazy_bits(args[at] if len(args) > at else None)
    offset = args[1] + storage.offset * storage.itemsize // stored_dtype(dtype).itemsize
    tensor = PickledTensor(
        path,
        storage.key,
        legible(dtype[:MAX_SAID]),
        storage.nbytes,
        offset,
        shape,
        strides,
        requires_grad=len(args) > 4 and args[4] is True,
        is_parameter=False,
        lazy=lazy or AS_STORED,
        storage_dtype="" if has_dtype else dtype,
    )
    problem = _problem(tensor) if lazy is not None else "it is not told whether its elements are meant otherwise"
    return tensor._replace(problem=problem or why_not_applied(tensor.lazy, dtype), is_sound=not problem)


def _lazy_bits(metadata: Any) -> LazyBits | None:
    """Return the bits of which the names are keys: torch sets them, whatever their values; None of another thing."""
    if not metadata:
        return AS_STORED
    if isinstance(metadata, Call) and name_of(metadata.func) in MAPPINGS and not metadata.args:
        metadata = metadata.items
    return LazyBits("conj" in metadata, "neg" in metadata) if isinstance(metadata, Mapping) else None


def _problem(tensor: PickledTensor) -> str:
    if tensor.dtype not in KNOWN:
        return f"its dtype {tensor.dtype} is not known" if tensor.dtype else "its dtype is not told"
    if len(tensor.shape) != len(tensor.strides):
        return "its strides are not those of its shape"
    if math.prod(tensor.shape) >= MAX_NUMEL:
        return "its shape is too large for any memory"
    reach = tensor.offset + num_reached(tensor.shape, tensor.strides)
    is_inside = 0 in tensor.shape or reach * stored_dtype(tensor.dtype).itemsize <= tensor.storage_nbytes
    return "" if is_inside else "it reaches beyond its storage"
