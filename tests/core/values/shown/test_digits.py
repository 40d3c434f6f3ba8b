"""Numbers of a table in few digits are near the true ones, and a column has the same decimals."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tensornp.core.values.shown.window_values import DIGITS, column_texts

FLOATS = st.sampled_from([np.float16, np.float32, np.float64]).flatmap(
    lambda dtype: arrays(dtype, st.tuples(st.integers(1, 5), st.integers(1, 5)))
)


def number(text: str) -> float:
    value = float(text.replace("−", "-"))
    # In four digits the largest float is rounded up to what none can hold.
    return math.copysign(sys.float_info.max, value) if math.isinf(value) and "inf" not in text else value


@pytest.mark.slow
@given(FLOATS)
@example(np.array([[5e-324, 1.7e308]]))
@example(np.array([[1.7975e308]]))
@example(np.array([[0.99996, 9999.96], [1e5, 999999.9]]))
def test_a_text_is_near_the_number(table):
    """To the digits of the largest of the window or, where it is much smaller, to some of its own."""
    texts = column_texts(table.reshape(-1), table.shape[1], DIGITS)
    told = np.array([number(text) for text in texts]).reshape(table.shape)
    values = table.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(told), np.isfinite(values))
    np.testing.assert_array_equal(np.isnan(told), np.isnan(values))
    finite = np.where(np.isfinite(values), values, 0)
    largest = np.abs(finite).max(axis=0)
    apart = np.abs(np.where(np.isfinite(told), told, 0) - finite)
    # What reads as the very number in its own dtype says all of it.
    with np.errstate(all="ignore"):
        is_exact = np.where(np.isfinite(told), told, 0).astype(table.dtype) == finite.astype(table.dtype)
    assert ((apart <= 10.0 ** (3 - DIGITS) * largest) | is_exact).all()
    # What is not zero is not shown as zero.
    np.testing.assert_array_equal(told == 0, values == 0)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([0.1234567, -0.05, np.nan], ["0.1235", "−0.0500", "nan"]),
        ([0.0637, -0.0011], ["0.0637", "−0.0011"]),
        ([0.00309, 0.0], ["0.00309", "0"]),
        ([1.5, -0.0, np.inf, -np.inf], ["1.5", "−0", "inf", "−inf"]),
        ([1234567.0, 1.0], ["1.235e6", "1.000e0"]),
        ([12345.6, 3e-7], ["12346", "3.0e−7"]),
        ([7.0, 15.0, 3.0], ["7", "15", "3"]),
        ([2e-5, -1.23456e-5], ["2.000e−5", "−1.235e−5"]),
    ],
)
def test_columns_are_short_and_even(column, texts):
    """The decimals are those of the largest, as far as they say anything; what they cannot show has an exponent."""
    assert column_texts(np.array(column), 1, 4) == texts
