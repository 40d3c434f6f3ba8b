"""Where the few elements lie that a card prints, and how to take them out of a dense tensor."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from tensornp.core.lowlevel.silence import silence_warnings
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
    if all(len(place) == size for place, size in zip(places, values.shape, strict=True)):
        return values.clone()
    bits = values.view(_BITS[values.dtype]) if values.dtype in _BITS else values
    few = bits[index_of(places, values.device)]
    return few if bits is values else few.view(values.dtype)


def index_of(places: Places, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Return one index tensor a dimension, which broadcast against each other."""
    return tuple(
        torch.tensor(place, dtype=torch.int64, device=device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    )


def num_reached(shape: Iterable[int], strides: Iterable[int]) -> int:
    """Return how many elements lie from the first to the last one, gaps included, by strides in elements from 0 on."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def is_in_order(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int = 1) -> bool:
    """Return whether elements lie in the order of their indices, without gaps; strides count as `itemsize` does."""
    expected = itemsize
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and step != expected:
            return 0 in shape
        expected *= size
    return True


silence_warnings(globals())
