"""The gallery: every kind of tensor that one can make, by name, with the array that it must become, or the refusal.

A new kind is one function that returns a `Case`. The expected array is made by NumPy or by hand, never by torch's own
conversion.
"""

from __future__ import annotations

import functools
import mmap
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

import tensornp as tnp


@dataclass(frozen=True)
class Case:
    """A tensor, and what must become of it.

    Attributes
    ----------
    tensor : torch.Tensor
    expected : numpy array, list of them, or None
        The values; None where there are none to give, and `error` and `says` then tell how that is said.
    memory : torch.Tensor, optional
        A plain tensor whose first element is that of `tensor`, for a write past every library. None where there is no
        such place, or a write would kill the process.
    """

    tensor: Any
    expected: Any = None
    error: type[Exception] | None = None
    says: str = ""
    memory: torch.Tensor | None = None


KINDS: dict[str, tuple[str, Callable[[], Case]]] = {}
"""The group and the maker of each kind, by its name."""


def kind(group: str, name: str = "", *, only_on: str = "") -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Put a maker into the gallery; `only_on` one platform, where elsewhere nobody can tell what it is."""

    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        if only_on and only_on != sys.platform:
            return make
        title = name or make.__name__.strip("_").replace("_", " ")
        assert title not in KINDS, title
        KINDS[title] = group, make
        return make

    return register


COMPLETE_SINCE = (2, 13)
"""The torch that can make every kind; an older one may lack a dtype, an operator or a class."""


def made(name: str) -> Case | str:
    """Return the case of a kind, or in a sentence why this torch, older than `COMPLETE_SINCE`, cannot make one."""
    try:
        return KINDS[name][1]()
    except Exception as error:
        if tuple(int(number) for number in torch.__version__.split(".")[:2]) >= COMPLETE_SINCE:
            raise
        return f"this torch cannot make the kind: {type(error).__name__}: {error}".partition("\n")[0]


def shared(tensor: torch.Tensor, expected: Any) -> Case:
    """Return the case of a tensor whose own memory holds the values."""
    return Case(tensor, expected, memory=tensor)


def refused(tensor: Any, error: type[Exception], says: str) -> Case:
    return Case(tensor, None, error, says)


def grid(*shape: int, dtype: Any = np.float32) -> Any:
    """Return small distinct numbers, none of them zero, that every dtype of 8 bits and more holds."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 13 + 1).astype(dtype)


# --- dtypes

DTYPES = "dtypes"
NATIVE = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128".split()
WIDENED = "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()


def _of_dtype(name: str) -> Case:
    values = grid(3, 4, dtype=name)
    return shared(torch.from_numpy(values.copy()), values)


def _all_bits(name: str) -> Case:
    size = 256 ** torch.empty(0, dtype=getattr(torch, name)).itemsize
    codes = np.arange(size, dtype=np.uint8 if size == 256 else np.uint16)
    with np.errstate(invalid="ignore"):
        values = codes.view(getattr(ml_dtypes, name, name)).astype(np.float32)
    raw = torch.from_numpy(codes.view(np.uint8 if size == 256 else np.int16).copy())
    return shared(raw.view(getattr(torch, name)), values)


for _name in NATIVE:
    kind(DTYPES, _name)(functools.partial(_of_dtype, _name))
for _name in WIDENED:
    kind(DTYPES, f"{_name}, all bit patterns")(functools.partial(_all_bits, _name))


@kind(DTYPES)
def bool_() -> Case:
    values = grid(3, 4) > 5
    return shared(torch.from_numpy(values.copy()), values)


@kind(DTYPES)
def complex32() -> Case:
    halves = (grid(6, 2) / 8).astype(np.float16)
    return shared(torch.view_as_complex(torch.from_numpy(halves.copy())), halves[:, 0] + 1j * halves[:, 1].astype("f4"))


@kind(DTYPES, "complex32, conjugated")
def _complex32_conj() -> Case:
    case = complex32()
    return Case(case.tensor.conj(), case.expected.conj(), memory=case.tensor)


@kind(DTYPES)
def float4_e2m1fn_x2() -> Case:
    codes = np.arange(16, dtype=np.uint8)
    packed = codes[0::2] | codes[1::2] << 4
    tensor = torch.from_numpy(packed).view(torch.float4_e2m1fn_x2)
    return shared(tensor, codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32))


@kind(DTYPES, "float4_e2m1fn_x2, large and transposed")
def _float4_large() -> Case:
    codes = np.arange(128 * 60, dtype=np.uint8).reshape(128, 60) % 16
    packed = np.ascontiguousarray((codes[0::2] | codes[1::2] << 4).T)
    tensor = torch.from_numpy(packed).view(torch.float4_e2m1fn_x2).t()
    # Two values come from each element of the last dimension, whatever its stride.
    codes = np.stack([packed.T & 15, packed.T >> 4], -1).reshape(64, 120)
    return shared(tensor, codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32))


def _no_values(name: str) -> Case:
    return refused(torch.empty(4, dtype=getattr(torch, name)), tnp.UnsupportedTensorError, "t.view(torch.uint8)")


for _name in [f"{sign}int{bits}" for bits in range(1, 8) for sign in ("u", "")]:
    kind(DTYPES, _name)(functools.partial(_no_values, _name))
for _name in ("bits8", "bits1x8", "bits2x4", "bits4x2", "bits16"):
    kind(DTYPES, _name)(functools.partial(_no_values, _name))


# --- quantized

QUANTIZED = "quantized"


def _quantized(dtype: torch.dtype, codes: np.ndarray[Any, Any]) -> Case:
    values = (codes.astype(np.float32) - 3) * np.float32(0.5)
    tensor = torch.quantize_per_tensor(torch.from_numpy(values.copy()), 0.5, 3, dtype)
    return Case(tensor, values)


@kind(QUANTIZED)
def quint8() -> Case:
    return _quantized(torch.quint8, grid(3, 4, dtype=np.uint8))


@kind(QUANTIZED)
def qint8() -> Case:
    return _quantized(torch.qint8, grid(3, 4, dtype=np.int8))


@kind(QUANTIZED)
def qint32() -> Case:
    return _quantized(torch.qint32, grid(3, 4, dtype=np.int32))


@kind(QUANTIZED)
def quint8_transposed_and_large() -> Case:
    case = _quantized(torch.quint8, grid(90, 70, dtype=np.uint8))
    return Case(case.tensor.t(), case.expected.T)


@kind(QUANTIZED)
def qint8_per_channel() -> Case:
    scales = np.array([0.5, 0.25, 2], np.float32)
    values = grid(50, 3, 40, dtype=np.float32) * scales[:, None]
    tensor = torch.quantize_per_channel(
        torch.from_numpy(values.copy()), torch.from_numpy(scales.astype("f8")), torch.tensor([0, 1, -2]), 1, torch.qint8
    )
    return Case(tensor, values)


@kind(QUANTIZED)
def quint4x2_per_channel() -> Case:
    values = grid(3, 4, dtype=np.float32)
    tensor = torch.quantize_per_channel(
        torch.from_numpy(values.copy()), torch.ones(3), torch.zeros(3), 0, torch.quint4x2
    )
    return Case(tensor, values)


@kind(QUANTIZED)
def quint8_whose_storage_was_freed() -> Case:
    tensor = quint8().tensor
    tensor.untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(QUANTIZED)
def quint4x2_whose_storage_was_freed() -> Case:
    tensor = quint4x2_per_channel().tensor
    tensor.untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(QUANTIZED)
def qint8_whose_scales_were_freed() -> Case:
    arguments = torch.tensor([0.5, 1.0], dtype=torch.float64), torch.tensor([0, 0]), 0, torch.qint8
    tensor = torch.quantize_per_channel(torch.ones(2, 3), *arguments)
    tensor.q_per_channel_scales().untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(QUANTIZED)
def quantized_without_a_scale() -> Case:
    return refused(torch.empty(4, dtype=torch.quint8), tnp.UnsupportedTensorError, "t.int_repr()")


# --- strides and storages

STRIDES = "strides and storages"


def _strided(change: Callable[[Any], Any], dtype: Any = np.float32, shape: tuple[int, ...] = (4, 6, 5)) -> Case:
    """Apply the same change to a tensor and to an array."""
    values = grid(*shape, dtype=dtype)
    return shared(change(torch.from_numpy(values.copy())), change(values))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "every other column": lambda x: x[..., ::2],
    "offset": lambda x: x[2:, 1:],
    "one element": lambda x: x[1, 2, 3:4],
}
for _name, _change in CHANGES.items():
    kind(STRIDES, _name)(functools.partial(_strided, _change))


@kind(STRIDES)
def transposed() -> Case:
    values = grid(40, 60)
    return shared(torch.from_numpy(values.copy()).t(), values.T)


@kind(STRIDES)
def permuted_bfloat16() -> Case:
    values = grid(30, 40, 5)
    return shared(torch.from_numpy(values.copy()).bfloat16().permute(2, 0, 1), values.transpose(2, 0, 1))


@kind(STRIDES)
def channels_last() -> Case:
    values = grid(2, 3, 4, 5)
    tensor = torch.from_numpy(values.copy()).contiguous(memory_format=torch.channels_last)
    return shared(tensor, values)


@kind(STRIDES)
def expanded() -> Case:
    values = grid(5)
    return shared(torch.from_numpy(values.copy()).expand(4, 5), np.broadcast_to(values, (4, 5)))


@kind(STRIDES)
def overlapping_windows() -> Case:
    values = grid(9)
    return shared(torch.from_numpy(values.copy()).unfold(0, 4, 2), np.stack([values[i : i + 4] for i in (0, 2, 4)]))


@kind(STRIDES)
def negative_bit() -> Case:
    values = grid(6, dtype=np.complex64) * 1j
    tensor = torch.from_numpy(values.copy())
    return Case(tensor.conj().imag, -values.imag, memory=tensor)


@kind(STRIDES)
def conjugate_bit() -> Case:
    values = grid(4, 3, dtype=np.complex128) * (1 + 2j)
    tensor = torch.from_numpy(values.copy())
    return Case(tensor.conj(), values.conj(), memory=tensor)


@kind(STRIDES, "adjoint (.mH), large")
def _adjoint() -> Case:
    values = grid(60, 40, dtype=np.complex64) * (1 + 2j)
    tensor = torch.from_numpy(values.copy())
    return Case(tensor.mH, values.conj().T, memory=tensor)


@kind(STRIDES)
def real_part() -> Case:
    values = grid(4, 3, dtype=np.complex64)
    return shared(torch.from_numpy(values.copy()).real, values.real)


@kind(STRIDES)
def scalar() -> Case:
    return shared(torch.tensor(2.5), np.array(2.5, np.float32))


@kind(STRIDES, "scalar, bfloat16")
def _scalar_bfloat16() -> Case:
    return shared(torch.tensor(2.5, dtype=torch.bfloat16), np.array(2.5, np.float32))


@kind(STRIDES)
def empty() -> Case:
    return Case(torch.empty(0), np.empty(0, np.float32))


@kind(STRIDES)
def empty_of_three_dimensions() -> Case:
    return Case(torch.empty(3, 0, 2, dtype=torch.bfloat16), np.empty((3, 0, 2), np.float32))


@kind(STRIDES)
def misaligned() -> Case:
    values = grid(5)
    buffer = bytearray(b"\0" + values.tobytes())
    return shared(torch.frombuffer(buffer, dtype=torch.float32, offset=1), values)


@kind(STRIDES, "32 dimensions")
def _dims_32() -> Case:
    values = grid(2, 3).reshape([1] * 15 + [2] + [1] * 15 + [3])
    return shared(torch.from_numpy(values.copy()), values)


@kind(STRIDES, "64 dimensions")
def _dims_64() -> Case:
    shape = [1] * 31 + [2] + [1] * 31 + [3]
    values = grid(2, 3)
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return refused(torch.ones(shape), tnp.UnsupportedTensorError, "squeeze or reshape")
    return shared(torch.from_numpy(values.copy()).view(shape), values.reshape(shape))


@kind(STRIDES, "65 dimensions")
def _dims_65() -> Case:
    return refused(torch.ones([1] * 65), tnp.UnsupportedTensorError, "squeeze or reshape")


@kind(STRIDES)
def expanded_past_what_can_be_addressed() -> Case:
    return refused(torch.zeros(1).expand(2**31, 2**31), tnp.UnsupportedTensorError, "slice it first")


@kind(STRIDES)
def copy_on_write() -> Case:
    values = grid(4, 3)
    # What NumPy holds cannot be copied lazily.
    return Case(torch._lazy_clone(torch.from_numpy(values).clone()), values)


@kind(STRIDES)
def symbolic_zero_of_autograd() -> Case:
    return Case(torch._efficientzerotensor((2, 3), dtype=torch.bfloat16), np.zeros((2, 3), np.float32))


@kind(STRIDES)
def process_shared() -> Case:
    values = grid(4, 3)
    return shared(torch.from_numpy(values.copy()).share_memory_(), values)


@kind(STRIDES)
def file_mapped_writeable() -> Case:
    values = grid(4, 3)
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115  # mapped until the process ends
    file.write(values.tobytes())
    file.flush()
    tensor = torch.from_file(file.name, shared=True, size=12).view(4, 3)
    tensor._file = file
    return shared(tensor, values)


@kind(STRIDES, only_on="linux")
def file_mapped_read_only() -> Case:
    values = grid(4, 3)
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(values.tobytes())
    file.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.float32).reshape(4, 3)
        return Case(torch.from_numpy(mapped), values)


@kind(STRIDES, only_on="linux")
def replicated_over_a_read_only_map() -> Case:
    from torch.distributed import tensor as dt

    case = file_mapped_read_only()
    return Case(dt.DTensor.from_local(case.tensor, _one_rank(), [dt.Replicate()], run_check=False), case.expected)


@kind(STRIDES)
def storage_freed() -> Case:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "module.unshard()")


@kind(STRIDES)
def view_of_a_freed_storage() -> Case:
    tensor = torch.ones(10)[2:6]
    tensor.untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(STRIDES)
def storage_shrunk() -> Case:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(8)
    return refused(tensor, tnp.NoDataError, "holds 8 bytes but the shape needs 40")


@kind(STRIDES)
def storage_offset_in_bfloat16() -> Case:
    values = grid(30)
    return shared(torch.from_numpy(values.copy()).bfloat16()[7:], values[7:])


@kind(STRIDES)
def channels_last_3d_large() -> Case:
    values = grid(2, 5, 7, 9, 11)
    return shared(torch.from_numpy(values.copy()).contiguous(memory_format=torch.channels_last_3d), values)


@kind(STRIDES)
def diagonal() -> Case:
    values = grid(50, 50)
    return shared(torch.from_numpy(values.copy()).diagonal(), values.diagonal())


@kind(STRIDES)
def one_cell_shown_two_million_times() -> Case:
    return shared(torch.full((1,), 3.0).expand(1000, 2000), np.broadcast_to(np.float32(3), (1000, 2000)))


@kind(STRIDES)
def complex_seen_as_real() -> Case:
    values = grid(4, 3, dtype=np.complex64) * (1 + 2j)
    return shared(torch.view_as_real(torch.from_numpy(values.copy())), np.stack([values.real, values.imag], -1))


@kind(STRIDES)
def bytes_seen_as_another_dtype() -> Case:
    values = grid(6, dtype=np.int64)
    return shared(torch.from_numpy(values.copy()).view(torch.int16), values.view(np.int16))


@kind(STRIDES)
def grown_storage() -> Case:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(1000)
    return shared(tensor, np.ones(4, np.float32))


@kind(STRIDES, "array that was read-only")
def _from_read_only() -> Case:
    values = grid(4)
    values.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Nothing tells torch, or anyone else, that this memory was not to be written.
        return Case(torch.from_numpy(values), values)


# --- sparse and other layouts

LAYOUTS = "sparse and other layouts"


def _holes(*shape: int, dtype: Any = np.float32) -> Any:
    values = grid(*shape, dtype=dtype)
    values[np.arange(values.size).reshape(shape) % 3 != 0] = 0
    return values


def _sparse(layout: torch.layout, values: Any, **options: Any) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # torch cannot count the zeros of unsigned integers.
        countable = values.astype(np.int32) if values.dtype == np.uint16 else values
        sparse = torch.from_numpy(countable.copy()).to_sparse(layout=layout, **options)
        return Case(sparse.to(torch.uint16) if values.dtype == np.uint16 else sparse, values)


for _layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
    _short = str(_layout).removeprefix("torch.")
    kind(LAYOUTS, _short)(functools.partial(_sparse, _layout, _holes(4, 6)))
    kind(LAYOUTS, f"{_short}, large")(functools.partial(_sparse, _layout, _holes(400, 500)))
    kind(LAYOUTS, f"{_short}, hybrid and large")(functools.partial(_sparse, _layout, _holes(200, 300, 4), dense_dim=1))
    for _dtype in ("bool", "int64", "uint16", "complex128"):
        kind(LAYOUTS, f"{_short}, {_dtype}")(functools.partial(_sparse, _layout, _holes(4, 6, dtype=_dtype)))
for _layout in (torch.sparse_bsr, torch.sparse_bsc):
    _short = str(_layout).removeprefix("torch.")
    kind(LAYOUTS, _short)(functools.partial(_sparse, _layout, _holes(4, 6), blocksize=(2, 3)))
    kind(LAYOUTS, f"{_short}, large")(functools.partial(_sparse, _layout, _holes(400, 600), blocksize=(4, 5)))


@kind(LAYOUTS, "sparse_csr, batched and large")
def _csr_batched() -> Case:
    rows = _holes(200, 600)
    values = np.stack([rows, 2 * rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Case(torch.from_numpy(values.copy()).to_sparse_csr(), values)


def _coo_of(dtype: torch.dtype) -> Case:
    """Return a sparse tensor that lists one place twice, with values whose sum is exact."""
    places = torch.tensor([[0, 1, 1, 4], [2, 0, 0, 5]])
    tensor = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2, 4, 8]).to(dtype), (6, 7))
    values = np.zeros((6, 7), np.complex64 if dtype.is_complex else np.float32 if dtype.itemsize < 4 else "f4")
    values[0, 2], values[1, 0], values[4, 5] = 1, 6, 8
    return Case(tensor, values)


for _dtype in (torch.float32, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn, torch.complex32):
    _short = str(_dtype).removeprefix("torch.")
    kind(LAYOUTS, f"sparse_coo, uncoalesced, {_short}")(functools.partial(_coo_of, _dtype))


@kind(LAYOUTS, "sparse_coo, uncoalesced and large")
def _coo_large() -> Case:
    generator = np.random.default_rng(0)
    places = np.concatenate([generator.integers(0, 3, (2, 4000)), generator.integers(0, 900, (2, 4000))], 1)
    stored = grid(8000)
    values = np.zeros((900, 900), np.float32)
    np.add.at(values, tuple(places), stored)
    return Case(torch.sparse_coo_tensor(torch.from_numpy(places), torch.from_numpy(stored), (900, 900)), values)


@kind(LAYOUTS)
def sparse_coo_tracked_by_autograd() -> Case:
    case = _coo_of(torch.float32)
    return Case(case.tensor.requires_grad_(), case.expected)


@kind(LAYOUTS)
def sparse_coo_whose_dense_form_is_absurd() -> Case:
    tensor = torch.sparse_coo_tensor(torch.tensor([[0], [10**7 - 1]]), torch.ones(1), (10**7, 10**7))
    return refused(tensor, tnp.TooLargeError, "363.8 TiB")


@kind(LAYOUTS)
def sparse_coo_of_nothing() -> Case:
    return Case(torch.sparse_coo_tensor(size=(3, 4)), np.zeros((3, 4), np.float32))


@kind(LAYOUTS)
def sparse_coo_empty() -> Case:
    return Case(torch.sparse_coo_tensor(size=(0, 4)), np.zeros((0, 4), np.float32))


@kind(LAYOUTS)
def sparse_coo_conjugated() -> Case:
    case = _sparse(torch.sparse_coo, _holes(4, 6, dtype=np.complex64) * (1 + 1j))
    return Case(case.tensor.conj(), case.expected.conj() + 0)


@kind(LAYOUTS)
def sparse_coo_on_meta() -> Case:
    return refused(torch.sparse_coo_tensor(size=(3, 4), device="meta"), tnp.NoDataError, "meta tensor")


def _broken(layout: str) -> Case:
    """Indices that lie outside of the shape; torch would write there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if layout == "sparse_coo":
            tensor = torch.sparse_coo_tensor([[0, 2**40]], torch.ones(2), (4,), check_invariants=False)
        else:
            arguments = [0, 1, 1, 2], [0, 2**40], torch.ones(2), (3, 5)
            tensor = torch.sparse_csr_tensor(*arguments, check_invariants=False)
    return refused(tensor, tnp.UnsupportedTensorError, "check_invariants=True")


for _short in ("sparse_coo", "sparse_csr"):
    kind(LAYOUTS, f"{_short} with wild indices")(functools.partial(_broken, _short))


@kind(LAYOUTS)
def sparse_coo_parameter() -> Case:
    case = _coo_of(torch.float32)
    return Case(torch.nn.Parameter(case.tensor), case.expected)


@kind(LAYOUTS)
def mkldnn() -> Case:
    values = grid(3, 4)
    return Case(torch.from_numpy(values.copy()).to_mkldnn(), values)


def _nested(layout: torch.layout, **options: Any) -> Case:
    parts = [grid(2, 3), grid(4, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.nested.nested_tensor([torch.from_numpy(p.copy()) for p in parts], layout=layout, **options)
    return Case(tensor, parts, memory=tensor.unbind()[0].detach())


for _layout in (torch.strided, torch.jagged):
    _short = f"nested, {str(_layout).removeprefix('torch.')}"
    kind(LAYOUTS, _short)(functools.partial(_nested, _layout))
    kind(LAYOUTS, f"{_short}, bfloat16")(functools.partial(_nested, _layout, dtype=torch.bfloat16))
    kind(LAYOUTS, f"{_short}, tracked by autograd")(functools.partial(_nested, _layout, requires_grad=True))


@kind(LAYOUTS, "nested, transposed")
def _nested_transposed() -> Case:
    case = _nested(torch.strided)
    return Case(case.tensor.transpose(1, 2), [p.T for p in case.expected], memory=case.memory)


@kind(LAYOUTS, "nested, jagged with holes")
def _nested_holes() -> Case:
    values = grid(10, 2)
    tensor = torch.nested.nested_tensor_from_jagged(
        torch.from_numpy(values.copy()), torch.tensor([0, 3, 10]), lengths=torch.tensor([2, 1])
    )
    return Case(tensor, [values[:2], values[3:4]], memory=tensor.unbind()[0])


@kind(LAYOUTS, "nested, of no parts")
def _nested_empty() -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Case(torch.nested.nested_tensor([]), [])


def _part_freed(layout: torch.layout, part: str) -> Case:
    tensor = _sparse(layout, _holes(4, 6)).tensor
    getattr(tensor, part)().untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


for _layout, _part in (
    (torch.sparse_coo, "_indices"), (torch.sparse_coo, "_values"), (torch.sparse_csr, "col_indices"),
    (torch.sparse_csr, "values"), (torch.sparse_csc, "ccol_indices"),
):  # fmt: skip
    _short = str(_layout).removeprefix("torch.")
    kind(LAYOUTS, f"{_short}, {_part.strip('_')} freed")(functools.partial(_part_freed, _layout, _part))


@kind(LAYOUTS, "nested, jagged, offsets freed")
def _nested_offsets_freed() -> Case:
    tensor = _nested(torch.jagged).tensor
    tensor.offsets().untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(LAYOUTS, "nested, jagged, values freed")
def _nested_values_freed() -> Case:
    tensor = _nested(torch.jagged).tensor
    tensor.values().untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(LAYOUTS, "nested, jagged, made in inference mode")
def _nested_inference() -> Case:
    with torch.inference_mode():
        case = _nested(torch.jagged)
    return Case(case.tensor, case.expected)


@kind(LAYOUTS, "nested, of many parts")
def _nested_many() -> Case:
    parts = [grid(1 + i % 3) for i in range(30)]
    tensor = torch.nested.nested_tensor([torch.from_numpy(p.copy()) for p in parts], layout=torch.jagged)
    return Case(tensor, parts)


@kind(LAYOUTS, "sparse_coo, without a sparse dimension, large")
def _coo_without_sparse_dims() -> Case:
    values = grid(400, 500)
    places = torch.empty((0, 2), dtype=torch.int64)
    stored = torch.from_numpy(np.stack([values, values]))
    return Case(torch.sparse_coo_tensor(places, stored, (400, 500)), values * 2)


# --- states

STATES = "states"


@kind(STATES)
def leaf_that_requires_grad() -> Case:
    values = grid(3, 4)
    return shared(torch.from_numpy(values.copy()).requires_grad_(), values)


@kind(STATES)
def result_of_an_operation() -> Case:
    values = grid(3, 4)
    return shared(torch.from_numpy(values.copy()).requires_grad_() * 2, values * 2)


@kind(STATES)
def parameter() -> Case:
    values = grid(3, 4)
    return shared(torch.nn.Parameter(torch.from_numpy(values.copy())), values)


@kind(STATES)
def leaf_with_grad() -> Case:
    values = grid(3, 4)
    tensor = torch.from_numpy(values.copy()).requires_grad_()
    (tensor * tensor).sum().backward()
    return shared(tensor, values)


@kind(STATES)
def inference() -> Case:
    values = grid(3, 4)
    with torch.inference_mode():
        tensor = torch.from_numpy(values.copy()) * 1
    return shared(tensor, values)


@kind(STATES)
def view_whose_grad_fn_raises() -> Case:
    values = grid(4)
    base = torch.from_numpy(values.copy()).requires_grad_() * 1
    with torch.no_grad():
        view = base[:2]
    base.mul_(2)
    return shared(view, values[:2] * 2)


@kind(STATES)
def dual_of_forward_mode() -> Case:
    from torch.autograd import forward_ad

    values = grid(3, 4)
    forward_ad.enter_dual_level()
    primal = torch.from_numpy(values.copy())
    return Case(forward_ad.make_dual(primal, torch.ones(3, 4)), values, memory=primal)


@kind(STATES)
def tangent_that_is_a_symbolic_zero() -> Case:
    return Case(torch._efficientzerotensor((3,)), np.zeros(3, np.float32))


@kind(STATES)
def retained_grad() -> Case:
    values = grid(3)
    tensor = torch.from_numpy(values.copy()).requires_grad_() * 2
    tensor.retain_grad()
    tensor.sum().backward()
    return shared(tensor, values * 2)


@kind(STATES)
def hooked_leaf() -> Case:
    values = grid(3)
    tensor = torch.from_numpy(values.copy()).requires_grad_()
    tensor.register_hook(lambda grad: grad * 2)
    return shared(tensor, values)


@kind(STATES)
def meta() -> Case:
    return refused(torch.empty(3, 4, device="meta"), tnp.NoDataError, "meta tensor")


@kind(STATES)
def meta_parameter() -> Case:
    with torch.device("meta"):
        return refused(torch.nn.Linear(2, 3).weight, tnp.NoDataError, "real device")


@kind(STATES)
def fake() -> Case:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return refused(torch.ones(3, 4), tnp.NoDataError, "fake tensor")


@kind(STATES)
def fake_with_symbolic_sizes() -> Case:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    return refused(mode.from_tensor(torch.ones(3, 4), static_shapes=False), tnp.NoDataError, "fake tensor")


@kind(STATES)
def functional_of_aot_autograd() -> Case:
    from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

    with FunctionalTensorMode():
        return refused(FunctionalTensor.to_functional(torch.ones(3)), tnp.NoDataError, "functionalization")


@kind(STATES)
def escaped_from_jvp() -> Case:
    escaped: list[torch.Tensor] = []

    def leak(x: torch.Tensor) -> torch.Tensor:
        escaped.append(x)
        return x

    torch.func.jvp(leak, (torch.ones(3),), (torch.ones(3),))
    return refused(escaped[0], tnp.NoDataError, "torch.func")


@kind(STATES)
def functional() -> Case:
    return refused(torch._to_functional_tensor(torch.ones(3, 4)), tnp.NoDataError, "functionalization")


@kind(STATES)
def escaped_from_vmap() -> Case:
    escaped: list[torch.Tensor] = []

    def leak(x: torch.Tensor) -> torch.Tensor:
        escaped.append(x)
        return x

    torch.func.vmap(leak)(torch.ones(3, 4))
    return refused(escaped[0], tnp.NoDataError, "torch.func")


@kind(STATES)
def escaped_from_grad() -> Case:
    escaped: list[torch.Tensor] = []

    def leak(x: torch.Tensor) -> torch.Tensor:
        escaped.append(x)
        return x.sum()

    torch.func.grad(leak)(torch.ones(3, 4))
    return refused(escaped[0], tnp.NoDataError, "torch.func")


@kind(STATES)
def uninitialized_parameter() -> Case:
    return refused(torch.nn.UninitializedParameter(), tnp.NoDataError, "one forward pass")


@kind(STATES)
def uninitialized_buffer() -> Case:
    return refused(torch.nn.UninitializedBuffer(), tnp.NoDataError, "one forward pass")


@kind(STATES)
def weight_of_a_lazy_module() -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return refused(torch.nn.LazyLinear(3).weight, tnp.NoDataError, "one forward pass")


@kind(STATES)
def buffer() -> Case:
    values = grid(3, 4)
    return shared(torch.nn.Buffer(torch.from_numpy(values.copy())), values)


# --- subclasses

SUBCLASSES = "subclasses"


class Plain(torch.Tensor):
    """A subclass as people write it."""


class Raising(torch.Tensor):
    """A subclass that raises whatever is asked of it."""

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("raised by a subclass")

    __repr__ = __str__ = __format__ = numpy = detach = cpu = clone = tolist = __array__ = __len__ = __iter__ = _raise
    __getitem__ = is_conj = is_neg = untyped_storage = data_ptr = stride = storage_offset = numel = size = dim = _raise
    shape = dtype = device = layout = requires_grad = grad = grad_fn = is_leaf = data = is_nested = is_quantized = (
        property(_raise)
    )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("raised by __torch_function__")


class Lying(torch.Tensor):
    """A subclass that answers with something else."""

    numpy = lambda self, **_: np.array("a lie")  # noqa: E731
    __array__ = lambda self, dtype=None, copy=None: np.array([42.0])  # noqa: E731
    __repr__ = lambda self: "a lie"  # noqa: E731
    shape = property(lambda self: torch.Size([1]))
    dtype = property(lambda self: torch.int64)
    is_conj = lambda self: True  # noqa: E731

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return 42


def _subclassed(cls: type[torch.Tensor]) -> Case:
    values = grid(3, 4)
    plain = torch.from_numpy(values.copy())
    return Case(torch.Tensor._make_subclass(cls, plain), values, memory=plain)


for _cls in (Plain, Raising, Lying):
    kind(SUBCLASSES, f"{_cls.__name__.lower()} subclass")(functools.partial(_subclassed, _cls))


@kind(SUBCLASSES)
def parameter_of_a_subclass() -> Case:
    values = grid(3, 4)
    plain = torch.from_numpy(values.copy())
    return Case(torch.nn.Parameter(torch.Tensor._make_subclass(Plain, plain)), values, memory=plain)


class Two(torch.Tensor):
    """A wrapper of two tensors, whose own storage is empty."""

    @staticmethod
    def __new__(cls, a: torch.Tensor, b: torch.Tensor) -> Two:
        two = torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
        two.a, two.b = a, b
        return two

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("raised by __torch_dispatch__")


@kind(SUBCLASSES)
def wrapper_of_two_tensors() -> Case:
    return refused(Two(torch.ones(3), torch.zeros(3)), tnp.NoDataError, "t.a, t.b")


def _masked(values: Any, hidden: Any) -> Case:
    from torch.masked import MaskedTensor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = MaskedTensor(torch.from_numpy(values.copy()), torch.from_numpy(~hidden))
    return Case(tensor, np.ma.MaskedArray(values, mask=hidden))


@kind(SUBCLASSES)
def masked_tensor() -> Case:
    return _masked(grid(3, 4), grid(3, 4) > 5)


@kind(SUBCLASSES)
def masked_tensor_of_float16() -> Case:
    return _masked(grid(3, 4, dtype=np.float16), grid(3, 4) > 5)


@kind(SUBCLASSES)
def masked_tensor_large() -> Case:
    return _masked(grid(60, 70), grid(60, 70) > 5)


class Dequantizable(torch.Tensor):
    """Codes with a scale, as quantization libraries wrap them."""

    @staticmethod
    def __new__(cls, codes: torch.Tensor, scale: float, dtype: torch.dtype) -> Dequantizable:
        wrapper = torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=dtype)
        wrapper.codes, wrapper.scale = codes, scale
        return wrapper

    def dequantize(self) -> torch.Tensor:
        return self.codes.to(self.dtype) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("raised by __torch_dispatch__")


@kind(SUBCLASSES)
def masked_tensor_of_a_sparse_layout() -> Case:
    from torch.masked import MaskedTensor

    values, shown = grid(3, 4), grid(3, 4) < 5
    kept = np.where(shown, values, 0)
    mask = torch.from_numpy(shown).to_sparse_coo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = MaskedTensor(torch.from_numpy(values).sparse_mask(mask), mask)
    return Case(tensor, np.ma.MaskedArray(kept, mask=~shown))


@kind(SUBCLASSES)
def two_tensor_of_torch() -> Case:
    from torch.testing._internal.two_tensor import TwoTensor

    return refused(TwoTensor(torch.ones(3), torch.zeros(3)), tnp.NoDataError, "t.a, t.b")


@kind(SUBCLASSES)
def memory_mapped_tensor_of_tensordict() -> Case:
    from tensordict import MemoryMappedTensor

    values = grid(3, 4)
    tensor = MemoryMappedTensor.from_tensor(torch.from_numpy(values.copy()))
    return Case(tensor, values, memory=tensor.as_subclass(torch.Tensor))


@kind(SUBCLASSES)
def wrapper_that_dequantizes() -> Case:
    codes = grid(3, 4, dtype=np.int8)
    return Case(Dequantizable(torch.from_numpy(codes), 0.5, torch.bfloat16), codes.astype(np.float32) / 2)


def _freed_three() -> torch.Tensor:
    tensor = torch.ones(3)
    tensor.untyped_storage().resize_(0)
    return tensor


def _dequantizes_to(result: Callable[[], torch.Tensor], says: str) -> Case:
    class Odd(Dequantizable):
        def dequantize(self) -> torch.Tensor:
            return result()

    return refused(Odd(torch.ones(3), 1.0, torch.float32), tnp.UnsupportedTensorError, says)


kind(SUBCLASSES, "wrapper that dequantizes to another shape")(
    functools.partial(_dequantizes_to, lambda: torch.ones(5), "of shape (5,)")
)
kind(SUBCLASSES, "wrapper that dequantizes to freed memory")(
    functools.partial(_dequantizes_to, _freed_three, "a freed strided tensor")
)
kind(SUBCLASSES, "wrapper that dequantizes to a meta tensor")(
    functools.partial(_dequantizes_to, lambda: torch.ones(3, device="meta"), "a meta strided tensor")
)


@kind(SUBCLASSES)
def wrapper_that_dequantizes_to_another_dtype_than_it_states() -> Case:
    class Odd(Dequantizable):
        def dequantize(self) -> torch.Tensor:
            return super().dequantize().float()

    return Case(Odd(torch.from_numpy(grid(3)), 0.5, torch.float16), grid(3, dtype=np.float16) / 2)


@kind(SUBCLASSES)
def masked_tensor_whose_mask_was_freed() -> Case:
    tensor = masked_tensor().tensor
    tensor._masked_mask.untyped_storage().resize_(0)
    return refused(tensor, tnp.NoDataError, "freed or shrunk")


@kind(SUBCLASSES)
def causal_bias() -> Case:
    from torch.nn.attention.bias import causal_lower_right

    return refused(causal_lower_right(4, 6), tnp.NoDataError, "no tensor of values")


@kind(SUBCLASSES)
def wrapper_whose_dequantize_raises() -> Case:
    wrapper = Dequantizable(torch.ones(3), "nonsense", torch.float32)  # type: ignore[arg-type]
    return refused(wrapper, tnp.UnsupportedTensorError, "dequantize() failed")


def _torchao(configuration: str, shape: tuple[int, int], **options: Any) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchao.quantization

        layer = torch.nn.Linear(*shape[::-1], bias=False).bfloat16()
        torchao.quantization.quantize_(layer, getattr(torchao.quantization, configuration)(**options))
    weight = layer.weight
    scale = weight.scale.float()
    codes = weight.qdata.float()
    # Both kinds keep a scale for each row; bfloat16 rounds the product.
    return Case(weight, (codes * scale.reshape(-1, 1)).bfloat16().float().numpy())


@kind(SUBCLASSES)
def torchao_int8() -> Case:
    return _torchao("Int8WeightOnlyConfig", (64, 32))


@kind(SUBCLASSES)
def torchao_int8_large() -> Case:
    return _torchao("Int8WeightOnlyConfig", (600, 512))


@kind(SUBCLASSES)
def torchao_mx_float8() -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.prototype.mx_formats.mx_tensor import MXTensor

        values = grid(4, 64) * np.float32(0.5)
        scaled = MXTensor.to_mx(torch.from_numpy(values.copy()), torch.float8_e4m3fn, 32)
        if MXTensor.dequantize is torch.Tensor.dequantize:
            # Before torchao 0.14, which gave it a method of its own.
            return refused(scaled, tnp.NoDataError, "wrapped by MXTensor")
        return Case(scaled, values)


@kind(SUBCLASSES)
def torchao_float8() -> Case:
    return _torchao("Float8WeightOnlyConfig", (64, 32))


def _one_rank() -> Any:
    from torch.distributed import init_process_group, is_initialized
    from torch.distributed.device_mesh import init_device_mesh

    if not is_initialized():
        init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return init_device_mesh("cpu", (1,))


def _dtensor(place: str) -> Case:
    from torch.distributed import tensor as dt

    values = grid(3, 4)
    places = {"replicated": dt.Replicate(), "sharded": dt.Shard(0), "partial": dt.Partial()}
    tensor = dt.DTensor.from_local(torch.from_numpy(values.copy()), _one_rank(), [places[place]], run_check=False)
    return Case(tensor, values, memory=tensor._local_tensor)


for _place in ("replicated", "sharded", "partial"):
    kind(SUBCLASSES, f"DTensor, {_place}, on one rank")(functools.partial(_dtensor, _place))


@kind(SUBCLASSES, "DTensor, sharded over two ranks")
def _dtensor_sharded() -> Case:
    from torch.distributed import tensor as dt
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    tensor = dt.DTensor.from_local(torch.ones(3, 4), mesh, [dt.Shard(0)], run_check=False)
    return refused(tensor, tnp.NoDataError, "rank 0 of 2 holds rows 0–2 of 6 (1/2)")


@kind(SUBCLASSES, "DTensor, replicated over two ranks")
def _dtensor_replicated() -> Case:
    from torch.distributed import tensor as dt
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    values = grid(3, 4)
    tensor = dt.DTensor.from_local(torch.from_numpy(values.copy()), mesh, [dt.Replicate()], run_check=False)
    return Case(tensor.requires_grad_(), values, memory=tensor._local_tensor)


@kind(SUBCLASSES)
def result_of_an_asynchronous_collective() -> Case:
    from torch.distributed import _functional_collectives as collectives

    values = grid(3, 4)
    tensor = collectives.all_reduce(torch.from_numpy(values.copy()), "sum", (_one_rank(), 0))
    return Case(tensor, values)
