"""Where elements are, against NumPy's own search of the whole array."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import modulus, tensors
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.locate import KINDS, MAX_INDICES, place_beside


def places(t: torch.Tensor, what: str) -> list[tuple[int, ...]]:
    """Return every such place in the order of indices: the oracle."""
    values = modulus(t)
    sizes = np.asarray(np.abs(values.astype(object)), object) if what == "absmax" else values
    if what in ("nan", "inf", "nonfinite", "zero"):
        wide = values.astype(np.float64)
        is_place = {"nan": np.isnan(wide), "inf": np.isinf(wide), "nonfinite": ~np.isfinite(wide), "zero": values == 0}
        return [tuple(map(int, index)) for index in np.argwhere(is_place[what])]
    is_told = np.isfinite(values.astype(np.float64))
    if not is_told.any():
        return []
    best = sizes[is_told].min() if what == "min" else sizes[is_told].max()
    return [tuple(map(int, index)) for index in np.argwhere(is_told & (sizes == best))]


@pytest.mark.slow
@given(tensors(), st.sampled_from(KINDS), st.sampled_from([50, 2**17]))
@settings(max_examples=75, deadline=None)
def test_every_place_is_counted_and_the_first_are_told(t, what, block_numel):
    """Any dtype and strides, cut into blocks of any size."""
    expected = places(t, what)
    with pytest.MonkeyPatch.context() as patch, unchanged(t):
        patch.setattr("tensornp.core.values.blocks.BLOCK_NUMEL", block_numel)
        found = tnp.locate(t, what)
    assert (found.count, bool(found)) == (len(expected), bool(expected))
    assert list(found.indices) == expected[:MAX_INDICES]


@given(tensors(), st.sampled_from(["nan", "inf", "zero"]))
@settings(max_examples=25, deadline=None)
def test_the_next_place_leads_round_all_of_them(t, what):
    """From each one to the next, and from the last to the first."""
    expected = places(t, what)

    def next_place(after=None):
        return place_beside(t, what, after)

    assert next_place() == (expected[0] if expected else None)
    for here, there in zip(expected[:20], [*expected[1:], expected[0]][:20] if expected else [], strict=False):
        assert next_place(here) == there


def test_in_words():
    """How many, and where the first are."""
    t = torch.zeros(100, 4, 50)
    t[3:6, 0, 7] = math.nan
    assert str(tnp.locate(t)) == "3 NaN at [3, 0, 7], [4, 0, 7], [5, 0, 7]"
    assert str(tnp.locate(t, "inf")) == "no infinity"
    assert str(tnp.locate(torch.zeros(4), "zero")) == "4 zeros at [0], [1], [2] and 1 more"
    assert str(tnp.locate(torch.eye(2)[0], "zero")) == "1 zero at [1]"
    low = torch.tensor([[-128, 127]], dtype=torch.int8)
    assert str(tnp.locate(low, "absmax")) == "1 largest in size 128 at [0, 0]"


@pytest.mark.parametrize(
    ("obj", "what", "says"),
    [
        (torch.zeros(3), "NaN", "what must be one of nan, inf, nonfinite, zero, min, max, absmax, got 'NaN'"),
        ("text", "nan", "locate takes a tensor or an array, not 'str'"),
        (torch.eye(3).to_sparse(), "nan", r"tnp.to_numpy"),
        (torch.zeros(3, device="meta"), "nan", "no data"),
    ],
)
def test_bad_input_gets_a_sentence(obj, what, says):
    """What, where, the cure."""
    with pytest.raises(tnp.TensornpError, match=says):
        tnp.locate(obj, what)
