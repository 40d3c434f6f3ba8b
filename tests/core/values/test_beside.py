"""The NaN before and behind a place, and which of how many they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.locate import place_beside


@pytest.mark.slow
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.data())
def test_one_goes_round_either_way(odd, data):
    """By NumPy's own list of them, from any place."""
    shape = data.draw(st.sampled_from([(len(odd),), (1, len(odd)), (len(odd), 1)]))
    array = np.where(odd, np.nan, 1.0).reshape(shape)
    places = [tuple(int(i) for i in place) for place in np.argwhere(np.isnan(array))]
    at = data.draw(st.none() | st.sampled_from([tuple(map(int, i)) for i in np.ndindex(shape)]))
    forward, back = (place_beside(torch.from_numpy(array), "nan", at, is_back=is_back) for is_back in (False, True))
    if not places:
        assert forward is None and back is None
        return
    behind = [place for place in places if at is None or place > at]
    before = [place for place in places if at is not None and place < at]
    assert forward.index == (behind or places)[0]
    assert back.index == (before or places)[-1]
    for one in (forward, back):
        assert (places[one.number - 1], one.count) == (one.index, len(places))


def test_what_has_no_places_is_refused():
    """As a search for all of them is."""
    with pytest.raises(tnp.BadRequestError, match="not stored one by one"):
        place_beside(torch.eye(3).to_sparse(), "nan")
