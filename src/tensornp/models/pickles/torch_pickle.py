"""Read the pickles of torch: tensors as views of their storages, and plain values."""

from __future__ import annotations

import math
import re
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import num_reached, unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.pickles import reader

MAX_NAME = 60
"""Characters of a word of the file that is shown."""
_MAX_NDIM = 1000
_MAX_SIZE = 2**62
_MAX_NUMEL = 2**60
_MAX_INNER = 64
_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8", "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}  # fmt: skip
_CODES = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
"""The dtype of the codes of a quantized tensor."""
_ITEMSIZES = {
    dtype: 1 if dtype.endswith(("x2", "x4")) else stored_dtype(_CODES.get(dtype, dtype)).itemsize
    for dtype in _STORAGES.values()
}
"""Bytes of an element of each storage; a byte of quint4x2 has two codes."""
_MAX_REPEATED = 2**32
"""Elements of a view, in which stored ones repeat, that are read at most."""
SCALAR = re.compile(r"b1|[iu][1248]|f[248]|c(8|16)|[US]\d{1,4}")


class Storage(NamedTuple):
    """A storage outside of the pickle."""

    key: str
    dtype: str
    itemsize: int
    nbytes: int


class PickledTensor(NamedTuple):
    """A tensor in a pickle: a view of a storage, in elements, as those of `FileSource`.

    `problem` says why it is not read. A tensor with a `quantizer` shows the integer codes. A tensor without a storage
    is of a class that computes its values from others, which take `wrapped_nbytes`.
    """

    storage: Any = None
    dtype: str = ""
    offset: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    kind: str = "tensor"
    problem: str = ""
    quantizer: Any = None
    class_name: str = ""
    wrapped_nbytes: int = 0

    @property
    def nbytes(self) -> int:
        itemsize = stored_dtype(self.dtype).itemsize if self.dtype in KNOWN else 0
        return self.wrapped_nbytes if self.storage is None else math.prod(self.shape) * itemsize


def read_torch_pickle(data: bytes, said: str) -> reader.Pickled:
    """Return the contents of a pickle; CheckpointError, which begins with `said`, if it is not sound."""
    try:
        return reader.read_pickle(data, _maker_of, _storage_of)
    except CheckpointError as error:
        raise CheckpointError(f"{said} cannot be looked through: {error}") from None


def is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_SIZE


def sizes_of(value: Any) -> tuple[int, ...] | None:
    """Return a shape or strides, None for any other value."""
    if type(value) not in (tuple, list) or len(value) > _MAX_NDIM:
        return None
    for one in value:
        if type(one) is not int or not 0 <= one < _MAX_SIZE:
            return None
    return tuple(value)


def torch_name(value: Any) -> str:
    """Return the name of an import from torch, such as a dtype; empty for any other value."""
    return value.what.name if type(value) is reader.Function and value.what.module == "torch" else ""


def class_of(value: Any) -> tuple[str, str]:
    """Return module and name of the class or function of an object; two empty texts if it has none."""
    what = value.what if type(value) in (reader.Opaque, reader.Function) else None
    return (what.module, what.name) if what is not None else ("", "")


def _storage_of(pid: Any) -> Any:
    """Return the storage of ``("storage", class, key, location, numel)``, or the class of a module."""
    if pid[0] == "module":
        # Before the zip, torch wrote the source of a class next to it.
        return pid[1]
    _, cls, key, _, numel, *view = pid
    dtype = _STORAGES.get(cls.what.name) if type(cls) is reader.Function else None
    if type(key) not in (str, int) or not dtype or not is_size(numel) or any(view):
        return reader.Opaque(None)
    return Storage(str(key), dtype, _ITEMSIZES[dtype], numel * _ITEMSIZES[dtype])


def _tensor(
    storage: Any = None, offset: Any = None, shape: Any = None, strides: Any = None, _: Any = False,
    hooks: Any = None, metadata: Any = None, *, dtype: str = "", quantizer: Any = None,
) -> PickledTensor:  # fmt: skip
    shape, strides = sizes_of(shape), sizes_of(strides)
    if type(storage) is not Storage or not is_size(offset) or shape is None or strides is None:
        raise TypeError
    dtype = dtype or (storage.dtype if quantizer is None else _CODES.get(storage.dtype, storage.dtype))
    name = dtype if dtype in KNOWN else legible(dtype[:MAX_NAME])
    if len(strides) == len(shape):
        strides = unless_in_order(shape, strides)
    problem = _problem(storage, name, offset, shape, strides)
    if metadata and not problem:
        # A view may be meant conjugated or negated.
        problem = "it is a lazy view; save its resolve_conj().resolve_neg()"
    return PickledTensor(storage, name, offset, shape, strides, "tensor", problem, quantizer)


def _problem(storage: Storage, dtype: str, offset: int, shape: tuple[int, ...], strides: Any) -> str:
    if dtype not in KNOWN:
        return f"its dtype {dtype} is not known" if dtype else "its dtype is not told"
    if strides is not None and len(shape) != len(strides):
        return "its strides are not those of its shape"
    num_stored = numel = math.prod(shape)
    if not numel:
        return ""
    if strides is not None:
        num_stored = num_reached(shape, strides)
    if numel > max(num_stored, _MAX_REPEATED):
        return f"it repeats {num_stored:,} stored elements as {numel:,}"
    is_inside = (offset + num_stored) * stored_dtype(dtype).itemsize <= storage.nbytes
    return "" if is_inside else "it reaches beyond its storage"


def _parameter(data: Any, *_: Any) -> Any:
    if type(data) is not PickledTensor:
        raise TypeError
    return data._replace(kind="parameter")


def _tensor_of_class(func: Any, cls: Any, args: Any, state: Any) -> Any:
    """Return the tensor of a subclass: of a class that wraps others, or with values of its own."""
    if type(func) is reader.Function and func.what == _WRAPPER:
        return _wrapper(args[0], args[1], args[2], state)
    return func.make(*args)


def _wrapper(cls: Any, dtype: Any, shape: Any, state: Any) -> PickledTensor:
    """Return a tensor whose class computes its values, such as DTensor and those of torchao."""
    name, shape = legible(class_of(cls)[1][:MAX_NAME]), sizes_of(shape)
    if not name or not torch_name(dtype) or shape is None or math.prod(shape) >= _MAX_NUMEL:
        raise TypeError
    tables = [one for one in (state if type(state) is tuple else (state,)) if type(one) is dict]
    values = chain.from_iterable(islice(table.values(), _MAX_INNER) for table in tables)
    nbytes = sum({id(one): one.nbytes for one in values if type(one) is PickledTensor}.values())
    if name == "DTensor":
        problem = "the file holds the part of one rank; save full_tensor() of it"
    else:
        problem = f"{name} computes its values; give weights what torch.load returns, if you trust the file"
    dtype_name = legible(torch_name(dtype)[:MAX_NAME])
    return PickledTensor(None, dtype_name, 0, shape, problem=problem, class_name=name, wrapped_nbytes=nbytes)


def _encoded(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError
    return text.encode("latin-1")


def _scalar(dtype: Any, data: Any) -> Any:
    code = dtype.args[0]
    order = dtype.state[1].replace("|", "<")
    data = data.encode("latin-1") if type(data) is str else data
    stored = np.dtype(f"{order}{code}") if SCALAR.fullmatch(code) else None
    if stored is None or len(data) != stored.itemsize:
        raise ValueError
    return np.ndarray((), stored, data).item()


def _text(*parts: Any) -> str:
    if not all(type(one) in (str, int) for one in parts):
        raise TypeError
    return ":".join(map(str, parts))[:MAX_NAME]


def _first(value: Any, *_: Any) -> Any:
    return value


def _of(modules: str, names: str, make: reader.Maker | None = None) -> dict[reader.Import, reader.Maker | None]:
    return {reader.Import(module, name): make for module in modules.split() for name in names.split()}


_WRAPPER = reader.Import("torch._utils", "_rebuild_wrapper_subclass")
_BUILTINS = "builtins __builtin__"
_TENSOR_IMPORTS: dict[reader.Import, reader.Maker | None] = (
    _of("collections", "OrderedDict", reader.mapping_of)
    | _of("collections", "defaultdict", lambda _=None, given=(): reader.mapping_of(given))
    | _of(_BUILTINS, "set frozenset", reader.PickledSet)
    | _of(_BUILTINS, "dict", reader.mapping_of)
    | _of("torch", "Size", _first)
    | _of("torch", "device", _text)
    | _of("torch.serialization", "_get_layout", _text)
    | _of("torch.jit._pickle", "build_tensorlist restore_type_tag", _first)
    | _of("torch._tensor", "_rebuild_from_type_v2", _tensor_of_class)
    | _of("torch._utils", "_rebuild_tensor _rebuild_tensor_v2", _tensor)
    | _of("torch._utils", "_rebuild_tensor_v3", lambda *a: _tensor(*a[:6], *a[7:8], dtype=torch_name(a[6]) or "?"))
    | _of("torch._utils", "_rebuild_parameter _rebuild_parameter_with_state", _parameter)
    | _of("torch._utils", "_rebuild_qtensor", lambda *a: _tensor(*a[:4], *a[5:6], quantizer=a[4] or ()))
    | _of("torch._utils", "_rebuild_wrapper_subclass")
)
_OF_TENSORS = re.compile(
    r"torch\.(dtype|Tensor|strided|per_(tensor|channel)_\w+|q?u?int\d\w*|bits\d\w*|storage\.(Untyped|Typed)Storage"
    r"|nn\.parameter\.(Parameter|Buffer)|distributed\.(_?tensor|device_mesh|_mesh_layout)(\.\w+)*\."
    r"(DTensor(Spec)?|TensorMeta|ShardOrderEntry|_?(Strided)?Shard|Replicate|Partial|DeviceMesh|_(Mesh|Flat)Layout))"
)
"""Other imports of tensors, which are neither called nor made."""
_PLAIN_IMPORTS = (
    _of("_codecs", "encode", _encoded)
    | _of(_BUILTINS, "complex", complex)
    | _of(_BUILTINS, "bytes", lambda: b"")
    | _of("numpy.core.multiarray numpy._core.multiarray", "scalar", _scalar)
)
"""Other imports whose calls give plain values."""


def is_of_tensors(what: reader.Import) -> bool:
    is_dtype = what.module == "torch" and (what.name in _STORAGES or what.name in KNOWN)
    return what in _TENSOR_IMPORTS or is_dtype or bool(_OF_TENSORS.fullmatch(str(what)))


def _maker_of(what: reader.Import) -> reader.Maker | None:
    return _first if what.module == "torch.return_types" else _TENSOR_IMPORTS.get(what) or _PLAIN_IMPORTS.get(what)
