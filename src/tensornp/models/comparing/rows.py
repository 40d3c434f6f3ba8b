"""Put the weights of a comparison in rows, and find changes of low rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.compare.compare import Comparison
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import shown_name
from tensornp.models.optimizers import GROUPS, STATE
from tensornp.models.outline.fold import Row, folded

STEP = "step"
"""The quantity that counts."""
_MIN_TOGETHER = 3
"""Fewer states of a quantity are seen one by one."""
_NUM_POWERS, _MORE = 2, 4
_FLOATS = ("float32", "float64", "complex64", "complex128")


def quantity_of(entry: WeightEntry) -> str:
    """Return the optimizer's name of a state or a group option, ``""`` for a weight."""
    keys = entry.name.split(".")
    if not (entry.kind == "state" and STATE in keys) and GROUPS not in keys:
        return ""
    return next((key for key in reversed(keys) if not key.isdecimal()), "")


def parameter_of(entry: WeightEntry) -> str:
    """Return "of 'weight'" for a state without its parameter in the name, or ``""``."""
    if len(entry._saved_as or ()) < 2 or not quantity_of(entry):
        return ""
    return entry.note.partition(", ")[0]


def has_other_shape(found: Comparison) -> bool:
    """Return whether a weight has another shape on the other side."""
    return found._shapes[0] != found._shapes[1]


def rows_of(names: Sequence[str], found: Mapping[str, Comparison], first: Mapping[str, WeightEntry]) -> list[Row]:
    """Return some names in rows, sorted by the first weight of each row.

    A row has repeated layers of equal shapes and dtypes on both sides, or the states of one quantity.
    """
    order = {name: i for i, name in enumerate(names)}
    own: list[Row] = []
    weights: dict[object, list[WeightEntry]] = {}
    states: dict[tuple[str, str], list[WeightEntry]] = {}
    for name in names:
        entry, one = first[name], found[name]
        if has_other_shape(one):
            own.append(Row(name, (entry,)))
        elif quantity := quantity_of(entry):
            keys = name.split(".")
            root = ".".join(keys[: keys.index(GROUPS if GROUPS in keys else STATE) + 1])
            states.setdefault((root, quantity), []).append(entry)
        else:
            weights.setdefault(one._dtypes, []).append(entry)
    for some in weights.values():
        rows = folded(one._with_(tied_to=(), related=()) for one in some)
        own += [Row(row.pattern, tuple(first[one.name] for one in row.entries)) for row in rows]
    for (root, quantity), some in states.items():
        is_few = len(some) < _MIN_TOGETHER
        own += [Row(one.name, (one,)) for one in some] if is_few else [Row(f"{root}.*.{quantity}", tuple(some))]
    return sorted(own, key=lambda row: min(order[one.name] for one in row.entries))


@outside_modes
def directions_of(first: WeightEntry, second: WeightEntry, num_directions: int = 8) -> float:
    """Return the part of a matrix's change in `num_directions` directions, 0 to 1.

    The method is a randomized SVD (Halko, Martinsson, Tropp 2011) of the finite elements.
    """
    if type(num_directions) is not int or num_directions < 1:
        raise BadRequestError(f"num_directions must be a number from 1 on, got {quoted(num_directions)}")
    if first.shape is None or len(first.shape) != 2 or first.shape != second.shape:
        raise BadRequestError(f"{shown_name(first.name)} is no matrix of one shape in both, and has no directions")
    # A view would end the resizability of the storage.
    before, after = (one.to_numpy(copy=True) for one in (first, second))
    before, after = (one if one.dtype.name in _FLOATS else one.astype(np.float64) for one in (before, after))
    with np.errstate(all="ignore"):
        difference = np.subtract(after, before)
    difference[~np.isfinite(difference)] = 0
    largest = np.abs(difference).max(initial=0.0)
    if not largest:
        raise BadRequestError(f"{shown_name(first.name)} has no finite change, and that has no directions")
    matrix = torch.from_numpy(difference / largest)
    wanted = min(num_directions, *matrix.shape)
    width = min(2 * wanted + _MORE, *matrix.shape)
    # A generator of its own, so that no other random state moves.
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(matrix.shape[1], width, generator=generator, dtype=torch.float64).to(matrix.dtype)
    basis, _ = torch.linalg.qr(matrix @ probe)
    for _ in range(_NUM_POWERS):
        basis, _ = torch.linalg.qr(matrix @ (matrix.mH @ basis))
    sizes = torch.linalg.svdvals(basis.mH @ matrix)
    total = float(matrix.abs().square_().sum(dtype=torch.float64).item())
    return min(float(sizes[:wanted].double().square().sum().item()) / total, 1.0)
