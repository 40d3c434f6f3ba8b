"""Notebooks of marimo that tests write, what it makes of them, and its server."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]
TIMEOUT_S = 240


def notebook(path: Path, cells: Iterable[str]) -> Path:
    """Write a notebook of these cells, of which the first imports what the others use, and return its path."""
    each = ("@app.cell\ndef _():\n" + "".join(f"    {line}\n" for line in cell.splitlines()) for cell in cells)
    path.write_text("import marimo\n\napp = marimo.App()\n\n\n" + "\n\n".join(each), encoding="utf-8")
    return path


def environment(folder: Path) -> dict[str, str]:
    """Return what marimo runs with: a home of its own, and what this process imports."""
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    return (
        os.environ
        | {"PYTHONPATH": paths, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        | {"MARIMO_SKIP_UPDATE_CHECK": "1"}
    )


def exported(path: Path) -> list[dict[str, str]]:
    """Return by MIME type what the last output of each cell is in `marimo export html`; fails where a cell has."""
    page = path.with_suffix(".html")
    command = [sys.executable, "-m", "marimo", "export", "html", path.name, "-o", page.name, "--no-include-code"]
    ran = subprocess.run(
        command, cwd=path.parent, env=environment(path.parent), capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    _, _, session = page.read_text(encoding="utf-8").partition('"session": ')
    cells = json.JSONDecoder().raw_decode(session)[0]["cells"]
    return [cell["outputs"][0].get("data", {}) if cell["outputs"] else {} for cell in cells]


@contextlib.contextmanager
def served(path: Path, mode: str) -> Iterator[str]:
    """Give the address of a server that runs a notebook ("run") or has it edited ("edit"), of which it ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", mode, path.name, "--headless", "--no-token"]
    address = f"http://127.0.0.1:{port}"
    with (path.parent / "marimo.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], cwd=path.parent, env=environment(path.parent),
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
