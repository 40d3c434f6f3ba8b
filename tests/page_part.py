"""A page's part in a live part: it asks by messages, and hears the answers as JSON, which has no NaN."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60


def wait(is_there: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < end, "no answer"
        time.sleep(0.01)


class PagePart:
    """What is sent to a widget, and what comes back."""

    def __init__(self, widget: Any) -> None:
        self.widget = widget
        self.answers: list[dict[str, Any]] = []
        self.buffers: list[list[bytes]] = []
        widget.send = self._hear

    def _hear(self, content: dict[str, Any], buffers: Any = None) -> None:
        self.buffers.append([bytes(buffer) for buffer in buffers or []])
        self.answers.append(json.loads(json.dumps(content, allow_nan=False)))

    def send(self, content: Any) -> None:
        self.widget._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})

    def ask(self, kind: str, **request: Any) -> dict[str, Any]:
        """Return the one answer to a request, which has its number."""
        number = len(self.answers)
        self.send({"type": kind, "page": "p", "number": number, **request})
        wait(lambda: len(self.answers) > number)
        (answer,) = self.answers[number:]
        assert (answer["page"], answer["number"]) == ("p", number)
        return answer
