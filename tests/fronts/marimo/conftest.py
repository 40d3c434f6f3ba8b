"""The browser in which pages of marimo are looked at."""

from browser.conftest import browser, page  # noqa: F401
