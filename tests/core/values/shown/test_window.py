"""A window shows that part of the array, and never reaches beyond the array."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from gallery import KINDS, made
from hypothesis import given, settings
from hypothesis import strategies as st
from odd import forget_what_was_asked, many_kinds, nothing_was_asked, plain
from strategies import converted, tensors
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.shown.window import (
    MAX_COLUMNS,
    MAX_ROWS,
    NAN,
    NEGATIVE_INF,
    POSITIVE_INF,
    Seen,
    Window,
    read_window,
    subject_of,
    window_of,
)
from tensornp.errors import NotReadError

SHAPES = st.lists(st.integers(0, 50), max_size=4).map(tuple)
NUMBERS = st.integers(-100, 10**20)


def seen(t: torch.Tensor, **options: object) -> tuple[Window, Seen]:
    subject = subject_of(t)
    window = window_of(subject.shape, **options)
    return window, read_window(subject, window)


def cut(array: np.ndarray, window: Window) -> np.ndarray:
    """Return by NumPy what is seen, in rows."""
    counts = {window.row_axis: window.num_rows, window.column_axis: window.num_columns}
    index = tuple(slice(at, at + counts.get(axis, 1)) for axis, at in enumerate(window.corner))
    part = array[index]
    if window.row_axis is not None:
        part = np.moveaxis(part, (window.row_axis, window.column_axis), (-2, -1))
    return part.reshape(window.num_rows, window.num_columns)


def holds(window: Window, index: tuple[int, ...]) -> bool:
    return all(i in places for i, places in zip(index, window.places, strict=True))


@settings(max_examples=50, deadline=None)
@given(SHAPES, st.data())
def test_a_window_never_reaches_beyond_the_array(shape, data):
    """Whatever corner, size and index are asked for."""
    ndim = len(shape)
    axes = data.draw(st.none() | st.permutations(range(ndim)).map(lambda a: tuple(a[:2]))) if ndim > 1 else None
    corner = data.draw(st.lists(NUMBERS, min_size=ndim, max_size=ndim))
    window = window_of(shape, axes=axes, corner=corner, num_rows=data.draw(NUMBERS), num_columns=data.draw(NUMBERS))
    target = tuple(data.draw(st.integers(0, max(size - 1, 0))) for size in shape)
    for each in (window, window.begun_at(corner), window.moved_to_show(target), window.centered_on(target)):
        assert each.num_rows <= MAX_ROWS
        assert each.num_columns <= MAX_COLUMNS
        assert (each.numel == 0) == (0 in shape)
        if each.numel:
            assert all(place[-1] < size for place, size in zip(each.places, shape, strict=True))
            assert np.empty(shape, np.int8)[np.ix_(*each.places)].size == each.numel
    assert not window.numel or holds(window.moved_to_show(target), target)
    assert not window.numel or holds(window.centered_on(target), target)


def test_axes_that_are_no_table_are_refused():
    """Twice the same one, or one that is not there."""
    for axes in ((0, 0), (0, 3), (-1, 0)):
        with pytest.raises(tnp.BadRequestError, match="choose two different ones of 0 to 2"):
            window_of((2, 3, 4), axes=axes)


@settings(max_examples=50, deadline=None)
@given(tensors(), st.data())
def test_exact_texts_give_the_value_back(t, data):
    """For random shapes, strides, dtypes and values, and any two axes in any order."""
    array = converted(t)
    axes = data.draw(st.permutations(range(array.ndim)).map(lambda a: tuple(a[:2]))) if array.ndim > 1 else None
    corner = data.draw(st.lists(st.integers(0, 9), min_size=array.ndim, max_size=array.ndim))
    window, shown = seen(t, axes=axes, corner=corner, num_rows=3, num_columns=4)
    expected = cut(array, window).reshape(-1)
    if not expected.size:
        assert shown.texts == []
        return
    parsed = np.array([as_number(text, expected.dtype) for text in shown.exact], expected.dtype)
    np.testing.assert_array_equal(parsed, expected)


def as_number(text: str, dtype: np.dtype) -> object:
    return text == "True" if dtype.kind == "b" else dtype.type(complex(text) if dtype.kind == "c" else text)


@pytest.mark.parametrize("name", [name for name, (group, _) in KINDS.items() if group == "dtypes"])
def test_every_dtype_shows_its_values(name):
    """All bit patterns of the small ones; what has no values says so as a conversion does."""
    case = made(name)
    if isinstance(case, str):
        pytest.skip(case)
    if case.error is not None:
        with pytest.raises(case.error, match=re.escape(case.says)):
            subject_of(case.tensor)
        return
    window, shown = seen(case.tensor, num_rows=40, num_columns=24)
    expected = cut(case.expected, window).reshape(-1)
    assert shown.exact == [str(value) for value in expected]


def test_shades_are_symmetric_about_zero_and_what_has_no_place_has_its_own():
    """The farthest from 0 is full, and NaN and infinities change nothing of the others."""
    t = torch.tensor([-2.0, 1.0, 0.0, torch.nan, torch.inf, -torch.inf, 0.5])
    shown = seen(t)[1]
    assert shown.shades == [-100, 50, 0, NAN, POSITIVE_INF, NEGATIVE_INF, 25]
    assert seen(torch.tensor([3, 4j, 0]))[1].shades == [75, 100, 0]
    assert seen(torch.tensor([False, True]))[1].shades == [0, 100]
    assert seen(torch.tensor([5e-324, 1e-323], dtype=torch.float64))[1].shades == [50, 100]
    assert seen(torch.tensor([1.7e308, -1.7e308], dtype=torch.float64))[1].shades == [100, -100]


def test_one_tensor_of_a_nested_one_is_looked_at():
    """The refusal says how."""
    t = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 3)])
    with pytest.raises(tnp.BadRequestError, match=r"look at one of t.unbind\(\)"):
        subject_of(t)


def test_a_large_sparse_tensor_has_no_window():
    """1e12 elements, of which two are stored: nothing is laid out."""
    t = torch.sparse_coo_tensor([[5, 999_999], [7, 999_999]], [1.5, 2.5], (10**6, 10**6)).coalesce()
    with pytest.raises(NotReadError, match="1,000,000,000,000 elements"):
        seen(t)


@pytest.mark.parametrize("name", [name for name in many_kinds() if name != "nested"])
def test_a_look_through_a_window_changes_nothing(name):
    """Of many kinds, some of which notice what is asked of them."""
    kinds = many_kinds()
    tensors = [plain(t) for t in kinds.values()]
    forget_what_was_asked()
    with unchanged(*tensors):
        seen(kinds[name], num_rows=3, num_columns=3)
    assert nothing_was_asked()
