"""An index that was typed is read as NumPy reads it and never run, and what is shown is code that does the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.shown.window import expression_of, index_text, parse_index, window_of

SHAPE = (4, 5, 6)
ENDS = st.none() | st.integers(-8, 8)


@settings(max_examples=75, deadline=None)
@given(st.lists(st.integers(-6, 6) | st.builds(slice, ENDS, ENDS) | st.just(...), max_size=4))
def test_it_chooses_what_numpy_chooses(items):
    """What NumPy refuses is refused, and so is a slice that holds nothing; else the elements are the same."""
    array = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    text = ", ".join("..." if item is ... else index_text([item]) for item in items)
    try:
        expected = array[tuple(items)]
    except IndexError:
        expected = np.empty(0)
    if not expected.size:
        with pytest.raises(tnp.BadRequestError):
            parse_index(text, SHAPE)
        return
    for written in (text, f"[{text}]", f"  [ {text} ] "):
        chosen = parse_index(written, SHAPE)
        assert len(chosen) == len(SHAPE)
        np.testing.assert_array_equal(array[chosen], expected)


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
     ("0, 0, 0, 0", "names too many axes"), ("..., ...", "is no index"),
     ("::2", "no steps"), ("3:3", "holds nothing of axis 0"), ("9:", "slice 9: holds nothing")],
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
        np.testing.assert_array_equal(np.asarray(eval(expression_of("x", window), {"x": value})), expected)
