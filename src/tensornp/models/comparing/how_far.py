"""How far each weight has moved beside the others, and the order that follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from statistics import median

from tensornp.core.values.compare.compare import Comparison
from tensornp.models.comparing.states import STEP

_MUCH_LESS = 0.8
"""The part of the median norm up to which the share of a weight's own norm is another one."""
_FLOATS = ("float", "bfloat", "complex")


class HowFar:
    """How far weights have moved, by name; `quantities` tells what a state is called by its optimizer."""

    def __init__(self, found: Mapping[str, Comparison], quantities: Mapping[str, str]) -> None:
        self._found, self._quantities = found, quantities

    @cached_property
    def median_norms(self) -> dict[str, float]:
        """The median norm of weights, and that of each quantity of optimizers, of what is not zero in the first."""
        norms: dict[str, list[float]] = {}
        for name, one in self._found.items():
            if one._norm and self._is_measured(name) and math.isfinite(one._norm):
                norms.setdefault(self._quantities[name], []).append(one._norm)
        return {quantity: median(some) for quantity, some in norms.items()}

    def floor_of(self, name: str) -> float:
        """Return the median norm of what a weight is beside: all weights, or the states of its quantity."""
        return self.median_norms.get(self._quantities[name], 0.0)

    def is_floored(self, name: str) -> bool:
        """Return whether `moved` tells a share of the median norm that is far from that of a weight's own norm."""
        norm = self._found[name]._norm
        is_far = bool(norm) and (norm or 0.0) < _MUCH_LESS * self.floor_of(name)
        return is_far and self.moved.get(name, 0.0) > 0

    @cached_property
    def has_floored(self) -> bool:
        """Whether there is one of these."""
        return any(map(self.is_floored, self._found))

    @cached_property
    def moved(self) -> dict[str, float]:
        """By how much each weight has moved beside the others; what moved where all were 0 is beside nothing."""
        return {name: size for name, size in self._sizes.items() if self._has_norm(name) or not size}

    @cached_property
    def _sizes(self) -> dict[str, float]:
        """The same, and of what is beside nothing the norm of its difference, by which it is sorted."""
        sizes = {name: _moved(one, self.floor_of(name)) for name, one in self._found.items() if self._is_measured(name)}
        return {name: size for name, size in sizes.items() if size is not None}

    def _has_norm(self, name: str) -> bool:
        """Return whether a weight was not 0, or not all that it is beside."""
        return bool(self._found[name]._norm or self.floor_of(name))

    def _is_measured(self, name: str) -> bool:
        """Return whether numbers measure, and neither count nor index."""
        return self._found[name]._dtypes[0].startswith(_FLOATS) and self._quantities[name] != STEP

    def ordered(self) -> list[str]:
        """Return the names, what moved most first; what moved alike stays in the order of the model."""
        sizes = self._sizes
        orders = {name: _order(one, sizes.get(name), self._quantities[name]) for name, one in self._found.items()}
        return sorted(orders, key=orders.__getitem__)


def _moved(found: Comparison, median_norm: float) -> float | None:
    """Return the norm of the difference over that of the first or the median, whichever is larger."""
    if found._norm is None or found._norm_of_difference is None:
        return None
    if not math.isfinite(found._norm):
        return found.relative
    return found._norm_of_difference / (max(found._norm, median_norm) or 1.0)


def _order(found: Comparison, moved: float | None, quantity: str) -> tuple[int, float]:
    """Return what puts weights of another shape first, then what moved most, then integers, and what is equal last.

    The states of optimizers come behind the weights.
    """
    if found._shapes[0] != found._shapes[1]:
        return 0, 0.0
    if found._only_finite_first or found._only_finite_second:
        return 1, -float(found._only_finite_first + found._only_finite_second)
    if found.equal:
        return 9, 0.0
    behind = 3 if quantity else 0
    if moved is None:
        return 3 + behind, 0.0
    return (4 if not found._num_changed else 2) + behind, -moved
