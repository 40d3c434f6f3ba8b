"""The kernel's side of a pass on a page: it asks for lines of the tree of calls, and gets these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import cut
from tensornp.passes.follow import FollowedPass
from tensornp.passes.records import PassRecord
from tensornp.render.passes.followed_pass import alarms_of, outer_of
from tensornp.widget.answering import AnsweringWidget
from tensornp.widget.dock import module, stylesheet
from tensornp.widget.passes.call_data import call_data
from tensornp.widget.passes.call_tree import CallTree
from tensornp.widget.tree_requests import NONSENSE, integer_of, lines_answer

_MAX_LABEL = 100


class CallsWidget(AnsweringWidget):
    """The calls of a pass that is over, which dock into its static tree, of class `anchor`.

    A request of the page is complete by itself, and nothing of it is remembered.

    Parameters
    ----------
    run : FollowedPass
        Of which the record is kept, that holds no tensor.
    opened : str
        The expression that reaches the pass; empty where none is known.
    """

    _esm = module("calls")
    _css = stylesheet("tree", "calls")

    label = traitlets.Unicode(help="whose calls these are").tag(sync=True)

    def __init__(self, run: FollowedPass, *, opened: str = "", anchor: str = "") -> None:
        self._record: PassRecord = run.record
        self._origin, self._opened = run.first("nan") or run.first("inf"), opened
        self._alarms = alarms_of(self._record, self._origin, run.failed)
        self._made_tree: CallTree | None = None
        self._grads = {one.name: one for one in self._record.grads}
        title = ", ".join(dict.fromkeys(call.code or call.title for call in run.calls if call.parent is None))
        super().__init__(
            {"lines": lambda request: lines_answer(request, self._tree), "open": self._open},
            anchor=anchor,
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
            self._origin, self._alarms = None, {}
        super().close()

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is known of one call."""
        index = integer_of(request.get("row"))
        if not 0 <= index < len(self._record.calls):
            raise BadRequestError(NONSENSE)
        origin = self._origin
        is_born = origin is not None and origin.call == index
        born = (self._alarms[index], origin.source) if origin is not None and is_born else ("", None)
        return {"type": "call", **call_data(self._record.calls, self._grads, index, self._opened, born)}
