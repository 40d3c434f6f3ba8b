"""In how few directions the changes of the matrices of a comparison lie."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.compare.compare import DENSE, Comparison
from tensornp.errors import BadRequestError
from tensornp.models.comparing.low_rank import share_of_change
from tensornp.models.comparing.states import quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import shown_name

_MAX_SVD_NBYTES = 64_000_000
"""Bytes of a difference, in float32, of which the directions are found unasked."""
_MAX_MATRICES, _MIN_SIZE = 8, 16
_TOLD_SHARE = 0.9


def directions_of(found: Comparison, first: WeightEntry, second: WeightEntry, num_directions: int = 8) -> float:
    """Return the share of the change of one matrix that lies in so many directions, between 0 and 1."""
    if type(num_directions) is not int or num_directions < 1:
        raise BadRequestError(f"num_directions is a number from 1 on, not {quoted(num_directions)}")
    if len(found._shapes[0]) != 2 or found._shapes[0] != found._shapes[1]:
        raise BadRequestError(f"{shown_name(first.name)} is no matrix of one shape in both, and has no directions")
    # Whoever looks shares nothing: that would end the storage's resizability.
    share = share_of_change(first.to_numpy(copy=True), second.to_numpy(copy=True), num_directions)
    if share is None:
        raise BadRequestError(f"{shown_name(first.name)} has no finite change, and that has no directions")
    return share


def low_rank_of(changed: Mapping[str, tuple[Comparison, WeightEntry, WeightEntry]]) -> dict[str, float]:
    """Return the share of the change that lies in 8 directions, of the first few matrices, where it is telling."""
    told: dict[str, float] = {}
    dense = (name for name, (found, first, _) in changed.items() if _is_dense_change(found, first))
    for name in islice(dense, _MAX_MATRICES):
        # Of what is not finite nothing is told, nor of what is gone or another one by now.
        with suppress(Exception):
            share = directions_of(*changed[name])
            if share >= _TOLD_SHARE:
                told[name] = share
    return told


def _is_dense_change(found: Comparison, first: WeightEntry) -> bool:
    """Return whether a matrix of a model, of a bounded size, has changed in no way that is told in a word."""
    shapes = found._shapes
    is_matrix = len(shapes[0]) == 2 and shapes[0] == shapes[1] and min(shapes[0]) > _MIN_SIZE
    is_small = 4 * found.count <= _MAX_SVD_NBYTES
    return is_matrix and not quantity_of(first) and is_small and found.verdict.endswith(DENSE)
