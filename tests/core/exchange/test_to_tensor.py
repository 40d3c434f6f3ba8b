"""The way back: what `to_numpy` returned, and what torch itself refuses, becomes the right tensor."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
import torch
from older import needs_complex32

import tensornp as tnp

REFUSED_BY_TORCH = {
    "negative strides": np.arange(6.0).reshape(2, 3)[::-1, ::-1],
    "uneven strides": np.frombuffer(bytes(range(40)), np.uint8)[:36].reshape(4, 9)[:, 1:9].view(np.float32),
    "foreign byte order": np.arange(4, dtype=">f4"),
    "foreign byte order and 0-d": np.array(2.5, dtype=">f8"),
    "structured field": np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i1"), ("b", "<f4")])["b"],
    "numpy scalar": np.float32(2.5),
}


@pytest.mark.parametrize("name", REFUSED_BY_TORCH)
def test_an_array_that_torch_refuses_becomes_the_right_tensor(name):
    """Values and dtype are those of the array."""
    array = REFUSED_BY_TORCH[name]
    t = tnp.to_tensor(array)
    assert t.shape == array.shape
    assert str(t.dtype) == f"torch.{array.dtype.newbyteorder('=').name}"
    assert t.tolist() == array.tolist()


def test_a_read_only_array_is_copied_without_a_warning():
    """torch would warn once, share, and let a write through."""
    array = np.zeros(3)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = tnp.to_tensor(array)
    t[0] = 1
    assert array.tolist() == [0, 0, 0]


@needs_complex32
def test_complex32_shares_its_bits_both_ways():
    """The zero-copy array writes into the tensor that is made of it."""
    t = torch.view_as_complex(torch.arange(4, dtype=torch.float16).view(2, 2))
    array = tnp.to_numpy(t, copy=False, writeable=True)
    assert array.dtype == ml_dtypes.complex32
    back = tnp.to_tensor(array, copy=False)
    back.view(torch.int32)[0] = 0
    assert torch.view_as_real(t).tolist() == [[0, 0], [2, 3]]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), "array['a']"),
        (np.array([1, None]), "numbers"),
        (np.array(["2026-11-21"], dtype="M8[D]"), "numbers"),
        (np.zeros(2, dtype=ml_dtypes.int4), ".astype()"),
        (np.ma.MaskedArray([1.0, 2.0], mask=[0, 1]), "array.filled()"),
    ],
    ids=str,
)
def test_what_torch_has_no_dtype_for_is_refused_with_the_cure(array, says):
    """One sentence, which names what to do."""
    with pytest.raises(tnp.UnsupportedArrayError) as error:
        tnp.to_tensor(array)
    assert says in str(error.value)


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", 3.5])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(device):
    """Not with an AssertionError about a build."""
    with pytest.raises(tnp.BadRequestError, match="cannot be used here"):
        tnp.to_tensor(np.zeros(2), device=device)


@pytest.mark.parametrize("scalar", [np.float32(3), np.int64(3), np.bool_(True)])
def test_a_scalar_of_numpy_shares_nothing(scalar):
    """It is copied, unless that is forbidden."""
    assert tnp.to_tensor(scalar).item() == scalar
    for obj in (scalar, {"a": scalar}):
        with pytest.raises(tnp.CopyRequiredError, match="no memory to share"):
            tnp.to_tensor(obj, copy=False)


class _Holder:
    """Has one of the array protocols alone."""

    def __init__(self, array):
        self.array = array


class WithArray(_Holder):
    def __array__(self, dtype=None, copy=None):
        return self.array


class WithDlpack(_Holder):
    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [WithArray, WithDlpack])
def test_any_object_with_an_array_protocol_becomes_a_tensor(wrap):
    """Its memory is shared if it can be, also inside a container."""
    array = np.arange(3.0)
    t = tnp.to_tensor([wrap(array), "text"])[0]
    assert t.dtype is torch.float64
    array[0] = 7
    assert t.tolist() == [7, 1, 2]
    copied = tnp.to_tensor(wrap(array), copy=True)
    array[0] = 8
    assert copied.tolist() == [7, 1, 2]


def test_a_broken_array_protocol_is_one_sentence():
    """With the object's own error."""
    with pytest.raises(tnp.UnsupportedArrayError, match=r"WithDlpack gives no array .*AttributeError"):
        tnp.to_tensor(WithDlpack(3))
