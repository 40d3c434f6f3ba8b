"""Where nearly all of a change lies: planted in some indices of an axis, it is found there."""

from __future__ import annotations

import pytest
import torch

from tensornp.core.values.compare.where import SPREAD, sums_by_axis, where_text


@pytest.mark.parametrize(
    ("shape", "index", "text"),
    [
        ((128, 40), (slice(0, 16),), "nearly all of it in rows 0–15 of 128"),
        ((128, 40), (7,), "nearly all of it in row 7 of 128"),
        ((128, 40), (slice(None), [3, 9]), "nearly all of it in columns 3, 9 of 40"),
        ((128, 40), (5, 6), "nearly all of it in one element [5, 6]"),
        ((6, 7, 8), (slice(None), 2), "nearly all of it in axis 1: 2 of 7"),
        ((50,), (slice(10, 13),), "nearly all of it in elements 10–12 of 50"),
        ((20, 30), (...,), SPREAD),
    ],
)
def test_a_planted_change_is_found(shape, index, text):
    """Beside a small one everywhere, in blocks of any order."""
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    b = a + 1e-3
    b[index] += 1
    sums = sums_by_axis(a, b)
    difference = (b.double() - a.double()).square()
    for axis, own in enumerate(sums):
        others = [d for d in range(a.dim()) if d != axis]
        expected = difference.sum(others) if others else difference
        assert own == pytest.approx(expected.numpy(), rel=1e-6)
    assert where_text(sums) == text
    assert where_text(sums_by_axis(a, a.clone())) == ""
