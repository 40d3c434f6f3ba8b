"""What numba computes, and what is told by codes, beside what NumPy computes of the same numbers."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensornp as tnp
from tensornp.core.lowlevel import raw_memory
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.core.values.stats import codes, fast, figures
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.distribution import Counter
from tensornp.core.values.stats.keys import scheme_of
from tensornp.core.values.stats.sums import FigureSums

SHORT = [name for name in KNOWN if hasattr(torch, name) and stored_dtype(name).itemsize <= 2]
EXACT = ("count", "nan", "posinf", "neginf", "zeros", "min", "max")


@pytest.fixture(scope="module")
def kernels() -> fast.Kernels:
    found = fast.load()
    assert found is not None, "numba is among the libraries of the tests"
    return found


def assert_same(found, expected) -> None:
    """Counts and extremes are the same, and moments but for what the order of a sum changes."""
    assert [getattr(found, name) for name in EXACT] == [getattr(expected, name) for name in EXACT]
    if expected.mean is None:
        assert found.mean is found.std is None
        return
    size = abs(expected.mean) + expected.std
    assert math.isclose(found.mean, expected.mean, rel_tol=0, abs_tol=5e-14 * size)
    # A variance is what is left of the mean square, and has the error of that.
    cancelled = abs(expected.mean) * (abs(expected.mean) / expected.std) if expected.std else 0.0
    assert math.isclose(found.std, expected.std, rel_tol=5e-14, abs_tol=5e-14 * max(size, cancelled))


def added_up(numbers, kernels, step: int = 2**18) -> figures.Figures:
    sums = FigureSums(kernels)
    for start in range(0, len(numbers), step):
        sums.add(numbers[start : start + step])
    return sums.finish()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_compiled_pass_finds_what_numpy_finds(kernels, dtype, data) -> None:
    """Of any numbers: zeros of both signs, subnormal ones, such as have no finite square, NaN, one sign, one value."""
    few = data.draw(hnp.arrays(dtype, st.integers(1, 40)))
    many = np.tile(few, data.draw(st.integers(1, 150)))
    with np.errstate(all="ignore"):
        assert_same(added_up(many, kernels), figures.figures_of(many))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8])
def test_what_lies_in_a_row_is_walked_in_one_call_a_task(kernels, dtype, monkeypatch) -> None:
    """With and without a distribution; where others may take the memory away, block by block, to the same bits."""
    t = (20 * torch.randn(2**24 + 12345, generator=torch.Generator().manual_seed(0))).to(dtype)
    if dtype.is_floating_point:
        t[2**20], t[2**21], t[2**22 : 2**22 + 2**17], t[2**23] = math.nan, 1e-40, 7, -0.0
    calls = []
    walk, count = fast.Kernels.walk, fast.Kernels.count_codes
    monkeypatch.setattr(fast.Kernels, "walk", lambda *some: (calls.append(1), walk(*some))[1])
    monkeypatch.setattr(fast.Kernels, "count_codes", lambda *some: (calls.append(1), count(*some))[1])
    for histogram in (None, "all"):
        calls.clear()
        found = scan(t, histogram=histogram, num_threads=1)
        assert len(calls) == 3
        with monkeypatch.context() as patch:
            patch.setattr(raw_memory, "can_be_read_in_place", lambda *_: False)
            assert scan(t, histogram=histogram, num_threads=2) == found
        assert len(calls) > 100


def test_nearly_equal_large_numbers_are_as_numpy_finds_them(kernels) -> None:
    """Of which NumPy's own sum is off by more than that of the compiled loop."""
    many = np.tile([2.543567358525772e16, *[4.986299345511675e16] * 35], 75)
    assert_same(added_up(many, kernels), figures.figures_of(many))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_compiled_loop_counts_what_numpy_counts(kernels, dtype, data) -> None:
    """Key by key, in blocks of any size."""
    few = data.draw(hnp.arrays(dtype, st.integers(1, 40)))
    blocks = [np.resize(few, size) for size in (2**18, 2**18 + 1, 3, 2**17)]
    found = []
    for used in (kernels, None):
        counter = Counter(scheme_of(np.dtype(dtype).name), used)
        for block in blocks:
            counter.add(block)
        found.append(counter.finish())
    assert found[0] == found[1]


def of_all_codes(name: str) -> torch.Tensor:
    """Return a tensor in which each code of a dtype stands, some more often than others."""
    stored = stored_dtype(name)
    every = np.arange(2 ** (8 * stored.itemsize)).astype(f"u{stored.itemsize}")
    often = np.concatenate([every, every[::7], every[::3]])
    as_stored = torch.from_numpy(np.resize(often, codes._MIN_NUMEL + 17).view(f"i{stored.itemsize}"))
    return as_stored.view(getattr(torch, name))


def by_numbers(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(codes, "_MIN_NUMEL", math.inf)
        return scan(*arguments, **options)


@pytest.mark.parametrize("name", SHORT)
def test_codes_tell_what_the_numbers_tell(name, monkeypatch) -> None:
    """Every code of every dtype of at most 16 bits; with a distribution, without one, of several in one memory."""
    t = of_all_codes(name)
    for tensor in (t, t[1::3], t.expand(2, -1)):
        found, expected = scan(tensor), by_numbers(monkeypatch, tensor)
        assert_same(found, expected)
        assert found.distribution == expected.distribution
        assert type(found.min) is type(expected.min)
        assert math.isclose(found.sum, expected.sum, rel_tol=1e-12, abs_tol=1e-9)
        without = scan(tensor, histogram=None)
        assert without.distribution is None
        assert without == replace(found, distribution=None)


def test_codes_of_all_are_counted_where_others_are_sampled(monkeypatch) -> None:
    """So quantiles of short numbers are exact, however many there are."""
    monkeypatch.setattr("tensornp.core.values.stats.tasks.ALL_NUMEL", 2**18)
    t = torch.randn(2**19)
    assert tnp.stats(t).distribution.is_sample
    short = tnp.stats(t.bfloat16())
    assert short.distribution.accuracy == "exact"
    assert short.quantile(0.25) == np.quantile(t.bfloat16().double().numpy(), 0.25)


def test_a_lazily_negated_tensor_has_the_figures_of_its_numbers(monkeypatch) -> None:
    """The codes are those of memory, the numbers are not."""
    t = torch._neg_view(of_all_codes("float16"))
    assert_same(scan(t), by_numbers(monkeypatch, t))


def test_an_array_of_the_other_byte_order_has_the_figures_of_its_numbers() -> None:
    """It is read as numbers."""
    a = np.resize(np.array([1, 2, -3], ">f2"), 2**18)
    assert (scan(a).min, scan(a).max) == (-3, 2)


@pytest.mark.parametrize("dtype", [">i2", ">u2", ">f2"])
def test_a_file_of_the_other_byte_order_has_the_figures_of_its_numbers(dtype, tmp_path) -> None:
    """Its codes are those of the numbers."""
    np.savez(tmp_path / "x.npz", t=(np.arange(2**18) % 100).astype(dtype))
    np.save(tmp_path / "x.npy", (np.arange(2**18) % 100).astype(dtype))
    for name, key in (("x.npz", "t"), ("x.npy", "array")):
        found = tnp.weights(tmp_path / name)[key].stats()
        assert (found.min, found.max, found.mean) == (0, 99, pytest.approx(49.5, abs=0.01)), name


def test_a_zero_has_no_sign_as_an_extreme(kernels) -> None:
    """Whichever zeros come first."""
    t = torch.zeros(2**21)
    t[::2] = -0.0
    t[0] = 1
    assert math.copysign(1, tnp.stats(t).min) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8])
def test_threads_change_no_bit_of_what_is_computed_fast(kernels, dtype) -> None:
    """One, two and eight of them."""
    t = (torch.randn(fast.MAX_NBYTES_PLAIN + 12345, generator=torch.Generator().manual_seed(0)) * 20).to(dtype)
    found = [scan(t, num_threads=n) for n in (1, 2, 8)]
    assert found[0] == found[1] == found[2]


def test_a_scan_of_short_numbers_tells_channels_and_equal_values() -> None:
    """As it does of long ones."""
    model = torch.nn.Linear(512, 1024, bias=False, dtype=torch.bfloat16)
    with torch.no_grad():
        model.weight[3] = 0
        model.weight[:, 7] *= 1000
    model.register_buffer("again", model.weight.detach().clone())
    found = tnp.weights(model).scan()
    rows, columns = found["weight"].channels
    assert (rows.dead, columns.outliers[0][0]) == ((3,), 7)
    assert found["weight"].fingerprint == found["again"].fingerprint


def test_what_numba_lacks_is_done_by_numpy() -> None:
    """Without it, with one that computes wrongly, and with one that compiles nothing; a damaged one is logged once."""
    program = """
import logging, sys
import numpy as np
from tensornp.core.values.stats import fast
# On a busy machine it says besides that it takes long.
fast._SILENT_S = 100
how = sys.argv[1]
if how == "missing":
    sys.modules["numba"] = None
elif how == "wrong":
    from tensornp.core.values.stats import kernels
    kernels.walk = lambda *_: None
elif how == "damaged":
    import types
    sys.modules["numba"] = types.ModuleType("numba")
logging.basicConfig(format="%(message)s")
print(fast.load(), fast.load())
"""
    for how, said in [
        ("missing", ""), ("wrong", "does not compute here what it should"), ("damaged", "numba"), ("off", ""),
    ]:  # fmt: skip
        environment = {"NUMBA_DISABLE_JIT": "1"} if how == "off" else {}
        done = subprocess.run(
            [sys.executable, "-c", program, how], capture_output=True, text=True, check=True, timeout=120,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert done.stdout == "None None\n", how
        assert (said in done.stderr and done.stderr.count("\n") == 1) if said else done.stderr == "", how


def test_fields_are_all_compared() -> None:
    """What is added to the figures is held together as well."""
    assert {field.name for field in fields(figures.Figures)} == {*EXACT, "total", "mean", "std"}
