"""The plane around a window is drawn as NumPy has it, along any two axes, and nothing of the tensor is changed."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import converted, modulus, tensors
from unchanged import unchanged

from tensornp.core.values.block import blocks_of
from tensornp.core.values.pictures import planes
from tensornp.core.values.pictures.heatmap import FINITE, NAN, POSINF, HeatmapBuilder
from tensornp.core.values.pictures.planes import SIDE, overview_of, overview_of_change
from tensornp.core.values.shown.window import window_of
from tensornp.core.values.shown.window_values import subject_of
from tensornp.render.pictures.legend import heatmap_alt
from tensornp.render.pictures.window import overview_words


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
        size = data.draw(st.integers(1, 40))
        patch.setattr(planes, "blocks_of", lambda shape: blocks_of(shape, size))
        drawn = overview_of(subject, window)
    rest = tuple(
        slice(None) if axis in (window.row_axis, window.column_axis) else at for axis, at in enumerate(window.corner)
    )
    plane = array[rest]
    plane = (plane.T if window.is_transposed else plane).reshape(window.plane)
    builder = HeatmapBuilder(window.plane, SIDE, SIDE)
    builder.add(plane)
    np.testing.assert_array_equal(drawn.heatmap.values, builder.finish().values)
    np.testing.assert_array_equal(drawn.heatmap.flags, builder.finish().flags)


def test_a_signalling_nan_is_drawn_without_a_warning():
    """Which NumPy gives where it widens one."""
    real = torch.tensor([0x7F800001, 0x3F800000], dtype=torch.int32).view(torch.float32)
    for t in (real, torch.complex(real, real), real.view(torch.int32)[:1].view(torch.float16)):
        subject = subject_of(t)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = overview_of(subject, window_of(subject.shape))
        assert drawn.heatmap.count(NAN) == 1
        assert drawn.heatmap.is_modulus == t.is_complex()


@pytest.mark.parametrize("axes", [None, (1, 0), (2, 0)])
def test_a_change_is_seen_by_its_size(axes):
    """Of two dtypes, in any plane: each pixel is the root mean square of its cell, the colours from 0 on."""
    torch.manual_seed(0)
    a, b = torch.randn(150, 7, 130), torch.randn(150, 7, 130).bfloat16()
    b[:, 3] = a[:, 3].bfloat16()
    corner = (5, 3, 11)
    window = window_of(a.shape, axes=axes, corner=corner, num_rows=8, num_columns=8)
    with unchanged(a, b):
        found = overview_of_change(subject_of(a), subject_of(b), window)
    sizes = np.abs(b.float().numpy().astype(float) - a.numpy())
    rows, columns = (window.row_axis, window.column_axis)
    other = ({0, 1, 2} - {rows, columns}).pop()
    plane = np.moveaxis(sizes, (rows, columns, other), (0, 1, 2))[:, :, window.corner[other]]
    tall, wide = found.heatmap.cell
    for (i, j), value in np.ndenumerate(found.heatmap.values):
        cell = plane[i * tall : (i + 1) * tall, j * wide : (j + 1) * wide]
        assert value == pytest.approx(np.sqrt((cell**2).mean()), rel=1e-12)
    assert (found.limits.low, found.limits.high, found.limits.centre) == (0, found.heatmap.values.max(), None)
    assert not found.limits.num_beyond


def test_a_map_of_a_change_agrees_with_how_many_rows_have_changed():
    """Of 219 of 1,000 rows few pixels have the colour of the largest, and their squares sum up to all that changed."""
    a = torch.zeros(1000, 128)
    b = a.double()
    # Whose squares no float holds.
    b[torch.randperm(1000, generator=torch.Generator().manual_seed(0))[:219]] = 1e-200
    found = overview_of_change(subject_of(a), subject_of(b), window_of(a.shape))
    pixels, (tall, wide) = found.heatmap.values, found.heatmap.cell
    assert (pixels > 0.8 * pixels.max()).mean() < 0.3
    rows = np.minimum(tall, 1000 - np.arange(0, 1000, tall))
    assert (rows[:, None] * wide * (pixels / 1e-200) ** 2).sum() == pytest.approx(219 * 128)
    assert "a pixel is the root mean square of up to 11 × 2" in heatmap_alt(found.heatmap, found.limits)


def test_a_change_to_what_is_not_finite_is_marked_and_what_both_have_is_none():
    """NaN on one side has the colour of NaN; NaN and infinity on both sides are no change."""
    nan, inf = math.nan, math.inf
    a = torch.tensor([[1.0, nan, inf, inf, nan, 2.0]])
    b = torch.tensor([[nan, 1.0, inf, -inf, nan, 2.5]])
    found = overview_of_change(subject_of(a), subject_of(b), window_of(a.shape))
    assert found.heatmap.flags.tolist() == [[NAN, NAN, FINITE, POSINF, FINITE, FINITE]]
    assert found.heatmap.values[0, [2, 4, 5]].tolist() == [0, 0, 0.5]
    words = [text for text, _ in overview_words(found, "NaN on one side")]
    assert words == ["dark blue 0", "yellow 0.5", "violet NaN on one side", "cyan Inf"]


def test_integers_change_by_their_exact_size():
    """Also where the difference does not fit their dtype."""
    a, b = torch.tensor([[-(2**63), 5]]), torch.tensor([[2**63 - 1, 2]])
    found = overview_of_change(subject_of(a), subject_of(b), window_of((1, 2)))
    assert found.heatmap.values.tolist() == [[float(2**64 - 1), 3]]
