"""Arrays, tensors and statistics of bits from files; listing imports none of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.sources import Source
from tensornp.models.reading.take import Array

if TYPE_CHECKING:
    from tensornp.core.values.stats.compute import Tally, Tasks
    from tensornp.core.values.stats.record import TensorStats


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over native elements, which share memory."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


@outside_modes
def array_of(whole: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return native elements of dtype `name` as an array over their own memory."""
    if not whole.ndim and KNOWN[name].values_per_element > 1:
        # One element is several values.
        whole = whole.reshape(1)
    if dtype is None and whole.dtype.name == name:
        whole.flags.writeable = writeable
        return whole
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made


def tasks_of(source: Source) -> Tasks:
    """Return the tasks that make the statistics."""
    from tensornp.core.values.stats.compute import Tasks

    return Tasks(source, "auto", in_depth=True)


@outside_modes
def tally_of(source: Source, number: int) -> Tally:
    """Return the result of one task."""
    tasks = tasks_of(source)
    return tasks.tally(next(islice(tasks, number, None)))


@np.errstate(all="ignore")
def put_together(source: Source, tallies: Iterable[Tally]) -> TensorStats:
    """Return the statistics of all tasks."""
    return tasks_of(source).result(tallies)


@outside_modes
def stats_of(source: Source, num_threads: int | None) -> TensorStats:
    """Return the statistics of all values, which are read block by block."""
    from tensornp.core.values.stats.compute import scan_source

    return scan_source(source, num_threads=num_threads, in_depth=True)
