"""`WeightsComparison`: what differs between the weights of two models, by name, what moved most first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.scopes import shards_told
from tensornp.errors import NoSuchWeightError
from tensornp.models.comparing.beside import beside, not_compared
from tensornp.models.comparing.directions import directions_of, low_rank_of
from tensornp.models.comparing.how_far import HowFar
from tensornp.models.comparing.one_sided import sides_of
from tensornp.models.comparing.retied import retied
from tensornp.models.comparing.rows import all_rows, has_other_shape, rows_of
from tensornp.models.comparing.states import quantity_of
from tensornp.models.comparing.tied import tied_names
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.not_listed import NotOfModule, NotSaved
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.names.matching import Matched
from tensornp.models.names.quoted import closest, shown_name
from tensornp.models.outline.fold import Row
from tensornp.models.scan.frame import frame_of

_SIDES = ("_only_finite_first", "_only_finite_second")
_FIGURES = ("max_abs", "relative", "cosine_distance", "changed_fraction", "max_ulp", "verdict")
_MOST_TOLD = 3
"""Weights that a failed assert tells of."""


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
    tied : dict of str to str
        The further names of a weight that has several on either side, each with the first of them.
    beside : dict of str to str
        By its name, a number, a text or None that both containers hold beside their weights, where it is another in
        the second: "2 → 1". What groups of optimizers say is not compared, nor are sets.
    not_compared : dict of str to str
        By its name, why anything else beside the weights was not compared: it is of a class that is not looked into,
        or only one of both has it. That makes them no less equal.
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
        is larger: what was zero has not moved infinitely. What was not compared, what moved where all of its kind was
        zero, integers and the steps of optimizers, which count or index, are not in it.
    """

    def __init__(self, first: WeightsExplorer, second: WeightsExplorer, names: Matched, exempt: dict[str, str]) -> None:
        self._first, self._second = first, second
        self.missing, self.unexpected, self._prefixes = names.missing, names.unexpected, names.prefixes
        self._pairs, self._exempt = names.pairs, exempt
        self._renamed = {a: b for a, b in names.pairs.items() if a != b}
        self._retied = retied(first, second, names.pairs)
        self._tied = {a: b for a, b in tied_names(first, second, names.pairs).items() if a not in self._retied}
        self._beside = beside(first, second, names.prefixes)
        self._not_compared = not_compared(first, second, names.prefixes)
        self.failed: dict[str, str] = {}
        self._found: dict[str, Comparison] = {}

    def _note(self, name: str, found: Comparison | str) -> None:
        """Take what was found, or why nothing was."""
        if isinstance(found, str):
            self.failed[name] = found
        else:
            self._found[name] = found

    @property
    def _sources(self) -> tuple[str, str]:
        """What was compared: expressions, or paths."""
        return self._first.source, self._second.source

    @property
    def _sides(self) -> tuple[str, str]:
        """What the two are called in sentences: as they were given, or "the first" and "the second"."""
        return sides_of(self._first, self._second)

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
        """Weights that are the same memory on both sides."""
        return tuple(name for name, one in self._found.items() if one._note)

    @property
    def _not_listed(self) -> tuple[str, ...]:
        """Why weights of either are not even listed; a state dict lacks nothing that a module has not registered."""
        first, second = _hidden(self._first, self._second), _hidden(self._second, self._first)
        return (
            *(f"{'both' if one in second else self._sides[0]}: {one}" for one in first),
            *(f"{self._sides[1]}: {one}" for one in second if one not in first),
        )

    @property
    def equal(self) -> bool:
        """Whether all weights of both are there, and equal, as is what both hold `beside` them."""
        is_whole = not (self.missing or self.unexpected or self.failed or self._not_listed or self._beside)
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
        own = self._called_here(name)
        if own in self._found:
            return self._found[own]
        raise NoSuchWeightError(f"there is no comparison of {shown_name(name)}{self._why_not(own)}")

    def _why_not(self, name: str) -> str:
        if name in self.failed:
            return f": {self.failed[name]}"
        if name in self._exempt:
            return f": it is {self._exempt[name]}"
        for names, side in zip((self.missing, self.unexpected), self._sides, strict=True):
            if name in names:
                return f": it is only in {side}"
        return closest(name, self._found)

    def _called_here(self, name: str) -> str:
        """Return the name in the first of what is called so there, in the second, or without the `prefixes`."""
        return name if name in self._pairs else self._others.get(name, name)

    def _other_names(self, name: str) -> tuple[str, ...]:
        """Return what else finds a weight: its name in the second, and what it is without the `prefixes`."""
        second, prefix = self._pairs[name], self._prefixes[0]
        short = name.removeprefix(prefix)
        return tuple(one for one in dict.fromkeys((second, short)) if one != name)

    @cached_property
    def _others(self) -> dict[str, str]:
        return {other: name for name in reversed(self._pairs) for other in self._other_names(name)}

    @cached_property
    def _how_far(self) -> HowFar:
        return HowFar(self._found, {name: quantity_of(self._first[name]) for name in self._found})

    def _floor_of(self, name: str) -> float:
        """Return the median norm of what a weight is beside: all weights, or the states of its quantity."""
        return self._how_far.floor_of(name)

    def _is_floored(self, name: str) -> bool:
        """Return whether `moved` tells a share of the median norm that is far from that of a weight's own norm."""
        return self._how_far.is_floored(name)

    @property
    def _has_floored(self) -> bool:
        """Whether there is one of these."""
        return self._how_far.has_floored

    @property
    def _median_norm(self) -> float:
        """The median of the norms of the first's weights that are not zero; 0 where all are. States are none."""
        return self._how_far.median_norms.get("", 0.0)

    @property
    def moved(self) -> dict[str, float]:
        """By how much each weight has moved beside the others."""
        return self._how_far.moved

    def __iter__(self) -> Iterator[str]:
        return iter(self._how_far.ordered())

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._called_here(name) in self._found

    def changed(self) -> list[str]:
        """Return the names of what is not equal, what moved most first."""
        return [name for name in self if not self._found[name].equal]

    def _folded(self) -> list[Row]:
        """Return what is not equal in rows, repeated layers as one, by that of their weights which comes first.

        Of the states of an optimizer, all of one quantity are one row, behind the weights.
        """
        return self._rows_of(self.changed())

    def _folded_equal(self) -> list[Row]:
        """Return what is equal in such rows: those with the same bits, and then those with others."""
        equal = [name for name in self if self._found[name].equal]
        return [
            row
            for has_same_bits in (True, False)
            for row in self._rows_of([name for name in equal if self._found[name].same_bits is has_same_bits])
        ]

    def _rows_of(self, names: Sequence[str]) -> list[Row]:
        """Return some of the names in rows, in which repeated layers are one, as are the states of one quantity."""
        return rows_of(names, self._rows, self._found, self._first)

    @cached_property
    def _rows(self) -> list[Row]:
        """All weights of one shape in rows, states aside."""
        own = (self._first[name] for name, one in self._found.items() if not has_other_shape(one))
        return all_rows(one for one in own if not quantity_of(one))

    def _told(self) -> str:
        """Return the verdict on all weights in a few words, and of which part: as its line and its table begin."""
        part = shards_told(one.scope for one in self._found.values())
        return self._verdict() + (f" ({part})" if part else "")

    def _verdict(self) -> str:
        if not self._found:
            if self.failed:
                return "none could be compared"
            is_less = self.missing or self.unexpected or self._not_listed
            return "no name is in both" if is_less else "equal, without values in either"
        if self.equal:
            # The parameters that an optimizer steps are the model's.
            of_what = " in its states" if all(quantity_of(self._first[name]) for name in self) else ""
            return ("same bits" if self.same_bits else "equal") + of_what
        if self.changed():
            states = {name for name in self if quantity_of(self._first[name])}
            every = [name for name in self if name not in self._tied]
            kinds = [[name for name in every if (name in states) is is_state] for is_state in (False, True)]
            told = [
                f"{sum(not self._found[name].equal for name in names):,} of {counted(len(names), noun)}"
                for names, noun in zip(kinds, ("weight", "state"), strict=True)
                if names
            ]
            num_tied = sum(name in self._tied for name in self)
            besides = f" ({counted(num_tied, 'more name')} tied to them)" if num_tied else ""
            return f"{' and '.join(told)} {'differs' if len(self) == 1 else 'differ'}{besides}"
        if self._beside and not (self.missing or self.unexpected or self.failed or self._not_listed):
            return f"weights: {'same bits' if all(one.same_bits for one in self._found.values()) else 'equal'}"
        if self._is_all_that_is_listed:
            return "equal in what was listed"
        return f"what {'could be compared' if self.failed else 'is in both'} is equal"

    @property
    def _is_all_that_is_listed(self) -> bool:
        """Whether nothing but what is not listed keeps the two from being equal."""
        is_less = self.missing or self.unexpected or self.failed or self._beside
        return bool(self._found and self._not_listed) and not (is_less or self.changed())

    @cached_property
    def _low_rank(self) -> dict[str, float]:
        """The share of the change that lies in 8 directions, of a few matrices that moved most, where it is telling.

        Computed when it is asked for, and once: both weights are read whole for it.
        """
        return low_rank_of({name: self._sides_of(name) for name in self.changed()})

    def _sides_of(self, name: str) -> tuple[Comparison, WeightEntry, WeightEntry]:
        return self._found[name], self._first[name], self._second[self._pairs[name]]

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
        self[name]
        return directions_of(*self._sides_of(self._called_here(name)), num_directions)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each weight; MissingLibraryError without pandas."""
        return frame_of(self, _FIGURES, ([getattr(one, figure) for figure in _FIGURES] for one in self.values()))

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        # First: what shows a failed assert cuts the rest.
        said = [self._told(), *map(self._figures_told, self.changed()[:_MOST_TOLD])]
        for word in (
            "_same_memory",
            "missing",
            "unexpected",
            "_exempt",
            "reshaped",
            "retyped",
            "_retied",
            "failed",
            "_not_listed",
        ):
            names = list(getattr(self, word))
            if names:
                more = ", …" if len(names) > 1 else ""
                said.append(f"{len(names):,} {word.strip('_').replace('_', ' ')} ({shown_name(names[0])}{more})")
        if self._beside:
            name, told = next(iter(self._beside.items()))
            more = ", …" if len(self._beside) > 1 else ""
            differ = "value differs" if len(self._beside) == 1 else "values differ"
            said.append(f"{len(self._beside):,} {differ} beside the weights ({shown_name(name)}: {told}{more})")
        if self._not_compared:
            name, why = next(iter(self._not_compared.items()))
            more = ", …" if len(self._not_compared) > 1 else ""
            said.append(
                f"{len(self._not_compared):,} not compared beside the weights ({shown_name(name)}: {why}{more})"
            )
        verdict = "" if self._is_all_that_is_listed else "equal: " if self.equal else "not equal: "
        return f"WeightsComparison({verdict}{', '.join(said)})"

    def _figures_told(self, name: str) -> str:
        """Return what differs in a weight, in the words of its attributes."""
        found, moved = self._found[name], self.moved.get(name)
        told = [found.verdict]
        told += [f"{side[1:]} {count:,}" for side in _SIDES if (count := getattr(found, side))]
        # These are of what is finite on both sides: where something is not, that all the rest is equal needs no word.
        if found.max_abs is not None and (found.max_abs or not found._is_odd):
            told.append(f"max_abs {found.max_abs:.3g}")
        if moved is not None and (moved or not found._is_odd):
            told.append(f"moved {100 * moved:.3g}%")
        return f"{shown_name(name)} ({', '.join(told)})"


def _hidden(own: WeightsExplorer, other: WeightsExplorer) -> list[str]:
    """Return what hides weights of one side that the other may have."""
    has_none = NotOfModule if other.is_of_module else NotSaved
    return [one for one in own.not_listed if not isinstance(one, has_none)]
