"""The same window on two tensors, by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.compare.side_by_side import side_by_side
from tensornp.core.values.shown.window import window_of
from tensornp.core.values.shown.window_values import subject_of


def seen(a, b, rows=3, columns=4, corner=()):
    subjects = subject_of(a), subject_of(b)
    return side_by_side(*subjects, window_of(subjects[0].shape, corner=corner, num_rows=rows, num_columns=columns))


def numbers(texts):
    return [float(text.replace("−", "-")) for text in texts]


@pytest.mark.parametrize(
    "kinds", [("float32", "float32"), ("bfloat16", "float32"), ("int64", "int64"), ("int8", "bool")]
)
def test_a_window_shows_both_and_the_difference(kinds):
    """In four digits, of the elements that a slice of NumPy gives."""
    torch.manual_seed(0)
    a, b = (torch.randn(9, 7).mul(3).to(getattr(torch, kind)) for kind in kinds)
    with unchanged(a, b):
        found = seen(a, b, corner=(2, 1))
    old, new = (tnp.to_numpy(one)[2:5, 1:5].astype(float) for one in (a, b))
    for side, expected in zip(found, (old, new, new - old), strict=True):
        if "True" not in side.texts:
            assert numbers(side.texts) == pytest.approx(expected.ravel(), rel=1e-3)
    both = np.abs([old, new]).max()
    assert found[0].shades == [round(100 * value / both) for value in old.ravel()]


def test_what_is_not_finite_on_both_sides_is_no_difference():
    """As `compare` has it."""
    a = torch.tensor([math.nan, math.inf, 1.0, 2.0])
    b = torch.tensor([math.nan, math.inf, math.nan, 2.5])
    assert seen(a, b)[2].texts == ["0", "0", "nan", "+0.5"]


def test_integers_differ_exactly():
    """Also by more than 64 bits hold."""
    found = seen(torch.tensor(-(2**63)), torch.tensor(2**63 - 1))
    assert found[2].texts == [f"+{2**64 - 1}"]
