"""Take the printed elements out of a dense tensor."""

from __future__ import annotations

import torch

from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor.form import BITS

MAX_NUMEL = 4_000_000
"""Elements that a display lays out at most, for kinds that cannot be indexed."""
Places = list[list[int]]
"""The wanted indices of each dimension."""


def indexed(values: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the elements at `places`, always in new memory."""
    if [*map(len, places)] == [*values.shape] and places == [*map(list, map(range, values.shape))]:
        return quietly(values.clone)
    if all(map(_is_run, places, values.shape)):
        # Of an index tensor, torch looks at every element.
        part = values[tuple([slice(place[0], place[-1] + 1) for place in places])]
        return quietly(part.clone, memory_format=torch.contiguous_format)
    # One index tensor for each dimension, which broadcast against each other.
    index = [
        torch.tensor(place, dtype=torch.int64, device=values.device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    ]
    # torch 2.7 cannot index float8 and most unsigned integers.
    bits = values.view(BITS[values.itemsize])
    return quietly(bits.__getitem__, tuple(index)).view(values.dtype)


def _is_run(place: list[int], size: int) -> bool:
    """Return whether these are all indices of a dimension, in order."""
    if not place or place[0] < 0 or place[-1] >= size or place[-1] - place[0] != len(place) - 1:
        return False
    return place == [*range(place[0], place[-1] + 1)]
