"""The example in a page of marimo in Chromium."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from served_files import free_port

pytestmark = pytest.mark.browser
EXAMPLE = Path(__file__).parents[3] / "examples" / "6-marimo.py"
TIMEOUT_S = 240


@contextlib.contextmanager
def served(path: Path) -> Iterator[str]:
    """Give the address of a server that runs a notebook, with a home of its own, and end it."""
    port = free_port()
    command = [sys.executable, "-m", "marimo", "run", path.name, "--headless", "--no-token"]
    address = f"http://127.0.0.1:{port}"
    folder, paths = str(path.parent), os.pathsep.join(filter(None, sys.path))
    env = os.environ | {"PYTHONPATH": paths, "HOME": folder, "XDG_CONFIG_HOME": folder, "MARIMO_SKIP_UPDATE_CHECK": "1"}
    with (path.parent / "marimo.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], cwd=path.parent, env=env,
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait_for(f"{address}/health", server)
            yield address
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no answer from {address}; it has ended with {server.poll()}")


def open_example(page: Page, address: str) -> list[str]:
    """Open the page, wait until its last live part is there, and return the errors of its scripts, which may come."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_default_timeout(TIMEOUT_S * 1000)
    expect.set_options(timeout=TIMEOUT_S * 1000)
    page.goto(address)
    expect(page.get_by_role("treegrid")).to_have_count(2)
    expect(page.get_by_role("radiogroup")).to_have_count(1)
    return errors


def try_all(page: Page) -> None:
    """Do in the page what one does in JupyterLab: a mode, the values, a weight and its values, a scan, a search."""
    page.get_by_role("radio", name="copy").check(force=True)
    expect(page.get_by_text("copy ").first).to_be_visible()
    page.get_by_role("button", name="Values", exact=True).click()
    page.get_by_role("grid").locator("[tabindex='0']").press("ArrowRight")
    expect(page.get_by_role("grid").locator("[tabindex='0']")).to_have_attribute("aria-colindex", "3")
    weights = page.locator(".tensornp-weights")
    weights.get_by_text("weight", exact=True).first.click()
    weights.get_by_role("button", name="Values", exact=True).click()
    expect(weights.get_by_role("grid")).to_be_visible()
    weights.get_by_role("button", name="Read values").click()
    expect(weights.get_by_text("0 findings").last).to_be_visible()
    calls = page.locator(".tensornp-calls")
    calls.get_by_label("Search the names").fill("1")
    expect(calls.get_by_text("1 of 4 calls").first).to_be_visible()


def test_the_example_runs(page: Page, tmp_path: Path) -> None:
    """Cards and live parts, of which none is shown beside its card, and what the slider moves is shown anew."""
    shutil.copy(EXAMPLE, tmp_path)
    with served(tmp_path / EXAMPLE.name) as address:
        errors = open_example(page, address)
        try_all(page)
        expect(page.locator("marimo-anywidget").first).to_be_hidden()
        page.get_by_role("slider").press("End")
        expect(page.locator(".tensornp-calls").get_by_text("NaN").first).to_be_visible()
        # Those of the cells that have run again are gone, with what was opened in them.
        expect(page.get_by_role("radiogroup")).to_have_count(1)
        expect(page.locator(".tensornp-calls")).to_have_count(1)
        assert not errors
