"""Notebooks that are run for a file, with nobody there who sees a page: nbconvert, papermill, Sphinx."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import nbformat
import pytest
from kernels import TIMEOUT_S, start_kernel
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tensornp.fronts.ipython.live import runs_without_page

CELLS = [
    "%load_ext tensornp\nimport torch\nnet = torch.nn.Linear(4, 3)\ntorch.linspace(-1, 1, 40)",
    "{'层': torch.ones(3), 'w': torch.zeros(2)}",
    "%tensors",
    "%weights net",
    "import tensornp as tnp\nbefore = {k: v.clone() for k, v in net.state_dict().items()}\ntnp.compare(before, net)",
    "%%follow net\nnet(torch.ones(2, 4)).sum().backward()",
    "tnp.image(torch.zeros(2, 5, 3, 4, 4), layout='NTCHW')",
    "%tensornp",
    "%tonumpy -w net.weight",
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


def test_no_state_is_saved_of_what_no_page_has_shown(executed):
    """Neither in the notebook nor in a page made of it; of a live card that is asked for the static one is there."""
    assert "widgets" not in executed.metadata
    page, _ = HTMLExporter().from_notebook_node(executed)
    assert WIDGETS not in page
    for cell in executed.cells[-2:]:
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


def test_text_that_stands_beside_html_on_a_page_is_for_the_file():
    """As JupyterLab asks a kernel, which names its cells; what is printed is seen on the page as it is."""
    manager, client = start_kernel()
    shown: list[str] = []

    try:
        for cell in (*CELLS[:1], CELLS[5], "own = {'text/html': '<div class=\"tensornp', 'text/plain': '‖'}", PRINTED):
            content = {"code": cell, "silent": False, "store_history": True, "allow_stdin": True}
            sent = client.session.msg("execute_request", content, metadata={"cellId": "first"})
            client.shell_channel.send(sent)
            state = ""
            while state != "idle":
                content = client.get_iopub_msg(timeout=TIMEOUT_S)["content"]
                assert "evalue" not in content, content
                state = content.get("execution_state", "")
                shown.append(content.get("text") or content.get("data", {}).get("text/plain", ""))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    *said, printed = filter(None, shown)
    assert printed == "█ ‖\n"
    text = "\n".join(said)
    assert "mean" in text and "grad" in text
    assert not {char for char in text if char > "\xff"}
