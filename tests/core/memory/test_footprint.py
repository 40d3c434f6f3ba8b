"""Where the elements of ordinary tensors lie is read in a short way, and is what all facts tell."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import gallery
import torch
from child import in_fork
from odd import many_kinds

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.memory import footprint
from tensornp.core.tensor.info import inspect


def views() -> dict[str, torch.Tensor]:
    whole, numbers = torch.arange(24.0).view(4, 6), torch.ones(4, dtype=torch.complex64)
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    shrunk = torch.ones(4)
    shrunk.untyped_storage().resize_(8)
    return {
        "turned": whole.T, "part": whole[1:, 2:4], "expanded": whole[:, :1].expand(4, 9), "number": whole[2, 3],
        "conj": numbers.conj(), "neg": torch._neg_view(whole), "imag": numbers.conj().imag, "freed": freed,
        "shrunk": shrunk, "meta": torch.ones(2, device="meta"), "none": whole[:0],
    }  # fmt: skip


def kinds() -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all kinds of tensors; some cannot be made twice in a process, or beside others."""
    yield from {**views(), **many_kinds()}.items()
    for name in gallery.KINDS:
        try:
            case = gallery.made(name)
        except (RuntimeError, ValueError):
            continue
        if isinstance(case, gallery.Case) and isinstance(case.tensor, torch.Tensor):
            yield name, case.tensor


@in_fork
def test_the_short_way_tells_what_all_facts_tell():
    """Of every kind of tensor, and of views; what is not ordinary is not taken for it."""
    warnings.simplefilter("ignore")
    num_plain = 0
    for name, tensor in kinds():
        with outside_modes():
            found = footprint._extent_of_plain(tensor)
        if found is not None:
            num_plain += 1
            info = inspect(tensor)
            assert info.data_state == "available", name
            assert found == footprint.extent_of(info), name
    assert num_plain > 30, num_plain


def test_what_a_transform_wraps_is_not_ordinary():
    """Though it is of torch's own class."""
    seen = []
    torch.vmap(lambda row: (seen.append(footprint._extent_of_plain(row)), row)[1])(torch.ones(2, 3))
    assert seen == [None]
