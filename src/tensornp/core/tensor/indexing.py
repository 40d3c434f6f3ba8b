"""Take the printed elements out of a dense tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor import dtypes

MAX_NUMEL = 4_000_000
"""Elements that are read at most, where those that are printed cannot be read alone."""
Places = list[list[int]]
"""The indices that are wanted of each dimension."""


_BITS = {
    getattr(torch, name): getattr(torch, facts.bits or name.removeprefix("u"))
    for name, facts in dtypes.KNOWN.items()
    if name.startswith(("uint", "float8")) and hasattr(torch, name)
}
"""As what elements are indexed, where not every torch can do so in their own dtype (uint16: since 2.7)."""


def indexed(values: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the elements at `places`, always in new memory."""
    # As `are_all`, without a call: a card counts them.
    if [*map(len, places)] == [*values.shape] and places == [*map(list, map(range, values.shape))]:
        return quietly(values.clone)
    if all(map(_is_run, places, values.shape)):
        # Of an index tensor, torch looks at every element.
        part = values[tuple([slice(place[0], place[-1] + 1) for place in places])]
        return quietly(part.clone, memory_format=torch.contiguous_format)
    bits = values.view(_BITS[values.dtype]) if values.dtype in _BITS else values
    few = quietly(bits.__getitem__, index_of(places, values.device))
    return few if bits is values else few.view(values.dtype)


def are_all(places: Places, shape: Sequence[int]) -> bool:
    """Return whether these are all indices of each dimension, in order."""
    return [*map(len, places)] == [*shape] and places == [*map(list, map(range, shape))]


def _is_run(place: list[int], size: int) -> bool:
    """Return whether these are all indices of a dimension, in order."""
    if not place or place[0] < 0 or place[-1] >= size or place[-1] - place[0] != len(place) - 1:
        return False
    return place == [*range(place[0], place[-1] + 1)]


def index_of(places: Places, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Return one index tensor a dimension, which broadcast against each other."""
    return tuple(
        torch.tensor(place, dtype=torch.int64, device=device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    )
