"""What numba computes, and what is told by codes, beside what NumPy computes of the same numbers."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensornp.core.values.stats import fast, figures
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.distribution import Counter
from tensornp.core.values.stats.keys import scheme_of
from tensornp.core.values.stats.sums import FigureSums

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
@settings(max_examples=75, deadline=None)
@given(data=st.data())
def test_a_compiled_pass_finds_what_numpy_finds(kernels, dtype, data) -> None:
    """Of any numbers: zeros of both signs, subnormal ones, such as have no finite square, NaN, one sign, one value."""
    few = data.draw(hnp.arrays(dtype, st.integers(1, 40)))
    many = np.tile(few, data.draw(st.integers(1, 150)))
    with np.errstate(all="ignore"):
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8])
def test_threads_change_no_bit_of_what_is_computed_fast(kernels, dtype) -> None:
    """One, two and eight of them."""
    t = (torch.randn(fast.MAX_NBYTES_PLAIN + 12345, generator=torch.Generator().manual_seed(0)) * 20).to(dtype)
    found = [scan(t, num_threads=n) for n in (1, 2, 8)]
    assert found[0] == found[1] == found[2]


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
