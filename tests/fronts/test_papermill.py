"""papermill, and what nbconvert makes of the notebook that it has run; and how one is told that has a page."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import papermill
import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment, notebook, words_of
from kernels import TIMEOUT_S
from nbconvert import HTMLExporter, MarkdownExporter, RSTExporter, SlidesExporter

from tensornp.widget.page import runs_without_page

ASKED_FOR = "import tensornp as tnp\ntnp.TensorWidget(net[0].bias)"


@pytest.mark.slow
def test_each_cell_shows_its_card_once_as_text_and_as_html_and_so_does_each_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing on the side, and no state of widgets, of which nobody has seen one; it is run with a parameter.

    Of a live card that is asked for the static one is there.
    """
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    given, ran = notebook(tmp_path / "given.ipynb", SETUP.replace("40", "size"), ASKED_FOR), tmp_path / "ran.ipynb"
    papermill.execute_notebook(given, ran, {"size": 40}, cwd=tmp_path, progress_bar=False, start_timeout=TIMEOUT_S)
    executed = nbformat.read(ran, 4)
    parameters, _, *cells = executed.cells
    assert "size = 40" in parameters.source
    (output,) = cells.pop().outputs
    assert output.data.keys() == {"text/plain", "text/html"}
    page, _ = HTMLExporter().from_notebook_node(executed)
    assert page.count(re.search("(?s)<pre[^>]*>(.*)</pre>", output.data["text/html"])[1]) == 1
    assert "application/vnd.jupyter.widget-state+json" not in page
    executed.cells.pop()
    for cell in cells:
        (output,) = cell.outputs
        assert output.data.keys() == {"text/plain", "text/html"}
        assert amiss(output.data["text/plain"], [cell.source]) == {}
        assert amiss(words_of(output.data["text/html"]), [cell.source]) == {}
    assert [cell.source for cell in cells] == list(SHOWN)
    assert "widgets" not in executed.metadata
    for exporter in (HTMLExporter, MarkdownExporter, RSTExporter, SlidesExporter):
        page, _ = exporter().from_notebook_node(executed)
        assert amiss(words_of(page)) == {}, exporter
        assert "Traceback" not in page


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
