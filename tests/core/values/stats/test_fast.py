"""Statistics with numba against those of NumPy, on the same numbers."""

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

from tensornp.core.values.stats import fast
from tensornp.core.values.stats.compute import scan

EXACT = ("count", "nan", "posinf", "neginf", "zeros", "min", "max")


@settings(max_examples=50, deadline=None)
@given(few=hnp.arrays(np.float32, st.integers(1, 40)), times=st.integers(1, 2000))
def test_numba_finds_the_same_as_numpy(few, times):
    """Zeros of both signs, subnormal numbers, NaN, one sign, one value."""
    assert fast.load() is not None, "numba belongs to the libraries of the tests"
    found = []
    for max_nbytes in (0, 2**60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fast, "MAX_NBYTES_PLAIN", max_nbytes)
            found.append(scan(np.tile(few, times), histogram="all"))
    for name in EXACT:
        assert getattr(found[0], name) == getattr(found[1], name), name
    np.testing.assert_equal(*(vars(one.distribution) for one in found))
    if found[1].mean is not None:
        size = abs(found[1].mean) + found[1].std
        assert math.isclose(found[0].mean, found[1].mean, rel_tol=0, abs_tol=1e-12 * size)
        assert math.isclose(found[0].std, found[1].std, rel_tol=1e-9, abs_tol=1e-9 * size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8])
def test_threads_change_no_bit(dtype):
    """One, two and eight of them."""
    t = (torch.randn(fast.MAX_NBYTES_PLAIN + 12345, generator=torch.Generator().manual_seed(0)) * 20).to(dtype)
    found = [scan(t, num_threads=n) for n in (1, 2, 8)]
    assert found[0] == found[1] == found[2]
    for one in found[1:]:
        np.testing.assert_equal(vars(one.distribution), vars(found[0].distribution))


@pytest.mark.slow
def test_numpy_does_what_numba_cannot():
    """Without numba, and with a damaged one, which is logged once."""
    program = """
import logging, sys
from tensornp.core.values.stats import fast
how = sys.argv[1]
if how == "missing":
    sys.modules["numba"] = None
elif how == "damaged":
    import types
    sys.modules["numba"] = types.ModuleType("numba")
    sys.modules["numba"].__spec__ = sys.__spec__
logging.basicConfig(format="%(message)s")
print(fast.load(), fast.load())
"""
    for how, said in [("missing", ""), ("damaged", "numba"), ("off", "")]:
        environment = {"NUMBA_DISABLE_JIT": "1"} if how == "off" else {}
        done = subprocess.run(
            [sys.executable, "-c", program, how], capture_output=True, text=True, check=True, timeout=120,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert done.stdout == "None None\n", how
        assert (said in done.stderr and done.stderr.count("\n") == 1) if said else done.stderr == "", how
