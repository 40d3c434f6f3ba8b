"""Fingerprints against the bytes of a contiguous copy, on the CPU and by the sums that a device computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from child import in_fork
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from strategies import DTYPES, tensors
from unchanged import unchanged

from tensornp.core.memory.fingerprint import (
    BLOCK_NBYTES,
    NUM_SAMPLES,
    SAMPLE_NBYTES,
    Fingerprint,
    _of_rows,
    _sums_of,
    fingerprint,
)
from tensornp.core.memory.strided import Strided

ALL = 2**40


def of(t: torch.Tensor) -> Fingerprint:
    found = fingerprint(t, ALL)
    assert found is not None
    return found


WAYS = pytest.mark.parametrize("digests_of", [lambda t: of(t).blocks, _sums_of], ids=["xxh3", "sums"])


def bits(t: torch.Tensor) -> bytes:
    """Return the bytes of the elements in index order, through torch alone: the oracle."""
    return t.detach().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_is_told_apart_from_zeros(dtype):
    """Ones and zeros, contiguous or with gaps, here and by the sums of a device."""
    zeros, ones = torch.zeros(6, 8, dtype=dtype), torch.zeros(6, 8, dtype=dtype)
    ones.view(torch.uint8)[3, 2] = 1
    for view in (lambda t: t, lambda t: t[::3, ::2], lambda t: t.T, lambda t: t[:, :1]):
        expected = bits(view(zeros)) == bits(view(ones))
        assert (of(view(zeros)) == of(view(ones))) == expected
        sums = [_of_rows(view(t), ALL, _sums_of) for t in (zeros, ones, zeros.clone())]
        assert (sums[0] == sums[1]) == expected
        assert sums[0] == sums[2]


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("numel", [1, 7, 8, 9, 63, 200])
def test_each_flipped_bit_of_a_block_is_found(digests_of, numel):
    """All of them: no bit is blind, the last odd bytes included."""
    values = torch.from_numpy(np.random.default_rng(numel).integers(0, 256, numel, dtype=np.uint8))
    known = {digests_of(values)}
    for i in range(numel):
        for bit in range(8):
            values[i] ^= 1 << bit
            known.add(digests_of(values))
            values[i] ^= 1 << bit
    assert len(known) == 1 + 8 * numel


@WAYS
def test_changes_cannot_cancel_out(digests_of):
    """Two signs turned, values swapped, all shifted by one, all negated: each is another fingerprint."""
    base = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    variants = [base, -base, base.roll(1), base.flip(0), base + 1, base * 2]
    for i in range(8):
        for j in range(i):
            signs, swapped = base.clone(), base.clone()
            signs[[i, j]] *= -1
            swapped[[i, j]] = base[[j, i]]
            variants += [signs, swapped]
    assert len({digests_of(t) for t in variants}) == len(variants)


@WAYS
def test_zeros_of_two_signs_and_payloads_of_nan_are_bits(digests_of):
    """Equal to NumPy, other bits."""
    zeros = torch.zeros(9)
    assert digests_of(zeros) != digests_of(-zeros)
    nans = torch.full((9,), float("nan"))
    other = nans.clone()
    other.view(torch.int32)[4] += 1
    assert other.isnan().all()
    assert digests_of(nans) != digests_of(other)


def test_an_expanded_tensor_is_read_once():
    """Four tebibytes of one element take no time."""
    huge = torch.zeros(1).expand(2**20, 2**20)
    assert of(huge).coverage == "all blocks"
    assert _of_rows(huge, ALL, _sums_of).coverage == "all blocks"
    assert of(huge) == of(torch.zeros(1))


def test_what_has_no_bytes_has_no_fingerprint():
    """Empty, meta, uninitialized, symbolic: None, and no error."""
    absent = [
        torch.empty(0, 3),
        torch.ones(3, device="meta"),
        torch.nn.UninitializedParameter(),
        torch._efficientzerotensor(3),
    ]
    assert [fingerprint(t, ALL) for t in absent] == [None] * 4
    assert of(torch.tensor(1.0)) != of(torch.tensor(2.0))


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


def test_blocks_are_in_order_and_the_others_stay():
    """One byte of the third MiB changes the third fingerprint alone, with one thread or two."""
    t = torch.zeros(40 * BLOCK_NBYTES + 3, dtype=torch.uint8)
    before = of(t).blocks
    t[2 * BLOCK_NBYTES + 5] = 1
    after = of(t).blocks
    assert len(after) == 41
    assert [i for i in range(41) if before[i] != after[i]] == [2]


@pytest.mark.parametrize("way", ["xxh3", "sums"])
def test_past_the_budget_a_sample_is_read_and_said_so(way, monkeypatch):
    """A change of the whole is found, and what is read stays within 64 KiB."""
    read = []

    def reading(values: torch.Tensor) -> tuple[int, ...]:
        read.append(values.numel() * values.element_size())
        return _sums_of(values)

    def use_each(strided, blocks, use, *, in_place):
        read.append(sum(math.prod(block.shape) for block in blocks) * strided.dtype.itemsize)
        return use_each_of(strided, blocks, use, in_place=in_place)

    def sampled(t: torch.Tensor) -> Fingerprint:
        return fingerprint(t, 1000) if way == "xxh3" else _of_rows(t, 1000, reading)

    use_each_of = Strided.use_each
    monkeypatch.setattr(Strided, "use_each", use_each)

    for shape in [(2**20,), (2**10, 2**10), (2**18, 2, 2), (3, 2**19)]:
        zeros = torch.zeros(shape)
        for t in (zeros, torch.zeros(*shape, 2)[..., 0]):
            found = sampled(t)
            assert found.coverage == f"sampled 1/{found.one_in:,}"
            assert found.one_in >= zeros.nbytes // (NUM_SAMPLES * SAMPLE_NBYTES) > 1
            assert sampled(t + 1) != found
    assert max(read) <= NUM_SAMPLES * SAMPLE_NBYTES
    t = torch.zeros(2**20)
    assert (fingerprint(t, 1000).coverage, fingerprint(t, ALL).coverage) == ("sampled 1/64", "all blocks")
    assert fingerprint(t, 1000) != fingerprint(t + 1, 1000)
