"""Notebooks that are run for a file, with nobody there who sees a page: nbconvert, papermill, Sphinx."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from kernels import TIMEOUT_S
from nbclient import NotebookClient
from nbconvert import HTMLExporter, LatexExporter

CELLS = [
    "%load_ext tensornp\nimport torch\nnet = torch.nn.Linear(4, 3)\ntorch.linspace(-1, 1, 40)",
    "{'层': torch.ones(3), 'w': torch.zeros(2)}",
    "%tensors",
    "%weights net",
    "import tensornp as tnp\nbefore = {k: v.clone() for k, v in net.state_dict().items()}\ntnp.compare(before, net)",
    "%%follow net\nnet(torch.ones(2, 4)).sum().backward()",
    "tnp.image(torch.zeros(2, 5, 3, 4, 4), layout='NTCHW')",
    "%tensornp",
]


def run(cells: list[str], folder: Path) -> nbformat.NotebookNode:
    """Return a notebook of these cells, run as nbconvert does."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    patience = {"timeout": TIMEOUT_S, "startup_timeout": TIMEOUT_S}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **patience)
    client.execute(env={**os.environ, "IPYTHONDIR": str(folder / "ipython")})
    return notebook


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    return run(CELLS, tmp_path_factory.mktemp("executed"))


def test_no_state_is_saved_of_what_no_page_has_shown(executed, tmp_path):
    """Neither in the notebook nor in a page made of it; a live card that is asked for is there."""
    assert "widgets" not in executed.metadata
    page, _ = HTMLExporter().from_notebook_node(executed)
    assert "application/vnd.jupyter.widget-state+json" not in page
    asked = run([CELLS[0], "import tensornp as tnp\ntnp.view(torch.ones(3))"], tmp_path)
    assert any("_esm" in one["state"] for one in asked.metadata.widgets[WIDGETS]["state"].values())


WIDGETS = "application/vnd.jupyter.widget-state+json"


def test_latex_gets_no_glyph_that_its_fonts_lack_but_in_names(executed):
    """Bars, arrows and lines of trees in characters that every font has."""
    document, _ = LatexExporter().from_notebook_node(executed)
    outputs = "\n".join(re.findall(r"\\begin\{Verbatim\}.*?\\end\{Verbatim\}", document, re.DOTALL))
    assert "mean" in outputs and "weight" in outputs
    assert {char for char in outputs if char > "\xff"} <= {"层"}
