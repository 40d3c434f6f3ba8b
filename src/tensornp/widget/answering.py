"""Answer the numbered requests of a live part of a page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from threading import RLock
from typing import Any

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.errors import NameTakenError, TensornpError
from tensornp.widget.dock import DockingWidget
from tensornp.widget.worker import Worker

Request = Mapping[str, Any]
Answer = dict[str, Any]
Answers = dict[str, Callable[[Request], Answer | tuple[Answer, list[bytes]]]]
"""By its type, what answers a request, perhaps with numbers that travel as bytes."""


class AnsweringWidget(DockingWidget):
    """A widget that answers the requests in `answers`, and sends errors to the page."""

    def __init__(self, answers: Answers, **traits: Any) -> None:
        # Requests may come in a thread of their own while a cell runs (a subshell of the kernel).
        self._lock, self._worker = RLock(), Worker()
        self._answers = answers
        self._latest: dict[Hashable, Request] = {}
        super().__init__(**traits)

    def close(self) -> None:
        """Take it out of the page."""
        self._worker.forget()
        self._latest.clear()
        super().close()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take no state from the browser, which may send anything."""

    def _waits_as(self, request: Request) -> Hashable | None:
        """Return the queue of a slow request, None for one that is answered at once.

        Only the latest request waits in each queue.
        """
        return None

    def _is_latest(self, request: Request) -> bool:
        """Return whether a request is the latest of its queue; slow answers stop if not."""
        return self._latest.get(self._waits_as(request)) is request

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        super()._receive(_, content, buffers)
        kind = content.get("type") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in self._answers:
            return
        page, number = content.get("page"), content.get("number")
        if not isinstance(page, str) or type(number) is not int:
            return
        key = self._waits_as(content)
        if key is not None:
            self._latest[key] = content
            self._worker.do(key, lambda: self._tell(kind, content))
            return
        with self._lock:
            self._tell(kind, content)

    @outside_modes
    def _tell(self, kind: str, request: Request) -> None:
        """Send the answer to a request, or the error."""
        sent: list[bytes] = []
        try:
            answered = self._answers[kind](request)
            answer, sent = answered if isinstance(answered, tuple) else (answered, [])
        except NameTakenError as error:
            answer = {"type": "error", "text": str(error), "canOverwrite": error.can_overwrite}
        except TensornpError as error:
            answer = {"type": "error", "text": str(error)}
        except Exception as error:
            answer = {"type": "error", "text": error_text(error)}
        self.send({**answer, "page": request["page"], "number": request["number"]}, sent)
