"""The live tree of a followed pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from tensornp.core.summary.options import DisplayOptions
from tensornp.errors import BadRequestError
from tensornp.passes.records import Call
from tensornp.render.passes.call import panel_html, values_of
from tensornp.render.passes.card import alarms_of, title_of
from tensornp.widget.looked_at import Binder, LookedAt
from tensornp.widget.part import LivePart, module, stylesheet
from tensornp.widget.passes.call_tree import LiveCalls
from tensornp.widget.values import NONSENSE, Values, integer_of

if TYPE_CHECKING:
    from tensornp.passes.follow import FollowedPass

_MAX_LABEL = 100


class CallsWidget(LivePart):
    """The calls of a finished pass, which dock into the static tree of class `anchor`.

    Holds the pass, also copies that it kept, until the cell runs again. `opened` is its expression, empty if there is
    none.
    """

    _esm = module("calls")
    _css = stylesheet("tree", "navigator", "calls")

    label = traitlets.Unicode(help="the modules of these calls").tag(sync=True)

    def __init__(
        self,
        run: FollowedPass,
        *,
        opened: str = "",
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
    ) -> None:
        self._run, self._opened, self._binder = run, opened, binder
        self._options = options or DisplayOptions()
        self._made_tree: LiveCalls | None = None
        handlers = {"rows": self._rows, "open": self._open, "values": self._open_values}
        super().__init__(handlers, values=Values(), anchor=anchor, label=title_of(run._record)[:_MAX_LABEL])

    @property
    def _tree(self) -> LiveCalls:
        """The tree, made when it is first asked for."""
        if self._made_tree is None:
            origin = ".origin" if self._run.origin is not None else ".problems"
            code = f"{self._opened}{origin}" if self._opened else ""
            self._made_tree = LiveCalls(self._run._record, alarms_of(self._run.findings), code)
        return self._made_tree

    def close(self) -> None:
        """Take it out of the page, and let go of the pass."""
        with self._lock:
            self._handlers, self._made_tree = {}, None
            self.__dict__.pop("_run", None)
        super().close()

    def _rows(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._tree.rows(request)

    def _call(self, request: Mapping[str, Any]) -> Call:
        index = integer_of(request.get("row"))
        if not 0 < index < len(self._run._record.calls):
            raise BadRequestError(NONSENSE)
        return self._run._record.calls[index]

    def _code(self, call: Call) -> str:
        """Return the expression of a call, empty if none reaches the pass."""
        if not self._opened:
            return ""
        is_first = bool(call.name) and call.name != call.code and self._run.find(call.name)[:1] == [call]
        return f"{self._opened}[{call.name!r}]" if is_first else f"{self._opened}[{call.index}]"

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the HTML of one call."""
        call = self._call(request)
        html = panel_html(call, self._run._record)
        return {"type": "call", "name": call.title, "code": self._code(call), "html": html}

    def _open_values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what opens the window on a kept value."""
        call, number = self._call(request), integer_of(request.get("value"))
        values = values_of(call)
        if not 0 <= number < len(values) or values[number][2].tensor is None:
            raise BadRequestError(NONSENSE)
        kind, path, value = values[number]
        code = self._code(call)
        looked_at = LookedAt(
            lambda: value.tensor,
            name=f"{code}.{kind}[{path!r}].tensor" if code else "",
            binder=self._binder if code else None,
            suggestion="kept_np",
            options=self._options,
        )
        assert self._values is not None
        return self._values.show(looked_at)
