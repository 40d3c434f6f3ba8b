"""Heat maps of planes, against NumPy's own arithmetic of the whole array."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.values.pictures import planes
from tensornp.core.values.pictures.heatmap import NAN
from tensornp.core.values.pictures.planes import difference_map, plane_map


def test_one_nan_and_the_extreme_are_there_in_a_large_plane():
    """A million elements, and each of the two claims its pixel."""
    t = torch.zeros(1000, 1000)
    t[123, 456], t[777, 5] = math.nan, -9.0
    found = plane_map(t)
    assert found.elements_per_pixel > 1
    assert found.count(NAN) == 1
    assert np.nanmin(found.values) == -9.0


def test_only_the_shown_plane_is_read(monkeypatch):
    """One of a hundred planes."""
    read, elements = [], planes.elements_in
    monkeypatch.setattr(planes, "elements_in", lambda subject, part: read.append(part.numel) or elements(subject, part))
    found = plane_map(torch.zeros(100, 300, 300, dtype=torch.bfloat16), (7,))
    assert found.title == "plane [7] of 100"
    assert sum(read) == 300 * 300


def test_the_difference_is_where_it_is():
    """Equal infinities do not differ, nor does NaN on both sides; a NaN on one side does."""
    a = torch.zeros(20, 30)
    a[0, 0], a[0, 1] = math.inf, math.nan
    b = a.clone()
    b[5, 6], b[7, 8] = 2.0, math.nan
    found = difference_map(a, b)
    assert found.values[5, 6] == 2.0
    assert found.flags[7, 8] == NAN
    assert (found.values[0] == 0).all()
    assert difference_map(a, torch.zeros(3)) is None


@pytest.mark.parametrize("index", ["ab", "", 1.5, True, "1"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 4, 4), (2, 3, 4, 4)])
def test_what_is_no_index_is_refused(shape, index):
    """Of one plane too, which has no index but the empty one."""
    with pytest.raises(tnp.BadRequestError, match=r"leads (to no plane|nowhere)"):
        tnp.plot(torch.zeros(shape), index=index)
