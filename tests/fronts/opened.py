"""A browser for the tests of a file, and a page in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser.conftest import launched, page
from playwright.sync_api import Browser

__all__ = ["browser", "page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser
