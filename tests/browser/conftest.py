"""A browser and a server for all browser tests; where none can be had, they skip, and in CI they fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, ViewportSize, sync_playwright

from browser.lab import Server, close_notebooks

VIEWPORT = ViewportSize(width=1200, height=900)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("TENSORNP_CHROMIUM") or next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser, for no longer than a folder: while Playwright lives, its event loop runs in this thread."""
    path = _chromium()
    if path is None and not os.environ.get("TENSORNP_REQUIRE_BROWSER"):
        pytest.skip("no Chromium found; python tests/run.py installs one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=VIEWPORT)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="package")
def _blank(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=VIEWPORT)
    yield context.new_page()
    context.close()


@pytest.fixture
def blank(_blank: Page) -> Page:
    """A blank page for whoever leaves nothing behind that outlives its content: no clock, no medium, no listener."""
    _blank.set_viewport_size(VIEWPORT)
    _blank.mouse.move(-1, -1)
    _blank.goto("about:blank")
    return _blank


@pytest.fixture(scope="package")
def _labs(browser: Browser) -> Iterator[list[Page]]:
    pages: list[Page] = []
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def lab(browser: Browser, _labs: list[Page], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page for JupyterLab, which takes seconds to load: a test that passes leaves it open, without a notebook."""
    page = _labs.pop() if _labs else browser.new_context(viewport=VIEWPORT).new_page()
    page.set_viewport_size(VIEWPORT)
    num_failed = request.session.testsfailed
    yield page
    if request.session.testsfailed > num_failed:
        # A dialog may stand open, or the page be gone.
        with suppress(Error):
            print(f"The page said:\n{page.inner_text('body', timeout=10_000)}")
        page.context.close()
        return
    close_notebooks(page)
    _labs.append(page)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _end_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "server" in request.fixturenames:
        request.getfixturevalue("server").end_sessions()
