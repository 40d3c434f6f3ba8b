"""The difference of two tensors as values, by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.pictures.planes import difference_of
from tensornp.core.values.shown.window import subject_of
from tensornp.core.values.stored import StoredValues


def difference(a: torch.Tensor, b: torch.Tensor) -> StoredValues:
    return difference_of(subject_of(a), subject_of(b))


@pytest.mark.parametrize(
    "kinds",
    [("float32", "float32"), ("bfloat16", "float32"), ("int64", "int64"), ("int8", "bool"), ("complex64", "float32")],
)
def test_a_difference_has_the_numbers_of_numpy(kinds):
    """In a box, and in its largest element, for any layout."""
    torch.manual_seed(0)
    a, b = (torch.randn(9, 7).mul(3).to(getattr(torch, kind)) for kind in kinds)
    b = b.t().contiguous().t()
    wide = complex if "complex64" in kinds else float
    expected = tnp.to_numpy(b).astype(wide) - tnp.to_numpy(a).astype(wide)
    with unchanged(a, b):
        found = difference(a, b)
        largest = tnp.locate(found, "absmax")
    np.testing.assert_array_equal(found.read_box((slice(2, 5), slice(1, 5))), expected[2:5, 1:5])
    assert largest.indices[0] == np.unravel_index(np.abs(expected).argmax(), expected.shape)


def test_integers_differ_by_more_than_their_dtype_holds():
    """Rounded to float64."""
    found = difference(torch.tensor([-(2**63)]), torch.tensor([2**63 - 1]))
    assert found.read_box((slice(0, 1),)).tolist() == [float(2**64 - 1)]
