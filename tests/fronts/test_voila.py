"""voila, which runs a notebook for each visitor and shows its outputs alone: what is live answers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fronts.everywhere import SHOWN, amiss, environment, notebook
from fronts.opened import browser, page  # noqa: F401
from playwright.sync_api import Page, expect
from served_files import free_port

pytestmark = pytest.mark.browser
TIMEOUT_S = 240


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a server of the notebook, on loopback."""
    port = free_port()
    path = notebook(tmp_path / "shown.ipynb")
    command = [sys.executable, "-m", "voila", path.name, "--no-browser", "--Voila.ip=127.0.0.1", f"--port={port}"]
    log = tmp_path / "voila.log"
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=log.open("w"), stderr=subprocess.STDOUT
    )
    try:
        end = time.monotonic() + TIMEOUT_S
        while "running at" not in log.read_text(encoding="utf-8"):
            assert server.poll() is None and time.monotonic() < end, log.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(30)


def test_each_cell_shows_its_card_once_and_what_is_live_answers(page: Page, address: str) -> None:  # noqa: F811
    """The static cards give their places to the live parts; no output is empty, and no error is met."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_default_timeout(TIMEOUT_S * 1000)
    page.goto(address)
    expect(page.get_by_role("treegrid")).to_have_count(2, timeout=TIMEOUT_S * 1000)
    expect(page.get_by_role("radiogroup")).to_have_count(1)
    outputs = page.locator(".jp-OutputArea-output").filter(has=page.locator(".tensornp, .tensornp-static")).all()
    for output in outputs[2:]:  # A tree asks for its rows once it stands.
        expect(output).to_contain_text("(2, 3)" if output is outputs[3] else "(3, 4)")
    for cell, output in zip(SHOWN, outputs, strict=True):
        assert amiss(output.inner_text(), [cell]) == {}, output.inner_text()
    card, _, weights, calls = outputs
    card.get_by_role("radio", name="copy").check(force=True)
    expect(card.get_by_text("copy 160 bytes", exact=True)).to_be_visible()
    weights.get_by_text("weight", exact=True).click()
    expect(weights.locator(".tensornp-panel pre")).to_contain_text("array([[")
    calls.get_by_label("Search the names").fill("1")
    expect(calls.get_by_text("1 of 3 calls").first).to_be_visible()
    assert not errors
