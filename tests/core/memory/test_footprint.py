"""The places of elements, against addresses that torch tells."""

from __future__ import annotations

import warnings

import gallery
import pytest
import torch
from child import in_fork
from odd import many_kinds

from tensornp.core.memory.footprint import check_parts, extents_of, spans_of
from tensornp.errors import NotReadError

WHOLE = torch.arange(24.0).view(4, 6)
VIEWS = {
    "turned": WHOLE.T, "part": WHOLE[1:, 2:4], "expanded": WHOLE[:, :1].expand(4, 9), "number": WHOLE[2, 3],
    "neg": torch._neg_view(WHOLE), "imag": torch.ones(4, dtype=torch.complex64).conj().imag,
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_elements_lie_where_torch_tells(name):
    """Of an ordinary tensor and of its views."""
    t = VIEWS[name]
    (extent,) = extents_of(t)
    assert (extent.address, extent.shape) == (t.data_ptr(), tuple(t.shape))
    assert extent.strides == tuple(step * t.element_size() for step in t.stride())
    storage = t.untyped_storage()
    assert spans_of(t) == [("cpu", storage.data_ptr(), storage.data_ptr() + storage.nbytes())]


def freed(nbytes):
    t = torch.ones(4)
    t.untyped_storage().resize_(nbytes)
    return t


@in_fork
def test_freed_memory_is_no_place_and_must_not_be_read():
    """Of a tensor, of the values of a sparse one, of the scales of a quantized one."""
    warnings.simplefilter("ignore")
    sparse = torch.eye(3).to_sparse()
    sparse._values().untyped_storage().resize_(0)
    for t in (freed(0), freed(8), sparse):
        with pytest.raises(NotReadError, match="freed"):
            check_parts(t)
    assert [extents_of(t) for t in (freed(0), freed(8))] == [(), ()]


@pytest.mark.slow
@in_fork
def test_every_kind_can_be_asked():
    """Without an error, and elements lie within storages."""
    warnings.simplefilter("ignore")
    for name in gallery.KINDS:
        try:
            case = gallery.made(name)
        except (RuntimeError, ValueError):
            continue
        if isinstance(case, gallery.Case) and isinstance(case.tensor, torch.Tensor):
            spans = spans_of(case.tensor)
            for extent in extents_of(case.tensor):
                low, high = extent.bounds
                assert any(bottom <= low < high <= top for _, bottom, top in spans), name
    for t in many_kinds().values():
        extents_of(t)


def test_a_wrapper_of_a_transform_has_no_place():
    """It is of torch's own class."""
    seen = []
    torch.vmap(lambda row: (seen.append((extents_of(row), spans_of(row))), row)[1])(torch.ones(2, 3))
    assert seen == [((), [])]
