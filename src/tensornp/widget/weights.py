"""The kernel's side of the weights on a page: it asks for lines of the tree, and gets these and nothing else."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import traitlets

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted, format_nbytes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.stats import summarize_stats
from tensornp.core.values.stats.fast import is_to_compile
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.moment import is_other
from tensornp.models.entries.released import reached
from tensornp.models.live.last_scan import LastScan
from tensornp.models.module_view import ModuleView
from tensornp.models.names.search import none_fits
from tensornp.models.outline.choose import FOUND_STATES, INFINITY_STATE, NAN_STATE, UNREAD, Asked, is_expression
from tensornp.models.outline.columns import GRAD, columns
from tensornp.models.outline.outline import FoundOrder, Outline
from tensornp.models.outline.spreads import Spreads
from tensornp.render.layout.words import cost_of_scan
from tensornp.render.models.entry import array_code
from tensornp.render.models.module import partly_read
from tensornp.widget.answering import AnsweringWidget, Answers
from tensornp.widget.dock import module, stylesheet
from tensornp.widget.looked_at import Binder, LookedAt
from tensornp.widget.scanning import Scanning
from tensornp.widget.weight_data import entry_data, fitted, stats_data
from tensornp.widget.weight_lines import (
    NOT_FINITE,
    Found,
    OrderOf,
    Told,
    choice_data,
    column_data,
    findings_data,
    kinds_of,
    line_data,
    marked_column,
    note_data,
    widths_of,
)
from tensornp.widget.weight_requests import NONSENSE, asked_by, integer_of, pattern_code
from tensornp.widget.weights_scan import ScanFound, found_in

if TYPE_CHECKING:
    from tensornp.widget.navigator import NavigatorWidget

MAX_LINES = 100
"""Lines of one answer."""
SOUGHT = {"nan": NAN_STATE} | dict.fromkeys(("inf", "-inf", "+inf", "infinity", "infinite"), INFINITY_STATE)
"""What is no name, and may be meant by it."""
_LOOK_S = 0.005
"""For how long it is looked after a cell whether weights were written to."""
_UNREAD = "values not read yet; Scan looks for NaN"
_EARLIER = "as of the scan: weights have been written or replaced since"


class WeightsWidget(AnsweringWidget):
    """The weights of a model, which dock into the static table of class `anchor`.

    A request of the page is complete by itself; each has a number, and its answer has the same. Only a scan is
    remembered, with what it has found.

    Parameters
    ----------
    weights : iterable of WeightEntry
        All weights; those that are to be held by nobody have been released.
    opened : str
        The expression of the explorer, from which others are made.
    classes : mapping, optional
        By the name of a module, its class.
    last_scan : callable, optional
        Gives what scans have kept of weights, or None where nothing is to be kept; by default, those of this page are.
    binder : callable, optional
        What binds a name in the user's namespace; without one, no name is offered.
    """

    _esm = module("weights")
    _css = stylesheet("weights")

    label = traitlets.Unicode(help="what has the weights").tag(sync=True)
    place = traitlets.Unicode(help="the class of what the navigator docks into").tag(sync=True)
    has_values = traitlets.Bool(help="whether the navigator is offered").tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    progress = traitlets.Float(-1, help="the share that a scan has read; -1 where none runs").tag(sync=True)
    scanned = traitlets.Unicode(help="what the last scan has found, in a sentence").tag(sync=True)
    earlier = traitlets.Unicode(help="that what was found is no longer so, where that is known").tag(sync=True)
    findings: traitlets.List[dict[str, Any]] = traitlets.List(
        help="what stands out, the most serious first, and where the first is"
    ).tag(sync=True)

    def __init__(
        self,
        weights: Iterable[WeightEntry],
        *,
        opened: str,
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
        has_values: bool = True,
        classes: Mapping[str, str] = MappingProxyType({}),
        last_scan: Callable[[], LastScan | None] | None = None,
    ) -> None:
        # Of what is registered as None there is nothing to see.
        self._weights: Sequence[WeightEntry] = [one for one in weights if not one.is_nothing]
        self.opened, self._classes = opened, classes
        self._options, self._binder = options or DisplayOptions(), binder
        own = LastScan()
        self._last_scan = last_scan or (lambda: own)
        self._outline: Outline | None = None
        self._found: dict[str, Found] = {}
        self._spreads: Spreads | None = None
        self._widths: dict[str, int] = {}
        self._found_states: dict[str, int] = {}
        self._figures: set[str] = set()
        self._looked_at = 0
        self._scan: Scanning[ScanFound] | None = None
        self._navigator: NavigatorWidget | None = None
        unread = any(not one.problem and one.numel for one in self._weights)
        answers: Answers = {
            "lines": self._lines, "open": self._open, "stats": self._stats, "values": self._values,
            "bind": self._bind, "scan": self._scan_all, "end": self._end,
        }  # fmt: skip
        super().__init__(
            answers,
            anchor=anchor,
            label=opened,
            place=f"{anchor}-values",
            has_values=has_values,
            can_bind=binder is not None,
            findings=note_data(_UNREAD if unread else ""),
        )  # fmt: skip

    def close(self) -> None:
        """Take it out of the page, and let go of the weights."""
        with self._lock:
            self._end()
            self._weights, self._outline, self._spreads, self._found = (), None, None, {}
            self._last_scan = lambda: None
            navigator, self._navigator = self._navigator, None
        if navigator is not None:
            navigator.close()
        super().close()

    def tell(self, view: ModuleView) -> None:
        """Say what is known of a module without a scan."""
        known = {name: Found(one.findings, alarms=one.alarms) for name, one in view.alarms.items()}
        self.findings = [*findings_data(self._weights, known), *note_data(partly_read(view))]

    def look_again(self) -> None:
        """Say so where a weight is no longer what was scanned: looked at for milliseconds, next time from there on."""
        with self._lock:
            if not self._found or self.earlier:
                return
            end = time.monotonic() + _LOOK_S
            for _ in self._weights:
                self._looked_at = (self._looked_at + 1) % len(self._weights)
                if self._is_earlier(self._weights[self._looked_at]):
                    self.earlier = _EARLIER
                if self.earlier or time.monotonic() > end:
                    return

    def _is_earlier(self, row: WeightEntry) -> bool:
        """Return whether what was found of a weight is known to be of an earlier state."""
        known = self._found.get(row.name)
        return known is not None and is_other(row, known.moment)

    def _waits_as(self, request: Mapping[str, Any]) -> Hashable | None:
        kind, page = request["type"], request["page"]
        # A page shows the last statistics alone, and each name that it wants is bound.
        return {"stats": (kind, page), "bind": (kind, page, request["number"])}.get(kind)

    # --- lines

    def _lines(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the lines that are asked for, and what is said of all that fit."""
        if self._outline is None:
            self._outline = Outline(self._weights, self._classes)
        outline, asked = self._outline, asked_by(request)
        first, count = integer_of(request.get("first", 0)), integer_of(request.get("count", 0))
        found, marked, at = self._order(), marked_column(asked.sort), -1
        if request.get("reveal") is not None:
            number = integer_of(request.get("reveal"))
            self._check(number)
            asked, at = outline.revealed(asked, number, found)
            first = at - count // 2 if at >= 0 else first
        total = outline.num_lines(asked, found)
        first = min(max(first, 0), max(total - 1, 0))
        told = Told(outline.number_of, self._found, self._spreads, marked, outline.sums.numel)
        lines = outline.lines(asked, first, min(max(count, 0), MAX_LINES), found)
        return {
            "type": "lines",
            "total": total,
            "first": first,
            "lines": [line_data(line, told) for line in lines],
            "revealed": at,
            "toggled": sorted(asked.toggled),
            "isList": asked.is_list,
            "nothing": "" if total else self._nothing(asked),
            "instead": None if total else self._instead(asked),
            "marked": marked,
            "text": self._said(asked, found),
            "code": self._code(asked.search),
            "columns": self._columns(),
            "choices": [choice_data(name, values) for name, values in self._choices(outline).items()],
            "cost": self._cost(asked, found),
        }

    def _nothing(self, asked: Asked) -> str:
        """Return that nothing is listed, and what may have been meant."""
        if not asked.search or asked.filters or is_expression(asked.search):
            return "no weight fits"
        said = none_fits(asked.search, [one.name for one in self._weights])
        sought = SOUGHT.get(asked.search.lower())
        if sought is None or sought in self._found_states:
            return said
        return f"{said}; " + ("Scan looks for it" if not self._found else f"what was read holds no {sought}")

    def _instead(self, asked: Asked) -> dict[str, Any] | None:
        """Return what lists the weights that hold what was sought among the names; None where there are none."""
        sought = SOUGHT.get(asked.search.lower(), "")
        number = self._found_states.get(sought, 0)
        if not number:
            return None
        text = f"{counted(number, 'weight')} {'holds' if number == 1 else 'hold'} {sought}"
        return {"text": text, "filters": {"state": sought}}

    def _choices(self, outline: Outline) -> dict[str, list[str]]:
        """Return the values of all filters; among the states are those that a scan has found."""
        found = [state for state in FOUND_STATES if state in self._found_states]
        # Where one of both is all that is not finite, it needs no other name.
        both = {NAN_STATE, INFINITY_STATE}
        found = [state for state in found if state not in both or both <= {*found}]
        return {**outline.choices, "state": [*outline.choices["state"], *found]}

    def _code(self, search: str) -> str:
        """Return the expression of an explorer of what is listed; empty where none reaches it."""
        return f"{self.opened}.find({pattern_code(search)})" if search and self.opened else self.opened

    def _cost(self, asked: Asked, found: FoundOrder | None) -> str:
        """Return what a scan of what is listed costs."""
        assert self._outline is not None
        listed = self._outline.chosen(asked, found) if asked.is_list else self._weights
        compiles = is_to_compile(sys.maxsize) and any(is_to_compile(one.nbytes) for one in listed)
        return cost_of_scan(self._outline.sums_listed(asked, found).nbytes, compiles=compiles)

    def _order(self) -> FoundOrder | None:
        """Return by what a scan has found lines are sorted and chosen."""
        return OrderOf(self._found) if self._found else None

    def _said(self, asked: Asked, found: FoundOrder | None) -> str:
        """Return how many weights fit, of how many."""
        assert self._outline is not None
        if not asked.is_list:
            return ""
        every = counted(len(self._weights), "weight")
        sums = self._outline.sums_listed(asked, found)
        if sums.num_weights == len(self._weights):
            # The heading has the totals, in which overlapping ones count once.
            return every
        return f"{sums.num_weights:,} of {every} · {counted(sums.numel, 'element')} · {format_nbytes(sums.nbytes)}"

    def _columns(self) -> list[dict[str, Any]]:
        """Return the columns that are seen."""
        assert self._outline is not None
        told = self._outline.told
        scanned = (column for column in columns() if column.is_scanned and self._found)
        told |= {column.name for column in scanned if column.figure is None or column.name in self._figures}
        told |= {GRAD} if any(one.lacks_gradient for one in self._found.values()) else set()
        widths = self._outline.widths | self._widths
        return [column_data(column, widths[column.name]) for column in columns() if column.name in told]

    # --- one weight

    def _weight(self, request: Mapping[str, Any]) -> WeightEntry:
        number = integer_of(request.get("weight"))
        self._check(number)
        return reached(self._weights[number])

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self._weights):
            raise BadRequestError(NONSENSE)

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is shown of one weight."""
        self._leave()
        entry = self._weight(request)
        is_earlier = self._is_earlier(self._weights[integer_of(request.get("weight"))])
        self.earlier = _EARLIER if is_earlier else self.earlier
        found = self._found.get(entry.name)
        told: dict[str, Any] = {"found": legible("; ".join(one.text for one in found.findings)) if found else ""}
        told |= {"earlier": "written or replaced since the scan, of which its figures are"} if is_earlier else {}
        printoptions = fitted(self._options.printoptions, integer_of(request.get("width", 0)))
        return {"type": "weight", **entry_data(entry, self.opened, printoptions), **told}

    def _stats(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return all figures of one weight, which is read whole."""
        entry = self._weight(request)
        entry.check_readable()
        return {"type": "stats", **stats_data(summarize_stats(entry.values(), self._options, name=entry.name))}

    def _values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have the navigator look at one weight, for what is not finite if the page wants that, or leave."""
        from tensornp.widget.navigator import own_navigator

        goal = request.get("goal", "")
        if goal not in ("", *NOT_FINITE):
            raise BadRequestError(NONSENSE)
        self._leave()
        if request.get("open") is True:
            entry = self._weight(request)
            entry.check_readable()
            row = self._weights[integer_of(request.get("weight"))]
            looked_at = LookedAt(
                lambda: reached(row).values(),
                name=entry.code,
                array_name=array_code(entry, self.opened),
                binder=self._binder,
                take=lambda index: reached(row).to_numpy(index),
                suggestion=_suggestion(entry.name),
                absent=self._absent(row),
                options=self._options,
            )
            if self._navigator is None or self._navigator.comm is None:
                self._navigator = own_navigator()
            self._navigator.show(looked_at, anchor=self.place, goal=goal)
        return {"type": "values", "open": request.get("open") is True}

    def _absent(self, row: WeightEntry) -> tuple[str, ...]:
        """Return what a scan has not found among all values of a weight, which is as it was."""
        found = self._found.get(row.name)
        if found is None or not found.figures or self.earlier or self._is_earlier(row):
            return ()
        return tuple(goal for goal in NOT_FINITE if all(one.goal != goal for one in found.alarms))

    def _leave(self) -> None:
        """Send the navigator away, if it is here."""
        if self._navigator is not None and self._navigator.anchor:
            self._navigator.rest()

    def _bind(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Bind the array of one weight to a name."""
        if self._binder is None:
            raise BadRequestError("there is no notebook to bind a name in")
        entry, name = self._weight(request), request.get("name")
        if not isinstance(name, str):
            raise BadRequestError(NONSENSE)
        self._binder(name, entry.to_numpy, request.get("overwrite") is True)
        code = array_code(entry, self.opened)
        return {"type": "bound", "text": f"bound: {name} = {code}" if code else f"bound: {name}"}

    # --- all weights

    def _scan_all(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to read all weights that are listed, in a thread."""
        if self._scan is None:
            asked = asked_by(request)
            chosen = (
                self._outline.chosen(asked, self._order())
                if asked.is_list and self._outline is not None
                else self._weights
            )
            # What would be computed is read where nothing else is listed.
            stored = [one for one in chosen if one.kind != COMPUTED]
            self.progress, wanted = 0.0, stored or list(chosen)
            self._scan = Scanning(partial(found_in, wanted, self._last_scan()), self._note_progress, self._note_found)
        return {"type": "scanning"}

    def _end(self, _: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Have a scan end, which then shows what it has read."""
        if self._scan is not None:
            self._scan.end()
        return {"type": "scanning"}

    def _note_progress(self, scan: Scanning[ScanFound], share: float) -> None:
        """Show how far a scan is, unless nobody wants to hear of it any more."""
        with self._lock:
            if scan is self._scan:
                self.progress = share

    def _note_found(self, scan: Scanning[ScanFound], scanned: ScanFound | None, reason: str) -> None:
        """Show what a scan has found."""
        with self._lock, self.hold_sync():
            if scan is not self._scan:
                return
            found, said, stopped = scanned if scanned is not None else ScanFound({}, reason)
            self._scan, self.scanned, self.earlier = None, said, ""
            self._found |= found
            if found:
                self._outline = self._outline or Outline(self._weights, self._classes)
                figures = {name: one.figures for name, one in self._found.items()}
                self._figures = set().union(*figures.values())
                self._widths = widths_of(figures.values())
                sampled = [name for name, one in self._found.items() if one.update and one.update.is_sampled]
                self._spreads = Spreads(self._outline, figures, kinds_of(self._found), frozenset(sampled))
                self._found_states = self._count_states()
                self.findings = findings_data(self._weights, self._found)
                self._outline.forget()
                # A scan of some leaves what was found of the others.
                self.look_again()
            if stopped:
                self.findings = [*(one for one in self.findings if one["name"]), *note_data(stopped)]
            # Whoever sees that it has ended sees what it has found.
            self.progress = -1.0

    def _count_states(self) -> dict[str, int]:
        """Return of how many weights a scan tells that they are in a state, of those that there are."""
        order, counts = OrderOf(self._found), Counter[str]()
        for one in self._weights:
            # Of what has no values, none are unread.
            counts.update(state for state in order.states(one.name) if state != UNREAD or not one.problem)
        return dict(counts)


def _suggestion(name: str) -> str:
    """Return a name for an array of a weight: ``query_weight_np``."""
    *before, own = re.findall(r"\w+", name)[-2:] or [""]
    told = (f"{'_'.join(words)}_np" for words in ([*before, own], [own]))
    return next(filter(str.isidentifier, told), "array_np")
