"""JAX and CuPy: right values, copies that are copies, sharing proven by writes."""

from __future__ import annotations

import sys
import types

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from strategies import tensors

import tensornp as tnp

jax = pytest.importorskip("jax")
enable_x64 = (jax if hasattr(jax, "enable_x64") else pytest.importorskip("jax.experimental")).enable_x64

FLOAT8 = [name for name in dir(torch) if name.startswith("float8_")]


def bits(array):
    """Return the bytes of an array's elements in order."""
    return np.ascontiguousarray(np.asarray(array)).tobytes()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tensors())
def test_jax_gets_the_values_that_numpy_gets(t):
    """For any dtype, stride and lazy bit."""
    with enable_x64(True):
        a = tnp.to_jax(t)
        assert bits(a) == bits(tnp.to_numpy(t, dtype=a.dtype.name))


@pytest.mark.parametrize("name", ["bfloat16", *FLOAT8])
@pytest.mark.parametrize("copy", [None, True, False])
def test_short_floats_go_to_jax_and_back_bit_by_bit(name, copy):
    """Every bit pattern keeps its bits and its dtype."""
    dtype = getattr(torch, name)
    count = 256**dtype.itemsize
    t = torch.arange(count, dtype=torch.int32).to(torch.uint8 if dtype.itemsize == 1 else torch.int16).view(dtype)
    try:
        a = tnp.to_jax(t, copy=copy)
    except tnp.CopyRequiredError:
        assert copy is False
        assert name != "bfloat16"
        return
    assert a.dtype == getattr(ml_dtypes, name)
    back = tnp.to_tensor(a)
    assert back.dtype is dtype
    assert back.view(torch.uint8).tolist() == t.view(torch.uint8).tolist()


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("count", [3, 1 << 22])
def test_a_copy_is_a_copy_at_once(copy, count):
    """A write right after the call is not seen; `jnp.array` of the same memory does see it, now and then."""
    for _ in range(10):
        t = torch.zeros(count)
        a = tnp.to_jax(t, copy=copy)
        t.fill_(7)
        assert float(a.max()) == 0
        assert t.untyped_storage().resizable()


def test_shared_memory_is_live():
    """A torch write is seen in the array, and the storage is locked."""
    p = torch.nn.Parameter(torch.zeros(64))
    a = tnp.to_jax(p, copy=False)
    with torch.no_grad():
        p[1] = 5
    assert float(a[1]) == 5
    assert not p.untyped_storage().resizable()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(65)[1:],
        lambda: torch.zeros(8, 8)[:, ::2],
        lambda: torch.zeros(4, dtype=torch.complex64).conj(),
        lambda: torch.zeros(4, dtype=torch.int64),
    ],
    ids=["offset", "strided", "conj", "x64"],
)
def test_memory_that_jax_would_copy_is_not_shared(make):
    """The cure works."""
    with pytest.raises(tnp.CopyRequiredError, match="copy=None"):
        tnp.to_jax(make(), copy=False)
    assert np.array_equal(np.asarray(tnp.to_jax(make())), tnp.to_numpy(make()))


def test_64_bit_values_are_never_cut_off():
    """Integers that fit become 32-bit; anything else raises."""
    a = tnp.to_jax(torch.tensor([-(2**31), 5, 2**31 - 1]))
    assert (a.dtype, a.tolist()) == (np.int32, [-(2**31), 5, 2**31 - 1])
    for t in (torch.tensor([2**31]), torch.tensor([2**32], dtype=torch.uint64), torch.zeros(2, dtype=torch.float64)):
        with pytest.raises(tnp.UnsupportedTensorError, match="jax_enable_x64"):
            tnp.to_jax(t)
        with enable_x64(True):
            assert tnp.to_jax(t).tolist() == t.tolist()


def test_what_has_no_values_or_is_no_tensor_is_refused():
    """With the errors of `to_numpy`."""
    with pytest.raises(tnp.NoDataError):
        tnp.to_jax(torch.zeros(2, device="meta"))
    with pytest.raises(tnp.NotATensorError, match="to_jax takes"):
        tnp.to_jax("text")
    with pytest.raises(tnp.BadRequestError, match="copy must be"):
        tnp.to_jax(torch.zeros(2), copy="x")


def test_containers_go_to_jax_and_back_leaf_by_leaf():
    """Everything else in them stays."""
    given = {"a": [torch.ones(2), 3], "b": "text"}
    there = tnp.to_jax(given)
    assert isinstance(there["a"][0], jax.Array)
    assert (there["a"][1], there["b"]) == (3, "text")
    back = tnp.to_tensor(there)
    assert torch.equal(back["a"][0], given["a"][0])


def test_a_library_that_is_not_installed_is_one_sentence(monkeypatch):
    """It names what to install."""
    for name, function in (("jax", tnp.to_jax), ("cupy", tnp.to_cupy)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(tnp.MissingLibraryError, match=f"install {name}"):
            function(torch.zeros(2))


def test_cupy_gets_arrays_of_the_host(monkeypatch):
    """CuPy without a GPU is named; with one, each tensor of a container is placed."""
    cupy = types.SimpleNamespace(is_available=lambda: False, asarray=lambda array: ("placed", array.tolist()))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(tnp.MissingLibraryError, match="no GPU"):
        tnp.to_cupy(torch.zeros(2))
    cupy.is_available = lambda: True
    assert tnp.to_cupy([torch.ones(2).bfloat16(), 3]) == [("placed", [1, 1]), 3]


@pytest.mark.cuda
def test_cupy_on_a_gpu_gets_a_copy():
    """A write to the array leaves the tensor unchanged."""
    pytest.importorskip("cupy")
    t = torch.ones(2, device="cuda")
    a = tnp.to_cupy(t)
    a[0] = 7
    assert t.tolist() == [1, 1]
