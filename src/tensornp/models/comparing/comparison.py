"""`WeightsComparison`: what differs between the weights of two models, by name, what moved most first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from statistics import median
from typing import Any

from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.lowlevel.quoted import quoted
from tensornp.core.lowlevel.units import counted
from tensornp.core.memory.footprint import extents_of
from tensornp.core.values.compare.compare import DENSE, Comparison
from tensornp.errors import BadRequestError, NoSuchWeightError
from tensornp.models.comparing.low_rank import share_of_change
from tensornp.models.comparing.states import STEP, by_quantity, quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.torch_ao import output_scheme
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import closest, shown_name
from tensornp.models.outline.fold import Row, folded
from tensornp.models.scan.frame import frame_of

_MAX_SVD_NBYTES = 64_000_000
"""Bytes of a difference, in float32, of which the directions are found unasked."""
_MAX_MATRICES, _MIN_SIZE = 8, 16
_TOLD_SHARE = 0.9
_MUCH_LESS = 0.8
"""The part of the median norm up to which the share of a weight's own norm is another one."""
_FLOATS = ("float", "bfloat", "complex")
_FIGURES = ("max_abs", "relative", "cosine_distance", "changed_fraction", "max_ulp", "verdict")


class WeightsComparison(Mapping[str, Comparison]):
    """What differs between two models: a mapping from name, in the first, to `Comparison`; what moved most first.

    Attributes
    ----------
    equal, same_bits : bool
        Whether all weights of both are there, and equal, or the same to the last bit.
    first, second : WeightsExplorer
        Both sides.
    missing, unexpected : tuple of str
        Names that only the first has, and those that only the second has.
    exempt : dict of str to str
        Why a weight that was not compared is no difference: it is a buffer that is not persistent, of which no state
        dict tells, or it has no values yet.
    renamed : dict of str to str
        The name in the second, where it is another one: without the `prefixes` of both they are the same.
    reshaped, retyped, retied : tuple of str
        Weights of another shape, of another dtype, and those that share their memory with others than before.
    requantized : dict of str to str
        By the weight of a module that quantizes what it gives, the scales and zero points by which it does so, where
        these are others in the second.
    failed : dict of str to str
        Why a weight could not be compared, which is then not equal.
    not_listed : tuple of str
        Why weights of either are not even listed, such as a file of several that cannot be read: not all is there.
    max_abs, relative, cosine_distance, changed_fraction, max_ulp, verdict, first_difference : dict
        The figures of `Comparison`, by name.
    same_memory : tuple of str
        Weights that are the same memory on both sides: what is written there changes both.
    moved : dict
        The norm of each difference over that of the first, or over the median norm of its kind (`floor_of`) where that
        is larger: what was zero has not moved infinitely. What was not compared, integers and the steps of optimizers,
        which count or index, are not in it.
    """

    def __init__(self, first: WeightsExplorer, second: WeightsExplorer, names: Matched, exempt: dict[str, str]) -> None:
        self.first, self.second = first, second
        self.missing, self.unexpected, self.prefixes = names.missing, names.unexpected, names.prefixes
        self.pairs, self.exempt = names.pairs, exempt
        self.renamed = {a: b for a, b in names.pairs.items() if a != b}
        self.retied = _retied(first, second, names.pairs)
        self.requantized = _requantized(first, second, names.pairs)
        self.failed: dict[str, str] = {}
        self._found: dict[str, Comparison] = {}

    def note(self, name: str, found: Comparison | str) -> None:
        """Take what was found, or why nothing was."""
        if isinstance(found, str):
            self.failed[name] = found
        else:
            self._found[name] = found

    @property
    def sources(self) -> tuple[str, str]:
        """What was compared: expressions, or paths."""
        return self.first.source, self.second.source

    @property
    def reshaped(self) -> tuple[str, ...]:
        """Weights of another shape."""
        return tuple(name for name, one in self._found.items() if one.shapes[0] != one.shapes[1])

    @property
    def retyped(self) -> tuple[str, ...]:
        """Weights of another dtype."""
        return tuple(name for name, one in self._found.items() if one.dtypes[0] != one.dtypes[1])

    @property
    def same_memory(self) -> tuple[str, ...]:
        """Weights that are the same memory on both sides."""
        return tuple(name for name, one in self._found.items() if one.note)

    @property
    def not_listed(self) -> tuple[str, ...]:
        """Why weights of either are not even listed."""
        first, second = self.first.not_listed, self.second.not_listed
        return (
            *(f"{'both' if one in second else 'the first'}: {one}" for one in first),
            *(f"the second: {one}" for one in second if one not in first),
        )

    @property
    def equal(self) -> bool:
        """Whether all weights of both are there, and equal."""
        is_whole = not (self.missing or self.unexpected or self.failed or self.not_listed or self.requantized)
        return is_whole and all(one.equal for one in self._found.values())

    @property
    def same_bits(self) -> bool:
        """Whether all weights of both are there, and the same to the last bit."""
        return self.equal and all(one.same_bits for one in self._found.values())

    def __getattr__(self, figure: str) -> Any:
        """Return a figure of all weights by name."""
        if figure in _FIGURES or figure == "first_difference":
            return {name: getattr(one, figure) for name, one in self.items()}
        raise AttributeError(f"'WeightsComparison' object has no attribute {figure!r}")

    def __getitem__(self, name: str) -> Comparison:
        if not isinstance(name, str):
            raise NoSuchWeightError(f"a comparison is taken by the name of a weight, not by {quoted(name)}")
        if name in self._found:
            return self._found[name]
        why = f": {self.failed[name]}" if name in self.failed else closest(name, self._found)
        raise NoSuchWeightError(f"there is no comparison of {shown_name(name)}{why}")

    @cached_property
    def _median_norms(self) -> dict[str, float]:
        """The median norm of weights, and that of each quantity of optimizers, of what is not zero in the first."""
        norms: dict[str, list[float]] = {}
        for name, one in self._found.items():
            if one.norm and self._is_measured(name) and math.isfinite(one.norm):
                norms.setdefault(self._quantity_of(name), []).append(one.norm)
        return {quantity: median(some) for quantity, some in norms.items()}

    def floor_of(self, name: str) -> float:
        """Return the median norm of what a weight is beside: all weights, or the states of its quantity."""
        return self._median_norms.get(self._quantity_of(name), 0.0)

    def is_floored(self, name: str) -> bool:
        """Return whether `moved` tells a share of the median norm that is far from that of a weight's own norm."""
        norm = self._found[name].norm
        is_far = bool(norm) and (norm or 0.0) < _MUCH_LESS * self.floor_of(name)
        return is_far and self.moved.get(name, 0.0) > 0

    @property
    def median_norm(self) -> float:
        """The median of the norms of the first's weights that are not zero; 0 where all are. States are none."""
        return self._median_norms.get("", 0.0)

    @cached_property
    def moved(self) -> dict[str, float]:
        """By how much each weight has moved beside the others."""
        sizes = {name: _moved(one, self.floor_of(name)) for name, one in self._found.items() if self._is_measured(name)}
        return {name: size for name, size in sizes.items() if size is not None}

    def _quantity_of(self, name: str) -> str:
        return quantity_of(self.first[name])

    def _is_measured(self, name: str) -> bool:
        """Return whether numbers measure, and neither count nor index."""
        return self._found[name].dtypes[0].startswith(_FLOATS) and self._quantity_of(name) != STEP

    def __iter__(self) -> Iterator[str]:
        # What moved alike stays in the order of the model.
        moved = self.moved
        orders = {name: _order(one, moved.get(name), self._quantity_of(name)) for name, one in self._found.items()}
        return iter(sorted(orders, key=orders.__getitem__))

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._found

    def changed(self) -> list[str]:
        """Return the names of what is not equal, what moved most first."""
        return [name for name in self if not self._found[name].equal]

    def folded(self) -> list[Row]:
        """Return what is not equal in rows, repeated layers as one, by that of their weights which comes first.

        Of the states of an optimizer, all of one quantity are one row, behind the weights.
        """
        return self.rows_of(self.changed())

    def folded_equal(self) -> list[Row]:
        """Return what is equal in such rows: those with the same bits, and then those with others."""
        equal = [name for name in self if self._found[name].equal]
        return [
            row
            for has_same_bits in (True, False)
            for row in self.rows_of([name for name in equal if self._found[name].same_bits is has_same_bits])
        ]

    def rows_of(self, names: Sequence[str]) -> list[Row]:
        """Return some of the names in rows, in which repeated layers are one, as are the states of one quantity."""
        order = {name: i for i, name in enumerate(names)}
        alone = [name for name in names if self._found[name].shapes[0] != self._found[name].shapes[1]]
        together = [self.first[name] for name in self._found if name in order and name not in alone]
        rows = [Row(name, (self.first[name],)) for name in alone]
        rows += folded(one for one in together if not quantity_of(one))
        rows += by_quantity(one for one in together if quantity_of(one))
        return sorted(rows, key=lambda row: min(order[one.name] for one in row.entries))

    def told(self) -> str:
        """Return the verdict on all weights in a few words: as its line and its table begin."""
        if not self._found:
            if self.failed:
                return "none could be compared"
            is_less = self.missing or self.unexpected or self.not_listed
            return "no name is in both" if is_less else "equal, without values in either"
        if self.equal:
            return "same bits" if self.same_bits else "equal"
        if self.changed():
            kinds = [[name for name in self if bool(self._quantity_of(name)) is is_state] for is_state in (False, True)]
            told = [
                f"{sum(not self._found[name].equal for name in names):,} of {counted(len(names), noun)}"
                for names, noun in zip(kinds, ("weight", "state"), strict=True)
                if names
            ]
            return f"{' and '.join(told)} {'differs' if len(self) == 1 else 'differ'}"
        return f"what {'could be compared' if self.failed else 'is in both'} is equal"

    @cached_property
    def low_rank(self) -> dict[str, float]:
        """The share of the change that lies in 8 directions, of a few matrices that moved most, where it is telling.

        Computed when it is asked for, and once: both weights are read whole for it.
        """
        told: dict[str, float] = {}
        for name in islice(filter(self._is_dense_change, self.changed()), _MAX_MATRICES):
            # Of what is not finite nothing is told, nor of what is gone or another one by now.
            with suppress(Exception):
                share = self.directions(name)
                if share >= _TOLD_SHARE:
                    told[name] = share
        return told

    def _is_dense_change(self, name: str) -> bool:
        """Return whether a matrix of a model, of a bounded size, has changed in no way that is told in a word."""
        one = self[name]
        is_matrix = len(one.shapes[0]) == 2 and one.shapes[0] == one.shapes[1] and min(one.shapes[0]) > _MIN_SIZE
        return (
            is_matrix
            and not self._quantity_of(name)
            and 4 * one.count <= _MAX_SVD_NBYTES
            and one.verdict.endswith(DENSE)
        )

    def directions(self, name: str, num_directions: int = 8) -> float:
        """Return the share of the change of one matrix that lies in so many directions, between 0 and 1.

        Of a merged LoRA of that rank it is nearly 1. By randomized SVD; reads both weights whole, and changes no random
        state.

        Raises
        ------
        NoSuchWeightError
            For a name that is not there.
        BadRequestError
            If the weight is no matrix, has another shape in the second, or has not changed.
        """
        found = self[name]
        if type(num_directions) is not int or num_directions < 1:
            raise BadRequestError(f"num_directions is a number from 1 on, not {quoted(num_directions)}")
        if len(found.shapes[0]) != 2 or found.shapes[0] != found.shapes[1]:
            raise BadRequestError(f"{shown_name(name)} is no matrix of one shape in both, and has no directions")
        first, second = (
            # Whoever looks shares nothing: that would end the storage's resizability.
            explorer[one].to_numpy(copy=True)
            for explorer, one in ((self.first, name), (self.second, self.pairs[name]))
        )
        share = share_of_change(first, second, num_directions)
        if share is None:
            raise BadRequestError(f"{shown_name(name)} has no finite change, and that has no directions")
        return share

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each weight; MissingLibraryError without pandas."""
        return frame_of(self, _FIGURES, ([getattr(one, figure) for figure in _FIGURES] for one in self.values()))

    def __repr__(self) -> str:
        said = [self.told()]
        for word in (
            "same_memory",
            "missing",
            "unexpected",
            "exempt",
            "reshaped",
            "retyped",
            "retied",
            "requantized",
            "failed",
            "not_listed",
        ):
            names = list(getattr(self, word))
            if names:
                said.append(
                    f"{len(names):,} {word.replace('_', ' ')} ({shown_name(names[0])}{', …' if len(names) > 1 else ''})"
                )
        worst = next(iter(self.changed()), None)
        if worst is not None:
            said.append(f"{shown_name(worst)}: {self._found[worst].verdict}")
        return f"WeightsComparison({'equal' if self.equal else 'not equal'}: {', '.join(said)})"


def _moved(found: Comparison, median_norm: float) -> float | None:
    """Return the norm of the difference over that of the first or the median, whichever is larger."""
    if found.norm is None or found.norm_of_difference is None:
        return None
    if not math.isfinite(found.norm):
        return found.relative
    return found.norm_of_difference / (max(found.norm, median_norm) or 1.0)


def _order(found: Comparison, moved: float | None, quantity: str) -> tuple[int, float]:
    """Return what puts weights of another shape first, then what moved most, then integers, and what is equal last.

    The states of optimizers come behind the weights.
    """
    if found.shapes[0] != found.shapes[1]:
        return 0, 0.0
    if found.only_finite_first or found.only_finite_second:
        return 1, -float(found.only_finite_first + found.only_finite_second)
    if found.equal:
        return 9, 0.0
    behind = 3 if quantity else 0
    if moved is None:
        return 3 + behind, 0.0
    return (4 if not found.num_changed else 2) + behind, -moved


def _retied(first: WeightsExplorer, second: WeightsExplorer, pairs: dict[str, str]) -> tuple[str, ...]:
    """Return the names in the first of weights that share their memory with others in the second."""
    # A file tells nothing of what was tied.
    live = {a: b for a, b in pairs.items() if _is_live(first[a]) and _is_live(second[b])}
    own, others = (_together({name: explorer[one] for name, one in names.items()}) for explorer, names in (
        (first, {a: a for a in live}), (second, live)
    ))  # fmt: skip
    return tuple(name for name in live if own[name] != others[name])


def _requantized(first: WeightsExplorer, second: WeightsExplorer, pairs: dict[str, str]) -> dict[str, str]:
    """Return by which scale and zero point modules quantize what they give, where that is another in the second."""
    schemes = {a: (output_scheme(first[a]), output_scheme(second[b])) for a, b in pairs.items() if _is_weight(a)}
    return {
        name: f"scale {one[0]:.6g} and zero point {one[1]} before, {other[0]:.6g} and {other[1]} now"
        for name, (one, other) in schemes.items()
        if one is not None and other is not None and one != other
    }


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"


def _is_live(entry: WeightEntry) -> bool:
    return isinstance(entry.source, TensorSource)


@unnoticed
def _together(entries: Mapping[str, WeightEntry]) -> dict[str, frozenset[str]]:
    """Return the names of the same elements of memory, by each of them."""
    groups: dict[object, list[str]] = {}
    for name, entry in entries.items():
        groups.setdefault(_elements_of(entry), []).append(name)
    return {name: frozenset(names) for names in groups.values() for name in names}


def _elements_of(entry: WeightEntry) -> object:
    """Return what is equal for two weights of the same elements."""
    extents = extents_of(entry.tensor) if not entry.problem else ()
    return (extents, entry.shape, entry.dtype) if extents else id(entry)
