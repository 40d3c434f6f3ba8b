"""The example notebooks run, and their stored outputs are static and current."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import torch
from kernels import TIMEOUT_S, warm_kernels
from save_examples import EXAMPLES, NOTEBOOKS, WIDGET, executed

STORED_WITH = "2.13"


def words(cell: nbformat.NotebookNode) -> list[str]:
    """Return the words of a cell's outputs: numbers differ between processors."""
    text = "\n".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return re.findall(r"[^\W\d_]{3,}", text)


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> Iterator[str]:
    """Return a JUPYTER_PATH with kernels that have imported torch."""
    folder = tmp_path_factory.mktemp("warm")
    with warm_kernels(folder):
        yield str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_stored_outputs_of_an_example_are_current(path, tmp_path, warm, monkeypatch):
    """`python tests/save_examples.py` writes them."""
    monkeypatch.setenv("JUPYTER_PATH", warm)
    now = executed(path, tmp_path)
    if torch.__version__.startswith(STORED_WITH):
        stored = nbformat.read(path, as_version=4)
        assert [words(cell) for cell in code(stored)] == [words(cell) for cell in code(now)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_an_example_is_stored_with_static_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    cells = code(notebook)
    assert cells[0].source.startswith("%load_ext tensornp\n")
    assert "widgets" not in notebook.metadata
    assert all("execution" not in cell.metadata for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert not any(WIDGET in output.get("data", {}) for output in outputs)
    assert not re.search(r"\((not shown|shown in short)", str(outputs))
    assert sum("text/html" in output.get("data", {}) for output in outputs) >= 4


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
def test_start_serves_the_tour(tmp_path):
    """JupyterLab runs in this environment: the real command would install into the source tree.

    It opens a copy, and the example stays as it is.
    """
    command = (
        f"import sys; from pathlib import Path; import environment; environment.VENV = Path({str(tmp_path)!r}); "
        "environment.ensure = lambda *_: sys.executable; import start; sys.exit(start.main())"
    )
    places = {name: str(tmp_path / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}
    settings = {"JUPYTER_TOKEN": "token", "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path])}
    lab = subprocess.Popen([sys.executable, "-c", command, "--no-browser"], env=os.environ | places | settings)
    try:
        notebook = answer(Path(places["JUPYTER_RUNTIME_DIR"]), "api/contents/1-tour.ipynb")
    finally:
        lab.terminate()
        lab.wait(60)
    assert notebook["content"]["cells"][1]["source"].startswith("%load_ext tensornp")
    copy, example = tmp_path / "examples" / "1-tour.ipynb", EXAMPLES / "1-tour.ipynb"
    assert copy.read_bytes() == example.read_bytes()


def answer(runtime: Path, path: str) -> dict:
    """Ask the server that writes its address into a folder, when it is up."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            address = json.loads(next(runtime.glob("jpserver-*.json")).read_text())["url"] + path
            request = urllib.request.Request(address, headers={"Authorization": "token token"})
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                return json.load(reply)
        time.sleep(0.1)
    raise TimeoutError(path)
