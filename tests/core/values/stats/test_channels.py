"""Rows and columns that are zero throughout or stand out, beside what NumPy makes of the whole weight."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import ChannelNorms

SHAPES = [(300, 701), (8, 300_001), (40_000, 8), (64, 9, 3, 3), (9, 8, 70_000), (1, 50), (20, 1, 30)]


def expected(values: np.ndarray, axis: int) -> ChannelNorms | None:
    """What stands out along an axis, from the whole."""
    others = tuple(d for d in range(values.ndim) if d != axis)
    norms = np.sqrt((values.astype(np.float64) ** 2).sum(axis=others))
    dead = np.flatnonzero(~values.any(axis=others))
    median = np.median(np.delete(norms, dead))
    out = [int(i) for i in np.argsort(-norms, kind="stable") if norms[i] >= 10 * median]
    if not 8 <= values.shape[axis] <= 2**18 or values.size == values.shape[axis] or not (len(dead) or out):
        return None
    ratios = tuple((i, norms[i] / median) for i in out[:5])
    return ChannelNorms(axis, values.shape[axis], len(dead), tuple(dead[:5].tolist()), len(out), ratios)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_what_stands_out_is_what_numpy_finds(shape, dtype):
    """Whatever the blocks cut through, and in whatever order the elements lie."""
    wanted = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
    wanted[shape[0] // 2] *= 50
    wanted[0] = 0 if shape[0] > 1 else wanted[0]
    if shape[1] > 3:
        wanted[:, -1] = 0
        wanted[:, 2] *= 30
    for tensor in (wanted, wanted.transpose(0, 1).contiguous().transpose(0, 1)):
        found = {norms.axis: norms for norms in scan(tensor, in_depth=True).channels}
        for axis in (0, 1):
            told, by_numpy = found.get(axis), expected(wanted.double().numpy(), axis)
            if by_numpy is None:
                assert told is None
                continue
            assert told is not None
            assert (told.num, told.num_dead, told.dead) == (by_numpy.num, by_numpy.num_dead, by_numpy.dead)
            assert told.num_outliers == by_numpy.num_outliers
            assert [i for i, _ in told.outliers] == [i for i, _ in by_numpy.outliers]
            np.testing.assert_allclose(*([r for _, r in one.outliers] for one in (told, by_numpy)), rtol=1e-4)


def test_a_row_of_numbers_too_small_to_be_squared_is_not_zero():
    """Only zeros are."""
    values = torch.ones(10, 20)
    values[3] = 1e-30
    values[4] = 0
    (rows,) = scan(values, in_depth=True).channels
    assert (rows.axis, rows.num_dead, rows.dead) == (0, 1, (4,))


def test_a_nan_hides_its_own_channel_alone():
    """And an infinity too."""
    values = torch.ones(10, 20)
    values[3, 0], values[4, 1] = float("nan"), float("inf")
    values[5] = 1000
    (rows,) = scan(values, in_depth=True).channels
    assert rows == ChannelNorms(0, 10, 0, (), 1, ((5, pytest.approx(1000)),))


def test_nothing_is_told_where_norms_say_nothing():
    """Of vectors, integers, and all zeros; and of what was not asked for."""
    for tensor in (torch.ones(100), torch.zeros(100, 100), torch.eye(100, dtype=torch.int32), torch.tensor(1.0)):
        assert scan(tensor, in_depth=True).channels == ()
    assert scan(torch.eye(100)[:, :50], in_depth=False).channels == ()


def test_what_no_float_can_square_is_not_told_and_not_dead():
    """Of float64 at the ends of its range."""
    values = torch.ones(16, 16, dtype=torch.float64)
    values[3], values[4], values[5] = 1e-200, 1e200, 0
    (rows,) = (one for one in scan(values, in_depth=True).channels if one.axis == 0)
    assert (rows.dead, rows.outliers) == ((5,), ())
