"""Serve lines of the tree of calls to a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

import traitlets

from tensornp.core.summary.options import DisplayOptions
from tensornp.errors import BadRequestError, NoDataError
from tensornp.models.names.quoted import cut
from tensornp.passes.follow import FollowedPass
from tensornp.passes.records import FORWARD, Origin, PassRecord
from tensornp.passes.verdict.origin import first_origin
from tensornp.render.passes.followed_pass import alarms_of, outer_of
from tensornp.widget.answering import AnsweringWidget
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.looked_at import Binder, LookedAt
from tensornp.widget.passes.call_data import call_data, code_of, operators_data
from tensornp.widget.passes.call_tree import CallTree
from tensornp.widget.passes.kept_values import values_of, without_tensors
from tensornp.widget.tree_requests import NONSENSE, integer_of, lines_answer

if TYPE_CHECKING:
    from tensornp.widget.navigator import NavigatorWidget

_MAX_LABEL = 100


class CallsWidget(AnsweringWidget):
    """The calls of a finished pass, which dock into the static tree `anchor`.

    A request of the page is complete by itself, and nothing of it is remembered.

    Parameters
    ----------
    run : FollowedPass
        Of which the record is kept, that holds no tensor.
    opened : str
        The expression that reaches the pass; empty where none is known.
    options : DisplayOptions, optional
        How what was kept is shown.
    binder : callable, optional
        What binds a name in the user's namespace.
    has_values : bool
        Whether the navigator can look at what was kept.
    """

    _esm = module("calls")
    _css = stylesheet("tree", "calls")

    label = traitlets.Unicode(help="whose calls these are").tag(sync=True)
    place = traitlets.Unicode(help="the class of what the navigator docks into").tag(sync=True)

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
        self._options, self._has_values = options or DisplayOptions(), has_values
        self._record, self._kept = without_tensors(run._record)
        # What was kept goes with the pass, unless no name reaches that.
        self._run: Callable[[], FollowedPass | None] = ref(run) if opened else lambda: run
        self._binder = binder
        self._navigator: NavigatorWidget | None = None
        self._origin, self._opened = first_origin(run._record), opened
        self._alarms = alarms_of(self._record, self._origin, run.failed)
        self._made_tree: CallTree | None = None
        self._grads = {one.name: one for one in self._record.grads}
        title = ", ".join(dict.fromkeys(call.code or call.title for call in run.calls if call.parent is None))
        super().__init__(
            {
                "lines": lambda request: lines_answer(request, self._tree),
                "open": self._open,
                "values": self._values,
            },
            anchor=anchor,
            place=f"{anchor}-values",
            label=cut(title, _MAX_LABEL),
        )

    @property
    def _tree(self) -> CallTree:
        """The tree, which is made when it is first asked for."""
        if self._made_tree is None:
            what = f".first({self._origin.what!r})" if self._origin is not None else ".problems"
            code = f"{self._opened}{what}" if self._opened else ""
            self._made_tree = CallTree(self._record, self._alarms, outer_of(self._record), code)
        return self._made_tree

    def close(self) -> None:
        """Take it out of the page, and let go of the pass."""
        with self._lock:
            self._record, self._made_tree, self._grads = PassRecord(), None, {}
            self._origin, self._alarms, self._kept, self._run = None, {}, frozenset(), lambda: None
            navigator, self._navigator = self._navigator, None
        if navigator is not None:
            navigator.close()
        super().close()

    def companions(self) -> tuple[DockingWidget, ...]:
        """Return the navigator, made now, where a value was kept for it."""
        if not self._kept:
            return ()
        from tensornp.widget.navigator import own_navigator

        self._navigator = own_navigator()
        return (self._navigator,)

    def _index(self, request: Mapping[str, Any]) -> int:
        index = integer_of(request.get("row"))
        if not 0 <= index < len(self._record.calls):
            raise BadRequestError(NONSENSE)
        return index

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of one call."""
        self._leave()
        index, origin = self._index(request), self._origin
        is_born = origin is not None and origin.call == index
        born = (self._told_at(index, origin), origin.source) if origin is not None and is_born else ("", None)
        kept = [number for call, number in self._kept if call == index and self._has_values]
        inside = [one for one in self._record.operators if one.call == index]
        return {
            "type": "call",
            **call_data(self._record.calls, self._grads, index, self._opened, born, kept),
            "operators": operators_data(inside, origin.operator_index if origin is not None else None),
        }

    def _told_at(self, index: int, origin: Origin) -> str:
        """Return the text at the line of an origin."""
        is_around = not origin.operator and any(call.parent == index for call in self._record.calls)
        if not is_around or origin.phase != FORWARD:
            return self._alarms[index]
        return "born before" if origin.is_exact else "born in this code"

    def _values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have the navigator look at a value that was kept, or leave."""
        from tensornp.widget.navigator import own_navigator

        self._leave()
        if request.get("open") is True:
            index, number = self._index(request), integer_of(request.get("value"))
            if (index, number) not in self._kept:
                raise BadRequestError(NONSENSE)
            call = self._record.calls[index]
            path, _ = values_of(call)[number]
            code = code_of(self._record.calls, call, self._opened)
            looked_at = LookedAt(
                lambda: self._tensor(index, number),
                name=f"{code}.{path}.tensor" if code else "",
                binder=self._binder if code else None,
                suggestion="kept_np",
                options=self._options,
            )
            if self._navigator is None or self._navigator.comm is None:
                self._navigator = own_navigator()
            self._navigator.show(looked_at, anchor=self.place)
        return {"type": "values", "open": request.get("open") is True}

    def _tensor(self, index: int, number: int) -> Any:
        """Return a kept value; NoDataError if the pass is gone."""
        run = self._run()
        if run is None:
            raise NoDataError("what was kept has gone with the pass; follow it again")
        return values_of(run.calls[index])[number][1].tensor

    def _leave(self) -> None:
        """Send the navigator away, if it is here."""
        if self._navigator is not None and self._navigator.anchor:
            self._navigator.rest()
