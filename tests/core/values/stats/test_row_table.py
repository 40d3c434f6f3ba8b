"""Figures of many tensors in one table."""

from __future__ import annotations

import math

import pytest
import torch

from tensornp.core.values.stats.row_table import Row, RowTable


def test_sums_are_taken_of_a_row_whose_table_is_full():
    """Its views are let go then."""
    table, x = RowTable(), torch.tensor([3.0, -4.0])
    numbers = [table.add(x + i, has_sums=False) for i in range(600)]
    table.complete(numbers[2], x + 2)
    rows, _ = table.read()
    assert rows[2] == Row(-2.0, 5.0, 3.0, pytest.approx(29**0.5))
    assert [row.max for row in rows] == [3.0 + i for i in range(600)]
    assert math.isnan(rows[3].norm)


def test_small_tensors_are_read_as_they_were():
    """Though at the end: strided, negated lazily, without memory, with NaN, beside large ones; each sum is its own."""
    torch.manual_seed(0)
    x = torch.randn(30, 40)
    zero = torch._efficientzerotensor((3,))
    tensors = [x, x.t(), x[:, 3], (x + 0j * x).conj().imag, x * math.nan, torch.randn(5000), torch.tensor(3.0), zero]
    expected = [
        Row(*(float(f(one)) for f in (torch.min, torch.max, torch.sum, torch.linalg.vector_norm))) for one in tensors
    ]
    table = RowTable()
    numbers = [table.add(one) for one in tensors]
    x.fill_(1e30)
    samples = [table.sample(x, table.add(x)), table.sample(tensors[-2], numbers[-2])]
    for _ in range(300):
        table.add(x)
    rows, read = table.read()
    for number, one in zip(numbers, expected, strict=True):
        assert rows[number] == pytest.approx(one, rel=1e-4, nan_ok=True)
    assert rows[-1][:2] == (pytest.approx(1e30), pytest.approx(1e30))
    assert rows[-1].norm == pytest.approx(1e30 * 1200**0.5)
    assert [(len(read[one]), read[one][-1]) for one in samples] == [(240, pytest.approx(1e30)), (1, 3.0)]


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 2e-23, 1e-22, 1e-20, 1e-18, 1.0, 1e16, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("numel", [60, 6000])
def test_a_norm_is_right_in_three_digits_or_told_to_be_unknown(numel: int, dtype: torch.dtype, scale: float):
    """Small tensors are read in float64; of the others, squares may be beyond float32 or lost in it."""
    torch.manual_seed(0)
    x = (torch.rand(numel, dtype=torch.float64) * scale).to(dtype)
    table = RowTable()
    number = table.add(x)
    norm = table.read()[0][number].norm
    is_safe = dtype is torch.float64 or 1e-20 < scale < 1e17 or (dtype is torch.float32 and numel == 60)
    if is_safe or math.isfinite(norm):
        assert norm == pytest.approx(torch.linalg.vector_norm(x.double()).item(), rel=2e-3)
