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
