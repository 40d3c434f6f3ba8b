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
from tensornp.widget.answering import AnsweringWidget, Answers
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.looked_at import Binder, LookedAt
from tensornp.widget.passes.call_tree import LiveCalls
from tensornp.widget.tree import NONSENSE, integer_of

if TYPE_CHECKING:
    from tensornp.passes.follow import FollowedPass
    from tensornp.widget.navigator import NavigatorWidget

_MAX_LABEL = 100


class CallsWidget(AnsweringWidget):
    """The calls of a finished pass, which dock into the static tree of class `anchor`.

    Holds the pass, also copies that it kept, until the cell runs again. `opened` is its expression, empty if there is
    none; `has_values` says whether the navigator can show kept values.
    """

    _esm = module("calls")
    _css = stylesheet("tree", "calls")

    label = traitlets.Unicode(help="the modules of these calls").tag(sync=True)
    place = traitlets.Unicode(help="the class that the navigator docks into").tag(sync=True)

    def __init__(
        self,
        run: FollowedPass,
        *,
        opened: str = "",
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
        has_values: bool = True,
    ) -> None:
        self._run, self._opened, self._binder = run, opened, binder
        self._options, self._has_values = options or DisplayOptions(), has_values
        self._made_tree: LiveCalls | None = None
        self._navigator: NavigatorWidget | None = None
        answers: Answers = {"rows": self._rows, "open": self._open, "values": self._values}
        super().__init__(answers, anchor=anchor, place=f"{anchor}-values", label=title_of(run._record)[:_MAX_LABEL])

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
            navigator, self._navigator = self._navigator, None
            self._answers, self._made_tree = {}, None
            self.__dict__.pop("_run", None)
        if navigator is not None:
            navigator.close()
        super().close()

    def companions(self) -> tuple[DockingWidget, ...]:
        """Return the navigator, made now, if a value was kept for it."""
        if not any(value.tensor is not None for call in self._run._record.calls for _, _, value in values_of(call)):
            return ()
        from tensornp.widget.navigator import own_navigator

        self._navigator = own_navigator()
        return (self._navigator,)

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
        self._leave()
        call = self._call(request)
        html = panel_html(call, self._run._record, has_links=self._has_values)
        return {"type": "call", "name": call.title, "code": self._code(call), "html": html}

    def _values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Open the navigator on a kept value, or close it."""
        from tensornp.widget.navigator import own_navigator

        self._leave()
        if request.get("open") is True:
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
            if self._navigator is None or self._navigator.comm is None:
                self._navigator = own_navigator()
            self._navigator.show(looked_at, anchor=self.place)
        return {"type": "values", "open": request.get("open") is True}

    def _leave(self) -> None:
        """Send the navigator away, if it is here."""
        if self._navigator is not None and self._navigator.anchor:
            self._navigator.rest()
