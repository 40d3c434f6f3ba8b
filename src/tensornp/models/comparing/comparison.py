"""`WeightsComparison`: differences of the weights of two models, largest change first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.stats.record import shards_told
from tensornp.errors import BadRequestError, NoSuchWeightError
from tensornp.models.comparing.rows import STEP, differing_values, has_other_shape, quantity_of, rows_of, sides_of
from tensornp.models.entries.entry import NotOfModule
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import closest, shown_name
from tensornp.models.outline.fold import Row
from tensornp.models.scan.run import gradients_of
from tensornp.models.scan.table import frame_of

_FIGURES = ("max_abs", "relative", "cosine_distance", "changed_fraction", "verdict")
_LISTS = {
    "_same_memory": "same memory", "missing": "missing", "unexpected": "unexpected", "_exempt": "exempt",
    "reshaped": "reshaped", "retyped": "retyped", "failed": "failed", "_not_listed": "not listed",
    "_beside": "values beside the weights",
}  # fmt: skip
_MOST_TOLD = 3
_FLOATS = ("float", "bfloat", "complex")
_WIDE = ("float32", "float64", "complex64", "complex128")
_MORE = 4
"""Directions that the randomized SVD takes beyond twice the number asked for."""


class WeightsComparison(Mapping[str, Comparison]):
    """A mapping from the names of weights in the first to `Comparison`, largest change first.

    Attributes
    ----------
    equal, same_bits : bool
        Whether all weights of both are there, and equal, or the same to the last bit.
    missing, unexpected : tuple of str
        Names that only the first has, and those that only the second has. A weight that need not be in both is in
        neither, such as a buffer that is not persistent.
    reshaped, retyped : tuple of str
        Weights of another shape, and of another dtype.
    failed : dict of str to str
        Why a weight could not be compared, which is then not equal.
    max_abs, relative, cosine_distance, changed_fraction, verdict, first_difference : dict
        The figures of `Comparison`, by name.
    moved : dict
        The norm of each difference over max(norm before, median norm), for floats. The median is that of all weights,
        or of all states of one quantity: what was zero has not moved infinitely.
    """

    def __init__(self, first: WeightsExplorer, second: WeightsExplorer, names: Matched, exempt: dict[str, str]) -> None:
        self._first, self._second = first, second
        self.missing, self.unexpected, self._prefixes = names.missing, names.unexpected, names.prefixes
        self._pairs, self._exempt = names.pairs, exempt
        self._renamed = {a: b for a, b in names.pairs.items() if a != b}
        self._names_of_second = {b: a for a, b in self._renamed.items()}
        self._beside = differing_values(first, second, names.prefixes)
        self._sources = first.source, second.source
        self._sides = sides_of(first, second)
        own, others = _hidden(first, second), _hidden(second, first)
        self._not_listed = (
            *(f"{'both' if one in others else self._sides[0]}: {one}" for one in own),
            *(f"{self._sides[1]}: {one}" for one in others if one not in own),
        )
        self.failed: dict[str, str] = {}
        self._found: dict[str, Comparison] = {}

    @property
    def reshaped(self) -> tuple[str, ...]:
        """Weights of another shape."""
        return tuple(name for name, one in self._found.items() if has_other_shape(one))

    @property
    def retyped(self) -> tuple[str, ...]:
        """Weights of another dtype."""
        return tuple(name for name, one in self._found.items() if one._dtypes[0] != one._dtypes[1])

    @property
    def _same_memory(self) -> tuple[str, ...]:
        return tuple(name for name, one in self._found.items() if one._note)

    @property
    def equal(self) -> bool:
        """Return whether all weights and plain values of both sides are equal."""
        is_partial = self.missing or self.unexpected or self.failed or self._not_listed or self._beside
        return not is_partial and all(one.equal for one in self._found.values())

    @property
    def same_bits(self) -> bool:
        """Return whether all weights of both sides have the same bits."""
        return self.equal and all(one.same_bits for one in self._found.values())

    def __getattr__(self, figure: str) -> Any:
        if figure in _FIGURES or figure == "first_difference":
            return {name: getattr(one, figure) for name, one in self.items()}
        raise AttributeError(f"'WeightsComparison' object has no attribute {figure!r}")

    def __getitem__(self, name: str) -> Comparison:
        if not isinstance(name, str):
            raise NoSuchWeightError(f"name must be the name of a weight, got {quoted(name)}; list(...) shows the names")
        own = self._called_here(name)
        if own in self._found:
            return self._found[own]
        why = self.failed.get(own) or self._exempt.get(own)
        raise NoSuchWeightError(
            f"there is no comparison of {shown_name(name)}{f': {why}' if why else closest(own, self._found)}"
        )

    def _called_here(self, name: str) -> str:
        return name if name in self._pairs else self._names_of_second.get(name, name)

    @cached_property
    def _quantities(self) -> dict[str, str]:
        return {name: quantity_of(self._first[name]) for name in self._found}

    def _is_measured(self, name: str) -> bool:
        return self._found[name]._dtypes[0].startswith(_FLOATS) and self._quantities[name] != STEP

    @cached_property
    def _median_norms(self) -> dict[str, float]:
        norms: dict[str, list[float]] = {}
        for name, one in self._found.items():
            if one._norm and self._is_measured(name) and math.isfinite(one._norm):
                norms.setdefault(self._quantities[name], []).append(one._norm)
        return {quantity: median(some) for quantity, some in norms.items()}

    @cached_property
    def moved(self) -> dict[str, float]:
        """Return the relative change of each weight, except from zero if no other norm is known."""
        moved: dict[str, float] = {}
        for name, one in self._found.items():
            norm, change = one._norm, one._norm_of_difference
            if norm is None or change is None or not self._is_measured(name):
                continue
            base = max(norm, self._median_norms.get(self._quantities[name], 0.0))
            size = one.relative if norm or not change else None
            if base and math.isfinite(norm):
                size = change / base
            if size is not None:
                moved[name] = size
        return moved

    def _place(self, name: str) -> tuple[int, float]:
        """Return the sort key: other shapes, not finite, weights, states, equal ones."""
        one, size = self._found[name], self.moved.get(name)
        if has_other_shape(one):
            return 0, 0.0
        if one._is_odd:
            return 1, -float(one._only_finite_first + one._only_finite_second)
        if one.equal:
            return 9, 0.0
        behind = 3 if self._quantities[name] else 0
        if size is None:
            return 3 + behind, 0.0
        return (2 if one._num_changed else 4) + behind, -size

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    @cached_property
    def _order(self) -> list[str]:
        return sorted(self._found, key=self._place)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._called_here(name) in self._found

    def changed(self) -> list[str]:
        """Return the names of weights that differ, the largest change first."""
        return [name for name in self if not self._found[name].equal]

    def _rows_of(self, names: Sequence[str]) -> list[Row]:
        return rows_of(names, self._found, self._first)

    def _told(self) -> str:
        part = shards_told(one.scope for one in self._found.values())
        scope = f" ({part})" if part else ""
        if not self.changed():
            equal = "same bits" if all(one.same_bits for one in self._found.values()) else "equal"
            partly = "what was compared is equal" if self._found else "nothing could be compared"
            return (equal if self.equal else partly) + scope
        told = []
        for noun in ("weight", "state"):
            names = [name for name in self if bool(self._quantities[name]) is (noun == "state")]
            if names:
                num = sum(not self._found[name].equal for name in names)
                told.append(f"{num:,} of {counted(len(names), noun)}")
        return f"{' and '.join(told)} {'differs' if len(self) == 1 else 'differ'}{scope}"

    @outside_modes
    def directions(self, name: str, num_directions: int = 8) -> float:
        """Return the part of a matrix's change in `num_directions` directions, 0 to 1.

        A merged LoRA of that rank has nearly 1. The method is a randomized SVD. It reads both weights completely, and
        changes no random state.

        Raises
        ------
        NoSuchWeightError
            For a name that is not there.
        BadRequestError
            If the weight is no matrix, has another shape in the second, or has not changed.
        """
        self[name]
        own = self._called_here(name)
        first, second = self._first[own], self._second[self._pairs[own]]
        if type(num_directions) is not int or num_directions < 1:
            raise BadRequestError(f"num_directions must be a number from 1 on, got {quoted(num_directions)}")
        if first.shape is None or len(first.shape) != 2 or first.shape != second.shape:
            raise BadRequestError(f"{shown_name(first.name)} is no matrix of one shape in both, and has no directions")
        # A view would end the resizability of the storage.
        before, after = (one.to_numpy(copy=True) for one in (first, second))
        before, after = (one if one.dtype.name in _WIDE else one.astype(np.float64) for one in (before, after))
        with np.errstate(all="ignore"):
            difference = np.subtract(after, before)
        difference[~np.isfinite(difference)] = 0
        largest = np.abs(difference).max(initial=0.0)
        if not largest:
            raise BadRequestError(f"{shown_name(first.name)} has no finite change, and that has no directions")
        matrix = torch.from_numpy(difference / largest)
        wanted = min(num_directions, *matrix.shape)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            _, sizes, _ = torch.svd_lowrank(matrix, min(2 * wanted + _MORE, *matrix.shape))
        total = float(matrix.abs().square_().sum(dtype=torch.float64))
        return min(float(sizes[:wanted].double().square().sum()) / total, 1.0)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each weight; MissingLibraryError without pandas."""
        return frame_of(self, _FIGURES, ([getattr(one, figure) for figure in _FIGURES] for one in self.values()))

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        # First: what shows a failed assert cuts the rest.
        said = [self._told()]
        for name in self.changed()[:_MOST_TOLD]:
            found, moved = self._found[name], self.moved.get(name)
            told = [found.verdict, f"max_abs {found.max_abs:.3g}" if found.max_abs else ""]
            told.append(f"moved {100 * moved:.3g}%" if moved else "")
            said.append(f"{shown_name(name)} ({', '.join(filter(None, told))})")
        for attribute, word in _LISTS.items():
            names = list(getattr(self, attribute))
            if names:
                said.append(f"{len(names):,} {word} ({shown_name(names[0])}{', …' if len(names) > 1 else ''})")
        return f"WeightsComparison({'equal' if self.equal else 'not equal'}: {', '.join(said)})"


def _hidden(own: WeightsExplorer, other: WeightsExplorer) -> list[str]:
    return [one for one in own.not_listed if not (other.is_of_module and isinstance(one, NotOfModule))]


@outside_modes
def why_unmoved(found: WeightsComparison) -> dict[str, str]:
    """Return a fact on each parameter that did not move: "frozen", "no .grad", "zero .grad".

    "no .grad" is said only if another parameter has one now: optimizers set them to None between two steps.
    """
    side = found._second if found._second.is_of_module else found._first
    names = {name: found._pairs[name] if side is found._second else name for name in found}
    parameters = {name: side[own] for name, own in names.items() if side[own].kind == "parameter"}
    trained = {name: one for name, one in parameters.items() if one._is_trained and is_of_torch(one.tensor)}
    unmoved = [name for name in parameters if found[name].equal and not found[name]._note]
    unguarded = Unguarded()
    gradients = gradients_of((trained[name] for name in unmoved if name in trained), unguarded)
    has_any = any(unguarded.grad_of(one.tensor) is not None for one in trained.values())
    why = {name: "frozen" for name in unmoved if parameters[name]._is_trained is False}
    for name in unmoved:
        gradient = gradients.get(parameters[name].name)
        if gradient is not None and gradient.norm is not None:
            why[name] = f"non-zero .grad (norm {gradient.norm:.3g})" if gradient.norm else "zero .grad"
        elif name in trained and has_any and gradient is None and not unguarded.left_out:
            why[name] = "no .grad"
    return why
