"""The plane around a window is drawn as NumPy has it, along any two axes, and nothing of the tensor is changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import converted, modulus, tensors
from unchanged import unchanged

from tensornp.core.values.pictures import heatmap
from tensornp.core.values.pictures.planes import SIDE, overview_of
from tensornp.core.values.shown.window import subject_of, window_of


@pytest.mark.slow
@settings(deadline=None)
@given(tensors(), st.data())
def test_it_is_the_heat_map_of_the_plane(t, data):
    """For random shapes, strides, dtypes and values, any axes and blocks of any size."""
    array = modulus(t) if t.is_complex() else converted(t)
    axes = data.draw(st.permutations(range(array.ndim)).map(lambda a: tuple(a[:2]))) if array.ndim > 1 else None
    corner = data.draw(st.lists(st.integers(0, 9), min_size=array.ndim, max_size=array.ndim))
    subject = subject_of(t)
    window = window_of(subject.shape, axes=axes, corner=corner, num_rows=2, num_columns=2)
    if not window.numel:
        return
    with pytest.MonkeyPatch.context() as patch, unchanged(t):
        patch.setattr(heatmap, "BLOCK_NUMEL", data.draw(st.integers(1, 40)))
        drawn = overview_of(subject, window)
    rest = tuple(
        slice(None) if axis in (window.row_axis, window.column_axis) else at for axis, at in enumerate(window.corner)
    )
    plane = array[rest]
    plane = (plane.T if window.is_transposed else plane).reshape(window.plane)
    expected = heatmap.heatmap_of(window.plane, lambda rows, columns: plane[rows][:, columns], SIDE, SIDE)
    np.testing.assert_array_equal(drawn.values, expected.values)
    np.testing.assert_array_equal(drawn.flags, expected.flags)
