"""The live tree of a model's weights."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import traitlets

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.stats.record import alarms_of
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.widget.page import Handler, item_of
from tensornp.widget.part import LivePart, module, stylesheet
from tensornp.widget.weight_rows import Found, findings_html, found_in, note_html
from tensornp.widget.weight_tree import WeightTree

if TYPE_CHECKING:
    from tensornp.models.module_view import ModuleView
    from tensornp.widget.values import Binder

TOLD_EVERY_S = 0.2
"""Seconds between two reports of the progress of a scan."""
_UNREAD = "values not read yet: reading them looks for NaN"


class WeightsWidget(LivePart):
    """The weights of a model, which dock into the static table of class `anchor`.

    `weights` that nobody shall hold have been released. `opened` is the expression of the explorer, and `classes` are
    those of modules by name. Without a `binder`, no name is offered. Only the results of scans are remembered.
    """

    _esm = module("weights")
    _css = stylesheet("tree", "navigator", "weights")

    label = traitlets.Unicode(help="what has the weights").tag(sync=True)
    progress = traitlets.Float(-1, help="the share that a scan has read, -1 if none runs").tag(sync=True)
    scanned = traitlets.Unicode(help="what the last scan has found, in a sentence").tag(sync=True)
    findings = traitlets.Unicode(help="the findings as HTML").tag(sync=True)

    def __init__(
        self,
        weights: Iterable[WeightEntry],
        *,
        opened: str,
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
        classes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        # A weight that is registered as None has nothing to show.
        self._weights: Sequence[WeightEntry] = [one for one in weights if not one._is_nothing]
        self.opened, self._classes = opened, classes
        self._options, self._binder = options or DisplayOptions(), binder
        self._ended: threading.Event | None = None
        can_be_read = any(one._can_be_read and one.numel for one in self._weights)
        handlers: dict[str, Handler] = {
            "rows": self._rows, "open": self._open, "stats": self._stats,
            "values": self._open_values, "bind": self._bind, "scan": self._scan, "end": self._end,
        }  # fmt: skip
        findings = note_html(_UNREAD if can_be_read else "")
        super().__init__(handlers, slow=("stats", "bind"), anchor=anchor, label=opened, findings=findings)

    @cached_property
    def _tree(self) -> WeightTree:
        return WeightTree(self._weights, self._classes)

    def close(self) -> None:
        with self._lock:
            self._end({})
            self._ended, self._weights = None, ()
            self.__dict__.pop("_tree", None)
        super().close()

    def tell(self, view: ModuleView) -> None:
        from tensornp.render.models.scan import partly_read

        every = view.findings().items()
        known = {name: Found(found, alarms=tuple(alarms_of(view.alarms[name]))) for name, found in every}
        self._tree.found |= known
        partly = partly_read(view)
        at_least = "at least " if partly else ""
        self.findings = findings_html(self._weights, known, at_least) + note_html(partly)

    def _rows(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._tree.rows(request)

    # --- one weight

    def _weight(self, request: Mapping[str, Any]) -> WeightEntry:
        from tensornp.models.live.refind import reached

        return reached(item_of(self._weights, request.get("row")))

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from tensornp.core.values.shown.preview import Preview
        from tensornp.models.module_view import preview_of
        from tensornp.render.models.entry import array_code, panel_html

        entry = self._weight(request)
        found = self._tree.found.get(entry.name, Found(()))
        said = legible("; ".join(one.text for one in found.findings))
        seen = preview_of(entry, self._options.printoptions) if entry._can_be_read else Preview("")
        has_values = entry._can_be_read and 0 not in (entry.shape or ())
        cost = f"reads {format_nbytes(entry.nbytes)}"
        copies = {"NumPy": array_code(entry, self.opened), "PyTorch": entry.code}
        return {
            "type": "weight",
            "name": legible(entry.name),
            "html": panel_html(entry, f"found by the scan: {said}" if said else "", seen),
            "copies": {label: code for label, code in copies.items() if code},
            "cost": "" if not has_values else "computes it" if entry.kind == COMPUTED else cost,
            "suggestion": _suggestion(entry.name) if self._binder is not None else "",
        }

    def _stats(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from tensornp.core.summary.stats import summarize_stats
        from tensornp.render.values import panel_stats_html

        entry = self._weight(request)
        summary = summarize_stats(entry._values_here(), self._options, name=entry.name)
        return {"type": "stats", "html": panel_stats_html(summary)}

    def _open_values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from tensornp.models.live.refind import reached
        from tensornp.widget.values import LookedAt

        entry = self._weight(request)
        entry._values_here()
        row = self._weights[request["row"]]
        looked_at = LookedAt(
            lambda: reached(row)._values_here(), entry.code, self._binder, _suggestion(entry.name), self._options
        )
        return self._values.show(looked_at, request.get("goal", ""))

    def _bind(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from tensornp.render.models.entry import array_code
        from tensornp.widget.values import bound

        entry = self._weight(request)
        shard = "local" if entry._has_part else None
        name = bound(self._binder, request, partial(entry.to_numpy, shard=shard))
        code = array_code(entry, self.opened)
        return {"type": "bound", "text": f"assigned to {name}: {code}" if code else f"assigned to {name}"}

    # --- all weights

    def _end(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """End the scan, which then shows what it has read."""
        if self._ended is not None:
            self._ended.set()
        return {}

    def _scan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to read all weights that are listed, in a thread, unless a scan runs."""
        if self._ended is not None:
            return {}
        tree = self._tree
        asked = tree.asked(request)
        chosen = tree.chosen(asked) if asked.is_list else self._weights
        # Computed weights are read if nothing else is listed.
        stored = [one for one in chosen if one.kind != COMPUTED]
        self._ended, self.progress = threading.Event(), 0.0
        task = stored or list(chosen), self._ended
        threading.Thread(target=self._read, args=task, name="tensornp scan", daemon=True).start()
        return {}

    def _read(self, weights: Sequence[WeightEntry], ended: threading.Event) -> None:
        """Scan weights, and show the results unless the part was closed meanwhile."""
        last = 0.0

        def go_on(count: int, total: int) -> bool:
            nonlocal last
            if time.monotonic() - last >= TOLD_EVERY_S:
                last = time.monotonic()
                with self._lock:
                    if self._ended is ended:
                        self.progress = count / max(total, 1)
            return not ended.is_set()

        try:
            found, text = found_in(weights, go_on)
        except Exception as error:
            found, text = {}, str(error)
            if not isinstance(error, TensornpError):
                text = f"it cannot be read: {error_text(error)}"
        # The weights hold what they read.
        del weights
        with self._lock, self.hold_sync():
            if self._ended is ended:
                self._ended = None
                self._show(found, text)
                # Whoever sees that it has ended sees what it has found.
                self.progress = -1.0

    def _show(self, found: Mapping[str, Found], text: str) -> None:
        self.scanned = text
        if found:
            self._tree.found |= found
            num = sum(bool(one.figures) for one in self._tree.found.values())
            calm = note_html(f"no NaN and no infinity in {counted(num, 'weight')}") if num else ""
            self.findings = findings_html(self._weights, self._tree.found) or calm


def _suggestion(name: str) -> str:
    """Return a name for an array of a weight: ``query_weight_np``."""
    *before, own = re.findall(r"\w+", name)[-2:] or [""]
    told = (f"{'_'.join(words)}_np" for words in ([*before, own], [own]))
    return next(filter(str.isidentifier, told), "array_np")
