"""Serve a comparison of two models with windows on both and their difference."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import traitlets

from tensornp.core.lowlevel.text import legible
from tensornp.core.values.compare.compare import Comparison, compare
from tensornp.core.values.compare.side_by_side import side_by_side
from tensornp.core.values.compare.where import (
    element_text,
    element_with_nearly_all,
    sums_by_axis,
    where_text,
)
from tensornp.core.values.pictures.planes import may_be_read_unasked, overview_of_change
from tensornp.core.values.shown.typed_index import parse_index, window_text
from tensornp.core.values.shown.window import Index, Window
from tensornp.core.values.shown.window_values import Subject, subject_of
from tensornp.errors import BadRequestError, NoDataError
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.unmoved import why_unmoved
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.released import reached
from tensornp.models.live.find import released_from
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut_inside, shown_name
from tensornp.models.outline.choose import searched
from tensornp.render.models.comparison import LiveRows, live_rows
from tensornp.render.models.comparison_row import cut_apart
from tensornp.render.pictures.window import legend_of
from tensornp.widget.answering import Answer, Request
from tensornp.widget.dock import module, stylesheet
from tensornp.widget.table import LiveTable
from tensornp.widget.window_data import overview_data, overview_offered
from tensornp.widget.window_request import (
    NONSENSE,
    integer,
    integers,
    window_asked,
    window_turned,
)

MAX_COMPARED = 2000
"""Weights of a comparison that a page can filter, sort and open."""
_UNASKED_NBYTES = 2**26
"""Bytes of each side that a map and a sentence are made of unasked: the comparison that was asked for has read them."""
_OF_FINITE = ", of what is finite on both sides"


class Pair(NamedTuple):
    """A weight of both models without their tensors, and its largest difference.

    `may_be_odd` is true if an element may be non-finite in one model and different in the other, which exceeds any
    difference. `where` is the place of nearly all of the change, and `called` are more names for the search.
    """

    first: WeightEntry
    second: WeightEntry
    largest: Index | None
    may_be_odd: bool = False
    where: str = ""
    called: tuple[str, ...] = ()


def pair_of(
    first: WeightEntry, second: WeightEntry, found: Comparison, why: str = "", others: Sequence[str] = ()
) -> Pair:
    """Return a weight of both models with its comparison.

    `why` is the reason why it did not change, and `others` are its other names.
    """
    may_be_odd = found._is_odd or found.count > found._finite
    element = element_with_nearly_all(found)
    where = "" if element is None else element_text(element) + _OF_FINITE * found._is_odd
    if found.equal:
        where = ": ".join(filter(None, (found.verdict, why)))
    called = dict.fromkeys((second.name, *others, first.code, second.code))
    return Pair(first, second, found._largest_difference, may_be_odd, where, tuple(filter(None, called)))


def live_comparison(found: WeightsComparison, namespace: Mapping[str, Any], anchor: str) -> ComparisonTable | None:
    """Return the live part of the table of class `anchor`; None where nothing differs.

    Neither side is held: what lies in memory is found again in `namespace`.
    """
    if not found.changed():
        return None
    live = live_rows(found, MAX_COMPARED)
    first, second = (
        {row.name: row for row in released_from(side, namespace, "")[0]} for side in (found._first, found._second)
    )
    why = why_unmoved(found)
    pairs = [
        pair_of(first[name], second[found._pairs[name]], found[name], why.get(name, ""), found._other_names(name))
        for name in live.names
    ]
    table = ComparisonTable(pairs, live, found._sources)
    table.show(anchor, live.rows, len(found) - len(live.rows))
    return table


class ComparisonTable(LiveTable):
    """The live part of a comparison.

    Parameters
    ----------
    pairs : sequence of Pair
        The weights of the rows.
    live : LiveRows
        What is printed of them.
    sides : tuple of str
        What the two are called.
    """

    _esm = module("comparison")
    _css = stylesheet("table", "navigator", "comparison")

    printed: traitlets.List[Any] = traitlets.List().tag(sync=True)
    num_printed = traitlets.Int().tag(sync=True)
    noun = traitlets.Unicode("weight").tag(sync=True)
    num_equal = traitlets.Int(help="of all, those that are equal").tag(sync=True)
    folds: traitlets.List[Any] = traitlets.List(help="what is not printed, as `LiveFold` has it").tag(sync=True)
    sides: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, pairs: Sequence[Pair], live: LiveRows, sides: tuple[str, str]) -> None:
        self._pairs = list(pairs)
        super().__init__(
            printed=live.printed, num_printed=live.num_printed, noun=live.noun, num_equal=live.num_equal,
            folds=[fold._asdict() for fold in live.folds], sides=cut_apart(sides, MAX_INSIDE),
        )  # fmt: skip
        self._answers |= {
            "window": self._window,
            "largest": self._largest,
            "overview": self._draw,
            "where": self._locate,
        }

    def close(self) -> None:
        """Take it out of the page, and let go of the weights."""
        self._pairs = []
        super().close()

    def _names(self) -> list[str]:
        return [legible(pair.first.name) for pair in self._pairs]

    def _found(self, text: str) -> list[int]:
        """Return the weights with a matching name or expression in either model."""
        most = max((len(pair.called) for pair in self._pairs), default=0)
        others = [
            [legible(pair.called[i]) if i < len(pair.called) else "" for pair in self._pairs] for i in range(most)
        ]
        # An index in brackets is no glob where it is written so: layers[3].
        literal = {i for i, pair in enumerate(self._pairs) if any(text in one for one in pair.called)}
        return sorted(literal.union(*(searched(text, names) for names in (self._names(), *others))))

    def _waits_as(self, request: Request) -> Hashable | None:
        kind, row = request["type"], request.get("row")
        if kind in ("overview", "where"):
            return ("map", kind)
        is_sought = type(row) is int and 0 <= row < len(self._pairs) and self._pairs[row].may_be_odd
        return ("search", request["page"]) if kind == "largest" and is_sought else None

    def _largest(self, request: Request) -> Answer:
        """Return the window with the largest or the first non-finite difference.

        A pair with non-finite values is compared again, as it may have changed.
        """
        pair, subjects = self._opened(request)
        at = pair.largest
        if pair.may_be_odd:
            found = compare(*_values_of(pair))
            at = found.first_difference if found._is_odd else found._largest_difference
        return self._said(request, subjects, window_asked(subjects[0].shape, request), at or pair.largest)

    def _window(self, request: Request) -> Answer:
        """Return a window, moved to a requested index or element."""
        _pair, (first, second) = self._opened(request)
        window, shown = window_asked(first.shape, request), None
        index, wanted = request.get("index"), request.get("show")
        if isinstance(index, str):
            window, shown = window_turned(window, parse_index(index, first.shape), request)
        elif wanted is not None:
            shown = tuple(min(max(i, 0), size - 1) for i, size in zip(integers(wanted), first.shape, strict=False))
        is_step = wanted is not None and request.get("isInMiddle") is not True
        return self._said(request, (first, second), window, shown, is_step=is_step)

    def _draw(self, request: Request) -> Answer:
        """Return a map of |Δ| around a window, unless there is a later request."""
        _pair, subjects = self._opened(request)
        window = window_asked(subjects[0].shape, request)
        drawn = overview_of_change(*subjects, window, lambda: self._is_latest(request)) if window.numel else None
        return {"type": "overview"} if drawn is None else overview_data(drawn, "|Δ|", "NaN on one side")

    def _locate(self, request: Request) -> Answer:
        """Return a sentence on the place of most of a change, empty for an old request."""
        pair, _subjects = self._opened(request)
        text = where_text(sums_by_axis(*_values_of(pair), lambda: self._is_latest(request)))
        return {"type": "where", "text": text + _OF_FINITE * bool(text and pair.may_be_odd)}

    def _pair(self, request: Request) -> Pair:
        number = integer(request.get("row"))
        if not 0 <= number < len(self._pairs):
            raise BadRequestError(NONSENSE)
        return self._pairs[number]

    def _opened(self, request: Request) -> tuple[Pair, tuple[Subject, Subject]]:
        pair = self._pair(request)
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
        if first.shape != second.shape:
            raise NoDataError(f"shapes differ: {first.shape} and {second.shape}; open each of them with %weights")
        return pair, (first, second)

    def _said(
        self, request: Request, subjects: tuple[Subject, Subject], window: Window, shown: Index | None, *,
        is_step: bool = False,
    ) -> Answer:  # fmt: skip
        if shown is not None and window.numel and len(shown) == len(window.shape):
            window = window.moved_to_show(shown) if is_step else window.centered_on(shown)
        seen = side_by_side(*subjects, window)
        pair = self._pair(request)
        return {
            "type": "window",
            "row": request.get("row"),
            "name": cut_inside(pair.first.name, MAX_SHOWN),
            "title": legible(pair.first.name),
            "shape": window.shape,
            "corner": window.corner,
            "size": [window.num_rows, window.num_columns],
            "axes": [window.row_axis, window.column_axis],
            "windows": [
                {"texts": side.texts, "shades": side.shades, "scale": side.scale, "legend": legend_of(side, of=of)}
                for side, of in zip(seen, ("both", "both", "this window"), strict=True)
            ],
            "show": shown,
            "overview": overview_offered(subjects, window, _UNASKED_NBYTES, (window.num_rows, window.num_columns)),
            "where": pair.where,
            "isWhereFree": _is_free(subjects),
            "hasLargest": pair.largest is not None or pair.may_be_odd,
            "text": f"[{window_text(window)}] of {window.shape}",
        }


def _values_of(pair: Pair) -> tuple[Any, Any]:
    return reached(pair.first)._values(), reached(pair.second)._values()


def _is_free(subjects: Sequence[Subject]) -> bool:
    """Return whether all of both may be read though nobody has asked for it."""
    return all(may_be_read_unasked(one, one.shape, _UNASKED_NBYTES) for one in subjects)
