"""Serve the table of a comparison of two models, whose rows open the navigator on both sides and Δ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import traitlets

from tensornp.core.lowlevel.text import legible
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.pictures.planes import difference_of
from tensornp.core.values.shown.window import Index
from tensornp.core.values.shown.window_values import Subject, subject_of
from tensornp.errors import BadRequestError, NoDataError
from tensornp.models.comparing.comparison import WeightsComparison, why_unmoved
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.live.refind import reached, released_rows
from tensornp.models.names.quoted import MAX_SHOWN, cut_inside, shown_name
from tensornp.models.outline.choose import searched
from tensornp.render.models.comparison import LiveRows, live_rows
from tensornp.widget.page import NONSENSE, Answer, Request, integer_of
from tensornp.widget.part import module, stylesheet
from tensornp.widget.table import LiveTable
from tensornp.widget.values import LookedAt, Values

MAX_COMPARED = 2000
"""Weights of a comparison that a page can filter, sort and open."""


class Pair(NamedTuple):
    """A weight of both models without their tensors.

    `goal` is the index of the largest difference, or "nan" if an element is finite on one side alone. `note` says why
    the weight did not change, and `called` are more names for the search.
    """

    first: WeightEntry
    second: WeightEntry
    goal: Index | str
    note: str = ""
    called: tuple[str, ...] = ()


def pair_of(
    first: WeightEntry, second: WeightEntry, found: Comparison, why: str = "", others: Sequence[str] = ()
) -> Pair:
    """Return a weight of both models with its comparison.

    `why` is the reason why it did not change, and `others` are its other names.
    """
    note = ": ".join(filter(None, (found.verdict, why))) if found.equal else ""
    called = dict.fromkeys((second.name, *others, first.code, second.code))
    goal = "nan" if found._is_odd else found._largest_difference or ""
    return Pair(first, second, goal, note, tuple(filter(None, called)))


def live_comparison(found: WeightsComparison, namespace: Mapping[str, Any], anchor: str) -> ComparisonTable | None:
    """Return the live part of the table of class `anchor`; None where nothing differs.

    Neither side is held: what lies in memory is found again in `namespace`.
    """
    if not found.changed():
        return None
    live = live_rows(found, MAX_COMPARED)
    first, second = (
        {row.name: row for row in released_rows(side, namespace, "")} for side in (found._first, found._second)
    )
    why = why_unmoved(found)
    pairs = [
        pair_of(first[name], second[found._pairs[name]], found[name], why.get(name, ""), found._other_names(name))
        for name in live.names
    ]
    return ComparisonTable(pairs, live, anchor=anchor, num_left_out=len(found) - len(live.names))


class ComparisonTable(LiveTable):
    """The live part of a comparison.

    Parameters
    ----------
    pairs : sequence of Pair
        The weights of the rows.
    live : LiveRows
        The texts of the static table.
    """

    _esm = module("comparison")
    _css = stylesheet("table", "navigator", "comparison")

    printed: traitlets.List[Any] = traitlets.List(help="the weights of each printed row").tag(sync=True)

    def __init__(self, pairs: Sequence[Pair], live: LiveRows, **traits: Any) -> None:
        self._pairs = list(pairs)
        names = [legible(pair.first.name) for pair in pairs]
        super().__init__(
            live.html,
            names,
            handlers={"values": self._open},
            values=Values(),
            printed=live.printed,
            noun=live.noun,
            **traits,
        )

    def close(self) -> None:
        """Take it out of the page, and let go of the weights."""
        self._pairs = []
        super().close()

    def _found(self, text: str) -> list[int]:
        """Return the weights with a matching name or expression in either model."""
        most = max((len(pair.called) for pair in self._pairs), default=0)
        others = [
            [legible(pair.called[i]) if i < len(pair.called) else "" for pair in self._pairs] for i in range(most)
        ]
        # An index in brackets is no glob where it is written so: layers[3].
        literal = {i for i, pair in enumerate(self._pairs) if any(text in one for one in pair.called)}
        return sorted(literal.union(*(searched(text, names) for names in (self._names, *others))))

    def _open(self, request: Request) -> Answer:
        """Return the message that opens the window on both sides at their largest difference."""
        pair = self._pair(request)
        subjects = _subjects_of(pair)
        # The shapes of both are compared before anything is shown.
        difference_of(*subjects)
        assert self._values is not None
        return {
            **self._values.show(_faces_of(pair), pair.goal),
            "label": cut_inside(pair.first.name, MAX_SHOWN),
            "title": legible(pair.first.name),
            "note": pair.note,
        }

    def _pair(self, request: Request) -> Pair:
        number = integer_of(request.get("row"))
        if not 0 <= number < len(self._pairs):
            raise BadRequestError(NONSENSE)
        return self._pairs[number]


def _faces_of(pair: Pair) -> LookedAt:
    """Return both sides of a weight and their difference, found again whenever they are read."""

    def side(row: WeightEntry) -> LookedAt:
        return LookedAt(lambda: reached(row)._values(), name=row.code, take=lambda index: reached(row).to_numpy(index))

    change = LookedAt(lambda: difference_of(*_subjects_of(pair)))
    faces = (("before", side(pair.first)), ("after", side(pair.second)), ("Δ", change))
    return LookedAt(name=shown_name(pair.first.name), faces=faces)


def _subjects_of(pair: Pair) -> tuple[Subject, Subject]:
    entries = reached(pair.first), reached(pair.second)
    for entry in entries:
        entry._check_readable()
    first, second = (subject_of(entry._values()) for entry in entries)
    if first.num_parts or second.num_parts:
        parts = ", ".join(f"{entry.code or '...'}.unbind()[0]" for entry in (pair.first, pair.second))
        raise NoDataError(
            f"{shown_name(pair.first.name)} is nested, and is not seen side by side; "
            f"tnp.compare({parts}) compares its first parts"
        )
    return first, second
