"""papermill, and what nbconvert makes of the notebook that it has run."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment, notebook, words_of
from kernels import TIMEOUT_S
from nbconvert import HTMLExporter, MarkdownExporter, RSTExporter, SlidesExporter


@pytest.mark.slow
def test_each_cell_shows_its_card_once_as_text_and_as_html_and_so_does_each_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing on the side, and no state of widgets, of which nobody has seen one; it is run with a parameter."""
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    given, ran = notebook(tmp_path / "given.ipynb", SETUP.replace("40", "size")), tmp_path / "ran.ipynb"
    papermill.execute_notebook(given, ran, {"size": 40}, cwd=tmp_path, progress_bar=False, start_timeout=TIMEOUT_S)
    executed = nbformat.read(ran, 4)
    parameters, _, *cells = executed.cells
    assert "size = 40" in parameters.source
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
