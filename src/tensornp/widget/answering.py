"""A live part that answers requests: each is complete by itself and has a number, and its answer has the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.locks import Lock
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.errors import TensornpError
from tensornp.widget.dock import DockingWidget
from tensornp.widget.worker import Worker

Request = Mapping[str, Any]
Answer = dict[str, Any]


class AnsweringWidget(DockingWidget):
    """A widget with a row for each kind of request in `_answers`; those in `_slow` are answered in a thread.

    Of slow requests of one kind, a page gets an answer to its latest alone.
    """

    _slow: frozenset[str] = frozenset()

    def __init__(self, **traits: Any) -> None:
        # Requests may come in a thread of their own while a cell runs (a subshell of the kernel).
        self._lock, self._worker = Lock(), Worker()
        super().__init__(**traits)

    def _answers(self) -> Mapping[str, Callable[[Request], Answer]]:
        """Return what answers each kind of request; BadRequestError and its like are told to the page."""
        raise NotImplementedError

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take no state from the browser, which may send anything."""

    def close(self) -> None:
        """Take it out of the page."""
        self._worker.forget()
        super().close()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        super()._receive(_, content, buffers)
        kind = content.get("type") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in self._answers():
            return
        page, number = content.get("page"), content.get("number")
        if not isinstance(page, str) or type(number) is not int:
            return
        if kind in self._slow:
            self._worker.do((kind, page), lambda: self._tell(kind, content, page, number))
            return
        with self._lock:
            self._tell(kind, content, page, number)

    @unnoticed
    def _tell(self, kind: str, request: Request, page: str, number: int) -> None:
        try:
            answer = self._answers()[kind](request)
        except TensornpError as error:
            answer = {"type": "error", "text": str(error)}
        except Exception as error:
            answer = {"type": "error", "text": error_text(error)}
        self.send({**answer, "page": page, "number": number})
