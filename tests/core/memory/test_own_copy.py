"""Copies that the system makes: the bits that NumPy and torch would have read, from any strides."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from strategies import tensors

from tensornp.core.lowlevel import raw_memory
from tensornp.core.memory import own_copy
from tensornp.core.tensor.indexing import indexed
from tensornp.errors import NotReadError


@pytest.fixture(autouse=True)
def beside_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all memory were that of a file, so that nothing is read where it lies."""
    monkeypatch.setattr(own_copy, "can_be_read_in_place", lambda *_: False)


def bits(t: torch.Tensor) -> bytes:
    # One element counts as contiguous at any stride, and then cannot be viewed as bytes.
    flat = t.clone(memory_format=torch.contiguous_format).view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if t.numel() else b""


@settings(max_examples=200, deadline=None)
@given(tensors(), st.randoms())
def test_any_elements_of_any_view_are_copied_bit_for_bit(t, random):
    """In any order, some of them twice."""
    raw = t.detach().as_strided(t.shape, t.stride(), t.storage_offset())
    raw = raw.conj() if raw.is_conj() else raw
    raw = torch._neg_view(raw) if raw.is_neg() else raw
    assert bits(own_copy.copied(raw)) == bits(raw.clone()) if raw.numel() else True
    places = [[random.randrange(size) for _ in range(random.randint(1, 4))] if size else [] for size in raw.shape]
    assert bits(own_copy.elements(raw, places)) == bits(indexed(raw, places))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(-9000, 9000)), max_size=3), st.sampled_from(["u1", "<f4", ">i8"])
)
def test_any_strides_of_an_array_are_copied(dims, dtype):
    """Wider than a page or narrower, negative, overlapping."""
    memory = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8)
    shape, strides = [n for n, _ in dims], [step for _, step in dims]
    view = as_strided(memory[150_000:150_008].view(dtype)[:1].reshape(()), shape, strides)
    copy = own_copy.array_copied(view)
    assert copy.tobytes() == view.tobytes()
    assert (copy.shape, copy.dtype) == (view.shape, view.dtype)


def test_views_far_larger_than_a_call_of_the_system_are_copied():
    """In halves, in many runs, and in one."""
    t = torch.arange(2**22, dtype=torch.int64).view(2**11, 2**11)
    for raw in (t, t.T, t[:, ::1000], t[::7, 3:5], t[:, 5].view(64, 32).T):
        assert torch.equal(own_copy.copied(raw), raw)


def test_what_was_given_back_is_refused():
    """Freed, or mapped and gone: one sentence, and no signal."""
    t = torch.zeros(1000)
    memory = raw_memory.memory_of(t)
    t.untyped_storage().resize_(0)
    with pytest.raises(NotReadError, match="given this memory back"):
        raw_memory.read(memory, [memory.address], 8)
    gone = mmap.mmap(-1, 2**16)
    array = np.frombuffer(gone, np.uint8)
    low = array.__array_interface__["data"][0]
    del array
    gone.close()
    if raw_memory._known.system_copy is not None:
        with pytest.raises(NotReadError):
            raw_memory.read(raw_memory.Memory(None, low, 2**16), [low], 2**16)


def test_what_the_system_could_not_copy_is_not_read_where_it_lies(monkeypatch):
    """It was given back and taken again meanwhile, and may go once more; only the memory of a device is read so."""
    if raw_memory._known.system_copy is None:
        pytest.skip("the system copies no memory here")
    monkeypatch.setattr(raw_memory._known, "system_copy", lambda *_: -1)
    memory = raw_memory.memory_of(torch.zeros(1000))
    with pytest.raises(NotReadError, match="given this memory back"):
        raw_memory.read(memory, [memory.address], 8)
