"""A typed index is read as NumPy reads it and never run, and what is shown is code that does the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.shown.window import parse_index, window_of, window_text

SHAPE = (4, 5, 6)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("", (0, 0, 0)), ("3", (3, 0, 0)), ("[-1, 2:4, -2]", (3, 2, 4)), (" [ :, 1 ] ", (0, 1, 0)),
        ("..., 5", (0, 0, 5)), ("1, ..., -1", (1, 0, 5)), (":3, 2:, 1:2", (0, 2, 1)),
    ],
)  # fmt: skip
def test_it_chooses_the_first_element_that_numpy_chooses(text, index):
    """In brackets and without; whole axes begin where they begin on this rank."""
    assert parse_index(text, SHAPE) == index
    assert parse_index("2, :", SHAPE, (1, 3, 4)) == (2, 3, 4)


@pytest.mark.parametrize(
    "text",
    ["x", "1.5", "__import__('os')", "1+1", "True", "None", "'a'", "[1, 2], 0", "0][1", "0]; x = [1", "*a", "1:2:3:4",
     "(lambda: 0)()", "a := 1", "1" * 5000, "-" * 900 + "1j", "((((" * 200, "\0", "…", "0 if 1 else 2", "f()", "0:x"],
)  # fmt: skip
def test_what_is_no_index_is_refused_in_one_sentence(text):
    """Nothing of it runs, and the cure is said."""
    with pytest.raises(tnp.BadRequestError, match="is no index; write integers, slices") as error:
        parse_index(text, SHAPE)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("text", "says"),
    [("4", "index 4 is out of bounds for axis 0 of shape (4, 5, 6); write -4 to 3"),
     ("0, -6", "axis 1 of shape (4, 5, 6)"),
     ("9" * 900, f"index {'9' * 20} is out of bounds for axis 0 of shape (4, 5, 6)"),
     ("0, 0, 0, 0", "names too many axes"), ("..., ...", "is no index"), ("9:", "out of bounds for axis 0")],
)  # fmt: skip
def test_what_is_not_there_is_said(text, says):
    """Which axis, and how far it reaches."""
    with pytest.raises(tnp.BadRequestError, match=re.escape(says)):
        parse_index(text, SHAPE)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 9), max_size=4).map(tuple), st.data())
def test_the_expression_gives_what_is_seen(shape, data):
    """Evaluated by NumPy and by torch, with the rows running down, also where the axes are turned."""
    array = np.arange(np.prod(shape)).reshape(shape)
    axes = data.draw(st.permutations(range(array.ndim)).map(lambda a: tuple(a[:2]))) if array.ndim > 1 else None
    corner = data.draw(st.lists(st.integers(0, 9), min_size=array.ndim, max_size=array.ndim))
    window = window_of(shape, axes=axes, corner=corner, num_rows=3, num_columns=3)
    expected = array[np.ix_(*window.places)] if shape else array
    if axes:
        expected = np.moveaxis(expected, axes, (-2, -1)).reshape(window.num_rows, window.num_columns)
    for value in (array, torch.from_numpy(array)):
        np.testing.assert_array_equal(
            np.asarray(eval(f"x[{window_text(window) or '...'}]" + ".T" * window.is_transposed, {"x": value})), expected
        )
