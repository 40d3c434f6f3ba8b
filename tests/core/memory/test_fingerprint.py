"""Fingerprints against the bytes of a contiguous copy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from child import in_fork
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from strategies import tensors
from unchanged import unchanged

from tensornp.core.memory.changes import (
    NUM_SAMPLES,
    SAMPLE_NBYTES,
    Fingerprint,
    fingerprint,
    fingerprint_of_array,
)

ALL = 2**40


def of(t: torch.Tensor) -> Fingerprint:
    found = fingerprint(t, ALL)
    assert found is not None
    return found


def places_of(t: torch.Tensor) -> np.ndarray:
    """Return at which bytes of its storage the elements of `t` lie, listed by NumPy."""
    every = np.arange(t.untyped_storage().nbytes())[t.storage_offset() * t.itemsize :]
    strides = [8 * t.itemsize * step for step in t.stride()]
    return np.unique(as_strided(every, (*t.shape, t.itemsize), (*strides, 8)))


@given(tensors(), st.integers(0, 2**32 - 1), st.integers(0, 7))
@settings(max_examples=50, deadline=None)
def test_equal_bits_have_equal_fingerprints_and_one_other_bit_another(t, place, bit):
    """Any dtype and strides: bytes outside of the elements count for nothing, and each bit inside counts."""
    assume(t.numel() and not t.is_conj() and not t.is_neg())
    memory = torch.empty(0, dtype=torch.uint8).set_(t.detach().untyped_storage()).clone()
    mine = t.detach().as_strided(t.shape, t.stride(), t.storage_offset())
    twin = torch.empty(0, dtype=t.dtype).set_(memory.untyped_storage(), t.storage_offset(), t.shape, t.stride())
    inside = places_of(twin)
    outside = np.setdiff1d(np.arange(memory.numel()), inside)
    memory[outside] ^= 1
    assert of(mine) == of(twin)
    # A bool of other bits than 0 and 1 is no bool.
    memory[int(inside[place % len(inside)])] ^= 1 if t.dtype is torch.bool else 1 << bit
    assert of(mine) != of(twin)


def test_an_expanded_tensor_is_read_once():
    """Four tebibytes of one element take no time."""
    huge = torch.zeros(1).expand(2**20, 2**20)
    assert of(huge).coverage == ""
    assert of(huge) == of(torch.zeros(1))


def test_parts_of_sparse_and_quantized_tensors_count():
    """An index or a stored value that changes is found."""
    coo = torch.eye(3).to_sparse()
    before = of(coo)
    coo._values()[1] = 5
    assert of(coo) != before
    csr = torch.eye(3).to_sparse_csr()
    before = of(csr)
    csr.col_indices()[0] = 1
    assert of(csr) != before
    codes = torch.zeros(4, dtype=torch.int8)
    quantized = [torch._make_per_tensor_quantized_tensor(codes + i, 0.5, 0) for i in (0, 1, 0)]
    assert of(quantized[0]) == of(quantized[2]) != of(quantized[1])


@in_fork
def test_freed_storage_is_not_read():
    """The process lives on."""
    t = torch.ones(1000)
    t.untyped_storage().resize_(0)
    assert fingerprint(t, ALL) is None


def test_looking_changes_nothing():
    """A lazy copy stays lazy, the storage stays resizable, no mode sees a call; large, strided or sampled."""
    lazy = torch._lazy_clone(torch.arange(10.0))
    parameter = torch.nn.Parameter(torch.ones(3, 4))
    strided = parameter.detach().T[::2]
    with unchanged(lazy, parameter, strided):
        found = [fingerprint(t, budget) for t in (lazy, parameter, strided) for budget in (1, ALL)]
    assert None not in found
    assert found[0] == of(torch.arange(10.0))
    assert torch._C._is_cow_tensor(lazy)
    assert parameter.untyped_storage().resizable()


def test_past_the_budget_a_sample_is_read_and_said_so():
    """A change of the whole is found, in any layout, of a tensor and of an array."""
    for shape in [(2**20,), (2**10, 2**10), (2**18, 2, 2), (3, 2**19)]:
        zeros = torch.zeros(shape)
        for t in (zeros, torch.zeros(*shape, 2)[..., 0], zeros.numpy()):
            sampled = fingerprint if isinstance(t, torch.Tensor) else fingerprint_of_array
            found = sampled(t, 1000)
            assert found.coverage == f"sampled 1/{found.one_in:,}"
            assert found.one_in >= zeros.nbytes // (NUM_SAMPLES * SAMPLE_NBYTES) > 1
            assert sampled(t + 1, 1000) != found
    t = torch.zeros(2**20)
    assert (fingerprint(t, 1000).coverage, fingerprint(t, ALL).coverage) == ("sampled 1/64", "")


ARRAYS = {
    "number": np.array(1.5), "turned": np.arange(12.0).reshape(3, 4).T, "reversed": np.arange(10)[::-1],
    "text": np.array(["a", "bcd"]), "dates": np.arange(3).astype("M8[s]"), "column": np.arange(12).reshape(3, 4)[:, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_known_by_their_bits(name):
    """Any dtype and strides; the strides do not count, one other bit does."""
    array = ARRAYS[name]
    packed = array.copy(order="C")
    before = fingerprint_of_array(packed, ALL)
    assert before == fingerprint_of_array(array, ALL)
    packed.reshape(-1).view(np.uint8)[-1] ^= 1
    assert fingerprint_of_array(packed, ALL) != before
