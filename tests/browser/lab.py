"""A JupyterLab server of its own, and the few gestures that the browser tests make in it."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
from kernels import warm_kernels
from playwright.sync_api import Locator, Page, expect
from served_files import free_port

TIMEOUT_S = 120
OPEN = """async (path) => {
  await jupyterapp.commands.execute("filebrowser:refresh");
  await jupyterapp.commands.execute("docmanager:open", { path });
}"""
CLOSE = "[...jupyterapp.shell.widgets('main')].forEach((widget) => widget.dispose())"
expect.set_options(timeout=TIMEOUT_S * 1000)


class Server:
    """One server on loopback, with its own home; it serves JupyterLab and Notebook 7."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        home = folder / "home"
        self._settings = home / "settings" / "@jupyterlab" / "apputils-extension"
        self._settings.mkdir(parents=True)
        self.data = home / "data"
        self.data.mkdir()
        self.root.mkdir()
        self._set("notification", fetchNews="false", checkForUpdates=False)
        self.token, port = secrets.token_hex(16), free_port()
        self.base = f"http://127.0.0.1:{port}"
        places = {
            "HOME": home, "JUPYTER_CONFIG_DIR": home / "config", "JUPYTER_DATA_DIR": self.data,
            "JUPYTER_RUNTIME_DIR": home / "runtime", "IPYTHONDIR": home / "ipython",
            "JUPYTERLAB_SETTINGS_DIR": home / "settings", "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
            "MPLCONFIGDIR": home / "matplotlib", "JUPYTER_PATH": home / "path",
        }  # fmt: skip
        self._kernels = ExitStack()
        self._kernels.enter_context(warm_kernels(home / "path"))
        self.log = folder / "server.log"
        command = [
            sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={self.root}",
            "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--ServerApp.terminals_enabled=False", "--LabApp.expose_app_in_browser=True",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **{name: str(path) for name, path in places.items()}, "JUPYTER_TOKEN": self.token,
                 "JUPYTER_PREFER_ENV_PATH": "1"},
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        _wait_until(self._answers, "the server to answer", self.log)

    def _set(self, plugin: str, **settings: Any) -> None:
        (self._settings / f"{plugin}.jupyterlab-settings").write_text(json.dumps(settings))

    def set_theme(self, *, dark: bool) -> None:
        """Choose the theme of the pages that are opened from now on."""
        self._set("themes", theme="JupyterLab Dark" if dark else "JupyterLab Light")

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{self.log.read_text()[-2000:]}")
        try:
            self.api("/api/status")
        except OSError:
            return False
        return True

    def api(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(
            self.base + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def write(self, name: str, cells: list[str]) -> Path:
        """Write a notebook with these code cells, without outputs."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.root / name
        nbformat.write(notebook, path)
        return path

    def wait_for_kernel(self, name: str) -> None:
        """Wait until the kernel of a notebook is there and idle: the page says idle before there is one."""

        def is_idle() -> bool:
            kernels = [session["kernel"] for session in self.api("/api/sessions") if session["path"] == name]
            return bool(kernels and kernels[0]["connections"] > 0 and kernels[0]["execution_state"] == "idle")

        _wait_until(is_idle, f"the kernel of {name}", self.log)

    def end_sessions(self) -> None:
        for session in self.api("/api/sessions"):
            self.api(f"/api/sessions/{session['id']}", "DELETE")

    def stop(self) -> None:
        self.end_sessions()
        self.api("/api/shutdown", "POST")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._kernels.close()


class Notebook:
    """An open notebook in JupyterLab, or in Notebook 7; where the page has JupyterLab already, in a tab of it."""

    def __init__(self, page: Page, server: Server, name: str, *, app: str = "lab", dark: bool = False) -> None:
        self.page, self.server, self.name = page, server, name
        page.set_default_timeout(TIMEOUT_S * 1000)
        self.panel = page.locator(".jp-NotebookPanel:visible")
        if page.url.startswith(f"{server.base}/lab"):
            page.evaluate(OPEN, name)
            self.change_theme(dark=dark)
        else:
            server.set_theme(dark=dark)
            file = quote(name)
            route = f"/lab/tree/{file}?reset&token=" if app == "lab" else f"/notebooks/{file}?token="
            page.goto(server.base + route + server.token)
        expect(self.panel.locator(".jp-CodeCell").first).to_be_visible()
        server.wait_for_kernel(name)
        self._expect_theme(dark)

    def menu(self, *names: str) -> None:
        self.page.get_by_role("menuitem", name=names[0], exact=True).click()
        for name in names[1:-1]:
            self.page.locator(".lm-Menu-item", has_text=name).first.hover()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{re.escape(names[-1])}$")).click()

    def change_theme(self, *, dark: bool) -> None:
        if self.page.locator("body").get_attribute("data-jp-theme-light") == str(dark).lower():
            self.menu("Settings", "Theme", "JupyterLab Dark" if dark else "JupyterLab Light")
        self._expect_theme(dark)
        # JupyterLab hides itself for one frame after the change.
        expect(self.panel).to_be_visible()

    def _expect_theme(self, dark: bool) -> None:
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", str(not dark).lower())

    def cell(self, index: int) -> Locator:
        return self.panel.locator(".jp-CodeCell").nth(index)

    def outputs(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-OutputArea-output")

    def radio(self, mode: str) -> Locator:
        return self.panel.get_by_role("radio", name=mode, exact=True)

    def toggles(self) -> Locator:
        return self.panel.get_by_role("radiogroup")

    def status(self) -> Locator:
        """What the toggle says."""
        return self.panel.locator("output.tensornp-status")

    def run_all(self) -> None:
        """Run all cells, and fail with what a cell says if one fails."""
        last = self.panel.locator(".jp-CodeCell").count() - 1
        before = self._prompt(last).inner_text()
        self.menu("Run", "Run All Cells")
        failed = self.panel.locator("[data-mime-type='application/vnd.jupyter.stderr']")
        expect(self._prompt(last)).not_to_have_text(before)
        ran = self._prompt(last).filter(has_text=re.compile(r"\[\d+\]"))
        expect(ran.or_(failed).first).to_be_visible()
        assert not failed.count(), failed.first.inner_text()

    def start_cell(self, index: int) -> None:
        content = self.cell(index).locator(".cm-content")
        content.click()
        # On a busy machine a key may come before the editor has the focus.
        expect(content).to_be_focused()
        before = self._prompt(index).inner_text()
        self.page.keyboard.press("Control+Enter")
        expect(self._prompt(index)).not_to_have_text(before)

    def run_cell(self, index: int) -> None:
        self.start_cell(index)
        expect(self._prompt(index)).to_have_text(re.compile(r"\[\d+\]"))

    def _prompt(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-InputPrompt").first

    def save(self) -> Path:
        """Save by the menu, wait until the file says so, and return it."""
        path = self.server.root / self.name
        before = path.stat().st_mtime_ns
        self.menu("File", "Save Notebook")

        def is_saved() -> bool:
            # While the server writes it, the file is there and has no end yet.
            return path.stat().st_mtime_ns != before and _is_json(path.read_text(encoding="utf-8"))

        _wait_until(is_saved, "the notebook to be saved", self.server.log)
        return path


def close_notebooks(page: Page) -> None:
    """Close all that is open in JupyterLab, saved or not."""
    page.evaluate(CLOSE)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _wait_until(condition: Any, what: str, log: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError(f"waited {TIMEOUT_S} s for {what}; the server said:\n{log.read_text()[-2000:]}")
