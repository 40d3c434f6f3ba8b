"""The figures of rows and columns are those that NumPy has of what is finite and shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tensornp.core.values.shown.window_values import Margin, margins_of


@pytest.mark.slow
@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5))))
def test_margins_are_the_extremes_and_the_nan(table):
    """Of each row and of each column."""
    rows, columns = margins_of(table.reshape(-1), table.shape[1])
    for lines, margins in ((table, rows), (table.T, columns)):
        for line, margin in zip(lines, margins, strict=True):
            finite = line[np.isfinite(line)]
            assert margin.num_nan == np.isnan(line).sum()
            assert (margin.low, margin.high) == ((finite.min(), finite.max()) if finite.size else (None, None))


def test_what_is_hidden_counts_nothing_and_of_complex_numbers_the_modulus_does():
    """Nor is a hidden NaN one."""
    hidden = np.ma.MaskedArray([1.0, np.nan], [False, True])
    assert margins_of(hidden, 2)[0] == [Margin(1.0, 1.0, 0)]
    assert margins_of(np.array([3 + 4j, 1]), 2)[0] == [Margin(1.0, 5.0, 0)]
