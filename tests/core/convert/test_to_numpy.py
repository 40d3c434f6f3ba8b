"""Conversion: right values, sharing proven by writes, and one sentence where it cannot be."""

from __future__ import annotations

import collections
import mmap
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from older import HAS_COMPLEX32
from strategies import DTYPES, NATIVE_DTYPES, tensors
from writes import raw

import tensornp as tnp


def test_view_is_live_and_read_only():
    """The default: torch writes are seen, NumPy cannot write, and the array cannot be thawed."""
    t = torch.zeros(3)
    a = tnp.to_numpy(t)
    t[1] = 5
    assert a.tolist() == [0, 5, 0]
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        a.flags.writeable = True


def test_a_zero_copy_bfloat16_view_cannot_be_thawed():
    """A frozen view of a writeable array could be thawed; ours cannot."""
    a = tnp.to_numpy(torch.ones(2, dtype=torch.bfloat16), copy=False)
    with pytest.raises(ValueError, match="WRITEABLE"):
        a.flags.writeable = True


def test_share_is_live_in_both_directions():
    """A write on either side is seen on the other, for a parameter too."""
    p = torch.nn.Parameter(torch.zeros(3))
    a = tnp.to_numpy(p, copy=False, writeable=True)
    a[0] = 7
    with torch.no_grad():
        p[1] = 8
    assert p.tolist() == a.tolist() == [7, 8, 0]


def test_copy_sees_nothing():
    """No write crosses, and the tensor's storage stays resizable."""
    t = torch.zeros(3)
    a = tnp.to_numpy(t, copy=True)
    t[0], a[1] = 1, 2
    assert (t.tolist(), a.tolist()) == ([1, 0, 0], [0, 2, 0])
    assert t.untyped_storage().resizable()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.itemsize == 2 or (d.itemsize == 1 and d is not torch.bool)])
@pytest.mark.parametrize("flush", [False, True])
def test_every_bit_pattern_converts_exactly(dtype, flush):
    """All 8- and 16-bit patterns equal what ml_dtypes decodes, denormals included, whatever flush-denormal says."""
    integer = torch.uint8 if dtype.itemsize == 1 else torch.int16
    t = torch.arange(256**dtype.itemsize, dtype=torch.int32).to(integer).view(dtype)
    name = str(dtype).removeprefix("torch.")
    bits = np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}")
    expected = bits.view(getattr(ml_dtypes, name, None) or name)
    torch.set_flush_denormal(flush)
    try:
        a, shared = tnp.to_numpy(t), tnp.to_numpy(t, copy=False)
    finally:
        torch.set_flush_denormal(False)
    assert shared.tobytes() == expected.tobytes()
    if dtype in NATIVE_DTYPES:
        assert a.tobytes() == expected.tobytes()
    else:
        wide = expected.astype(np.float32)
        nan = np.isnan(wide)
        assert np.array_equal(np.isnan(a), nan)
        assert a[~nan].tobytes() == wide[~nan].tobytes()


@settings(max_examples=37, deadline=None)
@given(tensors())
def test_there_and_back_is_bit_exact(t):
    """`to_tensor(to_numpy(t))` holds the same bits, for every dtype, stride and lazy bit."""
    plain = t.detach().resolve_conj().resolve_neg()
    assume(HAS_COMPLEX32 or t.dtype != torch.complex32)
    by_bits = tnp.to_tensor(tnp.to_numpy(plain.contiguous(), copy=False))
    assert by_bits.dtype == plain.dtype
    assert raw(by_bits) == raw(plain)
    back = tnp.to_tensor(tnp.to_numpy(t))
    wide = torch.complex64 if t.is_complex() else torch.float32
    expected = plain.to(wide) if t.dtype not in NATIVE_DTYPES else plain
    assert raw(back) == raw(expected)


@settings(max_examples=25, deadline=None)
@given(tensors(NATIVE_DTYPES))
def test_the_quick_path_equals_the_plan(t):
    """What is decided in one glance is what the full plan decides."""
    quick, planned = tnp.to_numpy(t), tnp.to_numpy(t, max_nbytes=2**60)
    assert quick.dtype == planned.dtype
    assert quick.strides == planned.strides
    assert quick.flags.writeable == planned.flags.writeable
    assert quick.tobytes() == planned.tobytes()


Pair = collections.namedtuple("Pair", "left right")


def test_containers_keep_their_structure():
    """Leaf by leaf: dict, list, tuple, namedtuple, torch's own; what is no tensor stays."""
    t = torch.ones(2)
    tree = {"a": [t, (1, t)], "b": Pair(t, None), "c": torch.max(torch.ones(2, 2), 0)}
    out = tnp.to_numpy(tree)
    assert type(out["a"]) is list
    assert type(out["b"]) is Pair
    assert type(out["c"]) is torch.return_types.max
    assert out["c"].values.tolist() == [1, 1]
    assert isinstance(out["a"][1][1], np.ndarray)
    assert out["a"][1][0] == 1
    back = tnp.to_tensor(out)
    assert torch.equal(back["b"].left, t)


def test_a_container_that_holds_itself_is_refused():
    """No endless loop."""
    loop: list = [torch.ones(1)]
    loop.append(loop)
    with pytest.raises(tnp.BadRequestError, match="holds itself"):
        tnp.to_numpy(loop)


def test_the_way_back_shares_where_it_can():
    """A writeable native array shares."""
    a = np.zeros(3, np.float32)
    t = tnp.to_tensor(a)
    a[0] = 4
    assert t.tolist() == [4, 0, 0]


@pytest.mark.slow
def test_a_write_to_a_read_only_map_cannot_kill_the_kernel(tmp_path):
    """In a child: a tensor over a read-only file is never handed out writeable."""
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(4 * mmap.PAGESIZE))
    child = f"""
        import warnings, numpy as np, torch, tensornp as tnp
        warnings.simplefilter("ignore")
        t = torch.from_numpy(np.memmap({str(path)!r}, dtype=np.float32, mode="r"))
        a = tnp.to_numpy(t, writeable=True)
        a[0] = 1
        try:
            tnp.to_numpy(t, copy=False, writeable=True)
        except tnp.CopyRequiredError:
            print("alive", a[0], t[0].item())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(child)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "alive 1.0 0.0", done.stderr


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64])
def test_a_cuda_tensor_arrives_bit_for_bit(dtype):
    """What is on the GPU is what the array holds."""
    t = torch.randn(50, 7).to(dtype)
    assert tnp.to_numpy(t.cuda()).tobytes() == tnp.to_numpy(t).tobytes()


def test_a_complex_number_is_false_only_where_both_parts_are_zero():
    """As NumPy and torch turn one into a bool, and as the code of the plan does."""
    t = torch.tensor([1j, 0, 1, 2 + 3j])
    array = tnp.to_numpy(t, dtype=bool)
    assert array.tolist() == t.to(torch.bool).tolist() == [True, False, True, True]
    assert eval(tnp.plan(t, dtype=bool).code, {"t": t, "np": np}).tolist() == array.tolist()


def test_a_nested_tensor_whose_memory_was_freed_is_refused():
    """In one sentence with its bytes, as any other tensor of which the storage was resized."""
    t = torch.nested.nested_tensor([torch.ones(4, 3), torch.ones(2, 3)])
    t.untyped_storage().resize_(0)
    for function in (tnp.to_numpy, tnp.stats, tnp.plan):
        with pytest.raises(tnp.NoDataError, match="holds 0 bytes but the shape needs 72"):
            function(t)
    assert "freed" in tnp.weights({"w": t}).scan().failed["w"]
