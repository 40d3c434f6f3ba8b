"""The live tree of a model's weights."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import traitlets

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.stats import summarize_stats
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.requested import reached
from tensornp.models.module_view import ModuleView
from tensornp.render.models.entry import array_code
from tensornp.render.models.module import partly_read
from tensornp.widget.answering import AnsweringWidget, Answers
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.looked_at import Binder, LookedAt
from tensornp.widget.scanning import Scanning
from tensornp.widget.tree import NONSENSE, integer_of
from tensornp.widget.weight_data import entry_data, fitted, stats_data
from tensornp.widget.weight_rows import EXTREMES, NOT_FINITE, Found, findings_data, note_data
from tensornp.widget.weight_tree import WeightTree
from tensornp.widget.weights_scan import ScanFound, found_in

if TYPE_CHECKING:
    from tensornp.widget.navigator import NavigatorWidget

_UNREAD = "values not read yet; Scan looks for NaN"


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
    binder : callable, optional
        What binds a name in the user's namespace; without one, no name is offered.
    """

    _esm = module("weights")
    _css = stylesheet("tree", "weights")

    label = traitlets.Unicode(help="what has the weights").tag(sync=True)
    place = traitlets.Unicode(help="the class of what the navigator docks into").tag(sync=True)
    has_values = traitlets.Bool(help="whether the navigator is offered").tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    progress = traitlets.Float(-1, help="the share that a scan has read; -1 where none runs").tag(sync=True)
    scanned = traitlets.Unicode(help="what the last scan has found, in a sentence").tag(sync=True)
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
    ) -> None:
        # Of what is registered as None there is nothing to see.
        self._weights: Sequence[WeightEntry] = [one for one in weights if not one._is_nothing]
        self.opened, self._classes = opened, classes
        self._options, self._binder = options or DisplayOptions(), binder
        self._made_tree: WeightTree | None = None
        self._scan: Scanning[ScanFound] | None = None
        self._navigator: NavigatorWidget | None = None
        unread = any(one._can_be_read and one.numel for one in self._weights)
        answers: Answers = {
            "rows": self._rows, "open": self._open, "stats": self._stats, "values": self._values,
            "bind": self._bind, "scan": self._scan_all, "end": self._end, "found": self._found_in,
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

    @property
    def _tree(self) -> WeightTree:
        """The tree, which is made when it is first asked for."""
        if self._made_tree is None:
            self._made_tree = WeightTree(self._weights, self._classes, lambda: self.opened)
        return self._made_tree

    @property
    def _found(self) -> Mapping[str, Found]:
        """Return the results of scans by weight."""
        return self._made_tree.found if self._made_tree is not None else {}

    def close(self) -> None:
        """Take it out of the page, and let go of the weights."""
        with self._lock:
            self._end()
            self._weights, self._made_tree = (), None
            navigator, self._navigator = self._navigator, None
        if navigator is not None:
            navigator.close()
        super().close()

    def companions(self) -> tuple[DockingWidget, ...]:
        """Return the navigator, made now."""
        from tensornp.widget.navigator import own_navigator

        self._navigator = own_navigator()
        return (self._navigator,)

    def tell(self, view: ModuleView) -> None:
        """Show the findings of a module without a scan."""
        known = {name: Found(one.findings, alarms=one.alarms) for name, one in view.alarms.items()}
        self.findings = [*findings_data(self._weights, known), *note_data(partly_read(view))]

    def _waits_as(self, request: Mapping[str, Any]) -> Hashable | None:
        kind, page = request["type"], request["page"]
        # A page shows the last statistics alone, and each name that it wants is bound.
        return {"stats": (kind, page), "bind": (kind, page, request["number"])}.get(kind)

    def _rows(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._tree.rows(request)

    # --- one weight

    def _weight(self, request: Mapping[str, Any]) -> WeightEntry:
        number = integer_of(request.get("weight"))
        self._check(number)
        return reached(self._weights[number])

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self._weights):
            raise BadRequestError(NONSENSE)

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of one weight."""
        self._leave()
        entry = self._weight(request)
        told = self._found_in(request) | {"type": "weight"}
        printoptions = fitted(self._options.printoptions, integer_of(request.get("width", 0)))
        return {**entry_data(entry, self.opened, printoptions), **told}

    def _found_in(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the findings of the last scan in one weight."""
        number = integer_of(request.get("weight"))
        self._check(number)
        row = self._weights[number]
        findings = self._found[row.name].findings if row.name in self._found else ()
        found = legible("; ".join(one.text for one in findings))
        return {"type": "found", "found": f"found by the scan: {found}" if found else ""}

    def _stats(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return all figures of one weight, which is read whole."""
        entry = self._weight(request)
        return {"type": "stats", **stats_data(summarize_stats(entry._values_here(), self._options, name=entry.name))}

    def _values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Open the navigator on one weight, at a goal if the page has one, or close it."""
        from tensornp.widget.navigator import own_navigator

        goal = request.get("goal", "")
        if goal not in ("", *NOT_FINITE, *EXTREMES.values()):
            raise BadRequestError(NONSENSE)
        self._leave()
        if request.get("open") is True:
            entry = self._weight(request)
            entry._values_here()
            row, shard = self._weights[integer_of(request.get("weight"))], "local" if entry._has_part else None
            looked_at = LookedAt(
                lambda: reached(row)._values_here(),
                name=entry.code,
                array_name=array_code(entry, self.opened),
                binder=self._binder,
                take=lambda index: reached(row).to_numpy(index, shard=shard),
                suggestion=_suggestion(entry.name),
                options=self._options,
            )
            if self._navigator is None or self._navigator.comm is None:
                self._navigator = own_navigator()
            self._navigator.show(looked_at, anchor=self.place, goal=goal)
        return {"type": "values", "open": request.get("open") is True}

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
        shard = "local" if entry._has_part else None
        self._binder(name, partial(entry.to_numpy, shard=shard), request.get("overwrite") is True)
        code = array_code(entry, self.opened)
        return {"type": "bound", "text": f"bound to {name}: {code}" if code else f"bound to {name}"}

    # --- all weights

    def _scan_all(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to read all weights that are listed, in a thread."""
        if self._scan is None:
            tree = self._tree
            asked = tree.asked(request)
            chosen = tree.outline.chosen(asked, tree.order) if asked.is_list else self._weights
            # What would be computed is read where nothing else is listed.
            stored = [one for one in chosen if one.kind != COMPUTED]
            self.progress, wanted = 0.0, stored or list(chosen)
            self._scan = Scanning(partial(found_in, wanted), self._note_progress, self._note_found)
        return {"type": "scanning"}

    def _end(self, _: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """End the scan, which then shows its results."""
        if self._scan is not None:
            self._scan.end()
        return {"type": "scanning"}

    def _note_progress(self, scan: Scanning[ScanFound], share: float) -> None:
        """Show the progress of a scan, unless it is not the current one."""
        with self._lock:
            if scan is self._scan:
                self.progress = share

    def _note_found(self, scan: Scanning[ScanFound], scanned: ScanFound | None, reason: str) -> None:
        """Show the results of the current scan."""
        with self._lock, self.hold_sync():
            if scan is not self._scan:
                return
            found, said, stopped = scanned if scanned is not None else ScanFound({}, reason)
            self._scan, self.scanned = None, said
            if found:
                self._tree.learn(found)
                self.findings = findings_data(self._weights, self._found) or self._calm()
            if stopped:
                self.findings = [*(one for one in self.findings if one["name"]), *note_data(stopped)]
            # Whoever sees that it has ended sees what it has found.
            self.progress = -1.0

    def _calm(self) -> list[dict[str, Any]]:
        """Return a note that the read weights are finite, as there are no findings."""
        num = sum(bool(one.figures) for one in self._found.values())
        return note_data(f"no NaN and no infinity in {counted(num, 'weight')}") if num else []


def _suggestion(name: str) -> str:
    """Return a name for an array of a weight: ``query_weight_np``."""
    *before, own = re.findall(r"\w+", name)[-2:] or [""]
    told = (f"{'_'.join(words)}_np" for words in ([*before, own], [own]))
    return next(filter(str.isidentifier, told), "array_np")
