"""What is taken out of a dense tensor, beside what NumPy takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensornp.core.tensor.form import indexed


@pytest.mark.slow
@given(st.data())
def test_any_places_are_taken_and_always_in_new_memory(data) -> None:
    """Runs of indices, all of them, none, some twice or from behind; of a tensor of any strides."""
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    t = torch.arange(int(np.prod(shape))).view(shape).permute(data.draw(st.permutations(range(len(shape)))))
    places = []
    for size in t.shape:
        first = data.draw(st.integers(0, size - 1))
        run = st.integers(first, size).map(lambda end, first=first: list(range(first, end)))
        places.append(data.draw(run | st.lists(st.integers(-size, size - 1), max_size=5)))
    found = indexed(t, places)
    np.testing.assert_array_equal(found.numpy(), t.numpy()[np.ix_(*places)])
    assert not found.numel() or found.untyped_storage().data_ptr() != t.untyped_storage().data_ptr()


def test_a_run_past_the_end_is_no_shorter_one() -> None:
    """Of a tensor that another thread has made smaller."""
    with pytest.raises(IndexError):
        indexed(torch.zeros(3, 3), [[1, 2, 3], [0]])


def test_a_run_is_copied_without_what_lies_beside_it() -> None:
    """Of few columns of a large tensor, no more than these."""
    few = indexed(torch.zeros(100, 100), [[3, 4], [5, 6, 7]])
    assert few.untyped_storage().nbytes() == 2 * 3 * 4
