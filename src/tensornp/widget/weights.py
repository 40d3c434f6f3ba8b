"""The kernel's side of the weights on a page: it asks for lines of the tree, and gets these and nothing else."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.units import format_nbytes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.stats import summarize_stats
from tensornp.errors import BadRequestError, NameTakenError, NotReadError, TensornpError
from tensornp.render.stats_line import line_of
from tensornp.render.words import cost_of_scan, counted
from tensornp.trees.choosing import COLUMNS, FILTERS, Asked
from tensornp.trees.entry import COMPUTED, WeightEntry
from tensornp.trees.listing import Listed
from tensornp.trees.outline import Outline, sums_of
from tensornp.trees.scan import scan_entries
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.weight_data import Found, array_code, entry_data, line_data, stats_data

MAX_LINES = 100
"""Lines of one answer."""
MAX_TOGGLED = 10_000
_NONSENSE = "the page has asked for something that these weights do not have; reload the page"
_UNRANKED = 99
_IS_SIZE = re.compile(r"[0-9]{1,18}")

Reach = Callable[[Listed], WeightEntry]
"""Gives the weight itself; NoDataError where it is gone."""
Binder = Callable[[str, Callable[[], Any], bool], None]


class WeightsWidget(DockingWidget):
    """The weights of a model, which dock into the static table of class `anchor`.

    A request of the page is complete by itself; each has a number, and its answer has the same. Only a scan is
    remembered, with what it has found.

    Parameters
    ----------
    weights : list of Listed
        The facts of all weights.
    reach : callable
        What gives one of them.
    opened : str
        The expression of the explorer, from which others are made.
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

    def __init__(
        self,
        weights: Sequence[Listed],
        reach: Reach,
        *,
        opened: str,
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
        has_values: bool = True,
    ) -> None:
        # Requests may come in a thread of their own while a cell runs (a subshell of the kernel).
        self._lock = threading.RLock()
        self._weights, self._reach, self._opened = weights, reach, opened
        self._options, self._binder = options or DisplayOptions(), binder
        self._outline: Outline | None = None
        self._found: dict[str, Found] = {}
        self._num_found: list[int] = []
        self._scan: _Scan | None = None
        self._answers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "lines": self._lines, "open": self._open, "stats": self._stats, "values": self._values,
            "bind": self._bind, "scan": self._scan_all, "end": self._end,
        }  # fmt: skip
        super().__init__(
            anchor=anchor, label=opened, place=f"{anchor}-values", has_values=has_values, can_bind=binder is not None
        )

    def close(self) -> None:
        """Take it out of the page, and let go of the weights."""
        with self._lock:
            self._end()
            self._weights, self._outline, self._found = (), None, {}
        super().close()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take no state from the browser, which may send anything."""

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        super()._receive(_, content, buffers)
        kind = content.get("type") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in self._answers:
            return
        page, number = content.get("page"), content.get("number")
        if not isinstance(page, str) or type(number) is not int:
            return
        asked = {"page": page, "number": number}
        if kind == "stats":
            # It may take long, and other requests are answered meanwhile.
            threading.Thread(target=self._tell, args=(kind, content, asked), daemon=True).start()
            return
        with self._lock:
            self._tell(kind, content, asked)

    def _tell(self, kind: str, request: Mapping[str, Any], asked: dict[str, Any]) -> None:
        """Answer a request."""
        try:
            answer = self._answers[kind](request)
        except NameTakenError as error:
            answer = {"type": "error", "text": str(error), "canOverwrite": error.can_overwrite}
        except (TensornpError, NotReadError) as error:
            answer = {"type": "error", "text": str(error)}
        except Exception as error:
            answer = {"type": "error", "text": error_text(error)}
        self.send({**answer, **asked})

    # --- lines

    def _lines(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the lines that are asked for, and what is said of all that fit."""
        if self._outline is None:
            self._outline = Outline(self._weights)
        outline, asked = self._outline, _asked(request)
        first, count = _integer(request.get("first", 0)), _integer(request.get("count", 0))
        ranks = self._rank if self._found else None
        total = outline.num_lines(asked, ranks)
        first = min(max(first, 0), max(total - 1, 0))
        lines = outline.lines(asked, first, min(max(count, 0), MAX_LINES), ranks)
        return {
            "type": "lines",
            "total": total,
            "first": first,
            "lines": [line_data(line, self._found, self._num_of(line.branch)) for line in lines],
            "isList": asked.is_list,
            "text": self._said(asked, ranks),
            "code": f"{self._opened}.find({_pattern_code(asked.search)})" if asked.search else self._opened,
            "columns": self._columns(),
            "choices": outline.choices,
            "cost": cost_of_scan(outline.sums.nbytes),
        }

    def _rank(self, name: str) -> int:
        return self._found[name].rank if name in self._found else _UNRANKED

    def _num_of(self, branch: int) -> int:
        return self._num_found[branch] if 0 <= branch < len(self._num_found) else 0

    def _said(self, asked: Asked, ranks: Any) -> str:
        """Return how many weights fit, of how many."""
        assert self._outline is not None
        if not asked.is_list:
            return ""
        chosen = self._outline.chosen(asked, ranks)
        sums = self._outline.sums if len(chosen) == len(self._weights) else sums_of(chosen)
        all_of = f"{sums.num_weights:,} of {counted(len(self._weights), 'weight')}"
        return f"{all_of} · {sums.numel:,} elements · {format_nbytes(sums.nbytes)}"

    def _columns(self) -> list[str]:
        """Return the columns in which something is said that is not the same of all."""
        assert self._outline is not None
        told = {"name", "shape", "bytes", *self._outline.varying} | ({"figures", "findings"} if self._found else set())
        return [name for name in ("name", "kind", "shape", "dtype", "where", "bytes", "grad", "figures", "findings",
                                  "notes") if name in told]  # fmt: skip

    # --- one weight

    def _weight(self, request: Mapping[str, Any]) -> WeightEntry:
        number = _integer(request.get("weight"))
        if not 0 <= number < len(self._weights):
            raise BadRequestError(_NONSENSE)
        return self._reach(self._weights[number])

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is shown of one weight."""
        self._leave()
        entry = self._weight(request)
        return {"type": "weight", **entry_data(entry, self._opened, self._options.printoptions)}

    def _stats(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return all figures of one weight, which is read whole."""
        entry = self._weight(request)
        entry.check_readable()
        return {"type": "stats", **stats_data(summarize_stats(entry.values(), self._options, name=entry.name))}

    def _values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have the navigator look at one weight, or leave."""
        from tensornp.widget.navigator import the_navigator

        self._leave()
        if request.get("open") is True:
            entry = self._weight(request)
            entry.check_readable()
            fact = self._weights[_integer(request.get("weight"))]
            the_navigator().show(
                lambda: self._reach(fact).values(),
                anchor=self.place,
                name=entry.code,
                array_name=array_code(entry, self._opened),
                printoptions=self._options.printoptions,
            )
        return {"type": "values", "open": request.get("open") is True}

    def _leave(self) -> None:
        """Send the navigator away, if it is here."""
        from tensornp.widget.navigator import the_navigator

        if the_navigator().anchor == self.place:
            the_navigator().rest()

    def _bind(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Bind the array of one weight to a name."""
        if self._binder is None:
            raise BadRequestError("there is no notebook to bind a name in")
        entry, name = self._weight(request), request.get("name")
        if not isinstance(name, str):
            raise BadRequestError(_NONSENSE)
        self._binder(name, entry.to_numpy, request.get("overwrite") is True)
        return {"type": "bound", "text": f"bound: {name} = {array_code(entry, self._opened)}"}

    # --- all weights

    def _scan_all(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to read all weights that are listed, in a thread."""
        if self._scan is None:
            asked = _asked(request)
            chosen = self._outline.chosen(asked) if asked.is_list and self._outline is not None else self._weights
            # What would be computed is read where nothing else is listed.
            stored = [one for one in chosen if one.kind != COMPUTED]
            self.progress, self._scan = 0.0, _Scan(self, stored or list(chosen))
        return {"type": "scanning"}

    def _end(self, _: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Have a scan end, which then shows what it has read."""
        if self._scan is not None:
            self._scan.is_wanted = False
        return {"type": "scanning"}

    def note_progress(self, scan: _Scan, share: float) -> None:
        """Show how far a scan is, unless nobody wants to hear of it any more."""
        with self._lock:
            if scan is self._scan:
                self.progress = share

    def note_found(self, scan: _Scan, found: dict[str, Found], said: str) -> None:
        """Show what a scan has found."""
        with self._lock, self.hold_sync():
            if scan is not self._scan:
                return
            self._scan, self.progress, self.scanned = None, -1.0, said
            self._found |= found
            names = {name for name, one in self._found.items() if one.is_alarm}
            if self._outline is not None:
                self._num_found = self._outline.counted_below(names)
                self._outline.forget()

    @property
    def reach(self) -> Reach:
        """What gives a weight."""
        return self._reach


class _Scan:
    """Reads weights in a thread of its own, and tells the widget."""

    def __init__(self, widget: WeightsWidget, weights: list[Listed]) -> None:
        self.is_wanted = True
        self._widget, self._weights = widget, weights
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        found: dict[str, Found] = {}
        try:
            table = scan_entries(list(map(self._reached, self._weights)), progress=self._told)
            for name, stats in table.items():
                findings = table.findings(name)
                texts = tuple(one.text for one in findings)
                rank = min((one.rank for one in findings), default=_UNRANKED)
                found[name] = Found(rank, texts, *line_of(stats))
            for name, why in table.failed.items():
                found[name] = Found(0, (f"not read: {why}",))
            num_found = sum(one.is_alarm for one in found.values())
            num_quiet = sum(bool(one.findings) and not one.is_alarm for one in found.values())
            said = f"{counted(num_found, 'weight')} of {len(found):,} with findings"
            said += f", {num_quiet:,} with what may be on purpose" if num_quiet else ""
            said += "" if table.complete else f"; stopped, {len(self._weights) - len(found):,} were not read"
        except Exception as error:
            said = str(error) if isinstance(error, TensornpError) else error_text(error)
        self._widget.note_found(self, found, said)

    def _reached(self, one: Listed) -> WeightEntry:
        return self._widget.reach(one)

    def _told(self, done: int, total: int) -> bool:
        self._widget.note_progress(self, done / max(total, 1))
        return self.is_wanted


def _asked(request: Mapping[str, Any]) -> Asked:
    """Return what a page wants to see, taken from a message that may be anything."""
    search, sort, toggled = request.get("search", ""), request.get("sort", ""), request.get("toggled", [])
    filters = request.get("filters", {})
    if not isinstance(search, str) or not isinstance(toggled, list) or len(toggled) > MAX_TOGGLED:
        raise BadRequestError(_NONSENSE)
    if sort not in ("", *COLUMNS) or not isinstance(filters, dict) or not filters.keys() <= set(FILTERS):
        raise BadRequestError(_NONSENSE)
    chosen = tuple(sorted((column, value) for column, value in filters.items() if value))
    if not all(isinstance(value, str) and (column != "bytes" or _IS_SIZE.fullmatch(value)) for column, value in chosen):
        raise BadRequestError(_NONSENSE)
    return Asked(search.strip(), sort, request.get("descending") is True, chosen, frozenset(map(_integer, toggled)))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise BadRequestError(_NONSENSE)
    return value


def _pattern_code(search: str) -> str:
    """Return the argument of `find` that finds the same."""
    if len(search) > 1 and search[0] == search[-1] == "/":
        return f"re.compile({search[1:-1]!r})"
    return repr(search)
