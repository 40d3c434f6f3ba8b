"""What numba compares, beside what NumPy compares of the same numbers."""

from __future__ import annotations

import math
from dataclasses import fields

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensornp as tnp
from tensornp.core.lowlevel import threads
from tensornp.core.values.compare import pair_loop, tallied
from tensornp.core.values.compare.compare import Comparison, compare
from tensornp.core.values.reading.stored import StoredValues

NAMES = [name for names in pair_loop._LOOPS.values() for name in names]
SUMS = ("relative", "cosine_distance", "norm", "norm_of_difference")


@pytest.fixture(scope="module", autouse=True)
def numba():
    assert pair_loop.pair_loop("float32") is not None, "numba is among the libraries of the tests"


def assert_same(found: Comparison, expected: Comparison) -> None:
    """Counts, places and extremes are the same, and norms but for what the order of a sum changes."""
    for field in fields(Comparison):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if field.name in SUMS and other is not None:
            assert math.isclose(one, other, rel_tol=1e-14, abs_tol=1e-12 * (field.name == "cosine_distance")), field
        else:
            assert one == other or repr(one) == repr(other), field.name
            assert type(one) is type(other), field.name


def compared(a, b, block_numel: int = 2**17, num_threads: int = 1) -> tuple[Comparison, Comparison]:
    """Return what is found by numba, in tasks of three blocks, and by NumPy block by block."""
    found = []
    for is_fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tensornp.core.memory.strided.BLOCK_NUMEL", block_numel)
            patch.setattr("tensornp.core.values.reading.blocks.BLOCK_NUMEL", block_numel)
            patch.setattr(tallied, "MIN_NUMEL", 1 if is_fast else math.inf)
            patch.setattr(tallied, "_PARALLEL_NUMEL", 1)
            patch.setattr(tallied, "_TASK_BLOCKS", 3)
            patch.setattr(threads, "num_cores", lambda: num_threads)
            found.append(compare(a, b))
    return found[0], found[1]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def few_of(name: str) -> st.SearchStrategy[np.ndarray]:
    """Draw some numbers: of floats, subnormal ones, both zeros, infinities and several NaN as well."""
    if name in pair_loop.SHORT:
        special = [0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7E00, 0x7E01, 0x7F80, 0xFF80, 0x7FC0, 0x7FC1, 0x3C00, 0x3F80]
        bits = hnp.arrays(np.uint16, st.integers(1, 30), elements=st.integers(0, 2**16 - 1) | st.sampled_from(special))
        return bits.map(lambda drawn: drawn.view(dtype_of(name)))
    return hnp.arrays(name, st.integers(1, 30))


@st.composite
def pairs(draw, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw two arrays of one shape, by any strides, which differ in some places, in most, or nowhere; and a block."""
    few = draw(few_of(name))
    a = np.resize(few, draw(st.integers(1, 9000)))
    b = np.resize(np.concatenate([few, draw(few_of(name))]), a.size) if draw(st.booleans()) else a.copy()
    for at, other in draw(st.lists(st.tuples(st.integers(0, a.size - 1), st.integers(0, 29)), max_size=4)):
        b[at] = few[other % few.size]
    if draw(st.booleans()):
        a, b = np.stack([a, b]), np.stack([b, a])
        a, b = draw(st.sampled_from([(a, b), (a.T, b.T), (a[:, ::-2], b[:, ::-2]), (a.T.copy(), b.T)]))
    return a, b, draw(st.sampled_from([50, 4500, 2**17]))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_compiled_pass_finds_what_numpy_finds(name, data) -> None:
    """Of any dtype, strides and numbers, in blocks of any size, and in several threads."""
    a, b, block_numel = data.draw(pairs(name))
    assert_same(*compared(a, b, block_numel, data.draw(st.sampled_from([1, 2]))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["noise", "scaled", "equal", "a few", "half of it"])
def test_a_large_comparison_is_that_of_numpy(name, kind) -> None:
    """Of many blocks; what is scaled is found to be, and the first of equally large differences."""
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(500_000) * 30).clip(-60, 60).astype(dtype_of(name))
    a = np.abs(a) if name.startswith("u") else a
    b = {
        "noise": lambda: (a + rng.integers(0, 2, a.size)).astype(a.dtype),
        "scaled": lambda: (a * 2).astype(a.dtype),
        "equal": a.copy,
        "a few": lambda: np.where(np.arange(a.size) % 99_999 == 7, a + 1, a).astype(a.dtype),
        "half of it": lambda: np.where(np.arange(a.size) < 250_000, a, a * 2).astype(a.dtype),
    }[kind]()
    found, expected = compared(a, b, 2**14, 2)
    assert_same(found, expected)
    is_scaled = kind == "scaled" and np.dtype(name if name != "bfloat16" else "f4").kind == "f"
    assert found.verdict.startswith("scaled by 2") == is_scaled


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bit_of_a_comparison(name) -> None:
    """One, two and eight of them."""
    a = (torch.randn(3_000_000, generator=torch.Generator().manual_seed(0)) * 20).numpy()
    a = np.abs(a) if name.startswith("u") else a
    b = a + 1
    a, b = (values.astype(dtype_of(name)) for values in (a, b))
    assert len({repr(compared(a, b, 2**15, n)[0]) for n in (1, 2, 8)}) == 1
    found = [compared(a, b, 2**15, n)[0] for n in (1, 2, 8)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "complex64"])
def test_of_equally_large_differences_the_first_is_told(name, is_fast) -> None:
    """Whichever sign it has."""
    for signs in ((1, -1), (-1, 1)):
        a, b = np.zeros(5000), np.zeros(5000)
        b[[3000, 4000]] = np.array(signs) * 3
        found = compared(a.astype(dtype_of(name)), b.astype(dtype_of(name)))[not is_fast]
        assert (found.max_abs, found.largest_difference) == (3, (3000,))


def test_short_floats_of_other_payloads_are_no_same_bits() -> None:
    """The loop takes bits, and what is widened does not tell."""
    a = np.zeros(2**20, np.float16)
    a.view(np.uint16)[5], b = 0x7C01, a.copy()
    b.view(np.uint16)[5] = 0x7E01
    assert compare(a, b).verdict == "equal"
    assert compare(a, a.copy()).verdict == "same bits"


def test_memory_is_asked_about_once(monkeypatch) -> None:
    """And not for each block: it may take the system longer than to compare one."""
    asked = []
    can_be = tnp.core.memory.strided.Strided.can_be_read_in_place
    monkeypatch.setattr(
        "tensornp.core.memory.strided.Strided.can_be_read_in_place", lambda one: asked.append(one) or can_be(one)
    )
    for dtype in (torch.float32, torch.float8_e4m3fn):
        asked.clear()
        compare(torch.zeros(2**21).to(dtype), torch.ones(2**21).to(dtype))
        assert len(asked) == 2


def test_files_and_memory_meet(tmp_path) -> None:
    """A tensor by rows, a file read from its beginning, and one whose elements lie in another order."""
    a = np.random.default_rng(0).standard_normal((1500, 1000)).astype(np.float32)
    b = a.copy()
    b[-1, -1] += 1
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.asfortranarray(b))
    saved = [tnp.weights(tmp_path / name)["array"].values() for name in ("a.npy", "b.npy")]
    assert all(isinstance(one, StoredValues) for one in saved)
    for first in (a, np.asfortranarray(a), torch.from_numpy(a), saved[0]):
        for second in (b, saved[1]):
            found = compared(first, second, 2**17, 2)
            assert_same(*found)
            assert found[0].largest_difference == found[0].first_difference == (1499, 999)
