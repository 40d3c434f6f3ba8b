"""The browser in which pages of marimo are looked at."""

from fronts.opened import browser, page  # noqa: F401
