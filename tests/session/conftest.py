"""A session without a front end: names, a cell, and what a traceback holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tensornp.core.summary.options import DisplayOptions
from tensornp.session import ledger


class FakeSession:
    """What the ledger and a release ask for, as a test sets it."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.cell, self.source = "In[1]", ""
        self.options = DisplayOptions()
        self.in_traceback: dict[str, Any] = {}

    def traceback_names(self) -> dict[str, Any]:
        return dict(self.in_traceback)

    def clear_last_traceback(self) -> None:
        self.in_traceback.clear()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a search may need more than its milliseconds."""
    monkeypatch.setattr(ledger, "MAX_SEARCH_SECONDS", 60)


@pytest.fixture
def session() -> Iterator[FakeSession]:
    """Return a session of which nothing is known."""
    yield FakeSession()
