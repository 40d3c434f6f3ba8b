"""Notebooks that are run for a file, with nobody there who sees a page: nbconvert, papermill, Sphinx."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import nbformat
import pytest
from kernels import TIMEOUT_S
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tensornp.widget.page import runs_without_page

CELLS = [
    "%load_ext tensornp\nimport torch\nnet = torch.nn.Linear(4, 3)\ntorch.linspace(-1, 1, 40)",
    "{'层': torch.ones(3), 'w': torch.zeros(2)}",
    "%tensors",
    "%weights net",
    "import tensornp as tnp\nbefore = {k: v.clone() for k, v in net.state_dict().items()}\ntnp.compare(before, net)",
    "%%follow net\nnet(torch.ones(2, 4)).sum().backward()",
    "tnp.image(torch.zeros(2, 3, 4, 4))",
    "%tensornp",
    "tnp.TensorWidget(net.bias)",
]
PRINTED = "display(own, raw=True)\nprint('█', own['text/plain'])"
WIDGETS = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """A notebook of these cells, run as nbconvert does."""
    folder = tmp_path_factory.mktemp("executed")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    patience = {"timeout": TIMEOUT_S, "startup_timeout": TIMEOUT_S}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **patience)
    client.execute(env={**os.environ, "IPYTHONDIR": str(folder / "ipython")})
    return notebook


@pytest.mark.slow
def test_no_state_is_saved_of_what_no_page_has_shown(executed):
    """Neither in the notebook nor in a page made of it; of a live card that is asked for the static one is there."""
    assert "widgets" not in executed.metadata
    page, _ = HTMLExporter().from_notebook_node(executed)
    assert WIDGETS not in page
    for cell in executed.cells[-1:]:
        (output,) = cell.outputs
        assert output.data.keys() == {"text/plain", "text/html"}
        assert page.count(re.search("(?s)<pre[^>]*>(.*)</pre>", output.data["text/html"])[1]) == 1


def test_of_those_that_answer_no_input_some_have_pages(monkeypatch):
    """voila, which runs cells as nbconvert does; and whatever Colab and VS Code say."""
    kernel = SimpleNamespace(_allow_stdin=False)
    shell = SimpleNamespace(kernel=kernel, user_ns={})
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    assert runs_without_page(shell)
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5.13")
    assert not runs_without_page(shell)
    monkeypatch.delenv("SERVER_SOFTWARE")
    assert not runs_without_page(SimpleNamespace(kernel=kernel, user_ns={"__vsc_ipynb_file__": "a.ipynb"}))
    kernel._allow_stdin = True
    assert not runs_without_page(shell)
    assert not runs_without_page(SimpleNamespace(user_ns={}))
