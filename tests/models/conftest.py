"""No test of weights knows what another one has read."""

from __future__ import annotations

import pytest

from tensornp.models.reading.stats_cache import KEPT


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    """Forget the statistics of files, which are kept once a file is old enough: on a slow machine, within a test."""
    KEPT.clear()
