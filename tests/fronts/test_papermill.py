"""papermill, and what nbconvert makes of the notebook that it has run."""

from __future__ import annotations

import nbformat
import papermill
import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment, notebook, words_of
from kernels import TIMEOUT_S
from nbconvert import HTMLExporter, MarkdownExporter, RSTExporter, SlidesExporter


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """The notebook as papermill has run it, with a parameter, and written it."""
    folder = tmp_path_factory.mktemp("papermill")
    given = notebook(folder / "given.ipynb", SETUP.replace("40", "size"))
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment(folder).items():
            patched.setenv(name, value)
        papermill.execute_notebook(
            given, folder / "run.ipynb", {"size": 40}, cwd=folder, progress_bar=False, start_timeout=TIMEOUT_S
        )
    return nbformat.read(folder / "run.ipynb", 4)


def test_each_cell_shows_its_card_once_as_text_and_as_html(executed):
    """With nothing on the side, and no state of widgets, of which nobody has seen one."""
    parameters, _, *cells = executed.cells
    assert "size = 40" in parameters.source
    for cell in cells:
        (output,) = cell.outputs
        assert output.data.keys() == {"text/plain", "text/html"}
        assert amiss(output.data["text/plain"], [cell.source]) == {}
        assert amiss(words_of(output.data["text/html"]), [cell.source]) == {}
    assert [cell.source for cell in cells] == list(SHOWN)
    assert "widgets" not in executed.metadata


@pytest.mark.parametrize("exporter", [HTMLExporter, MarkdownExporter, RSTExporter, SlidesExporter])
def test_each_export_has_the_same_cards_once(executed, exporter):
    """In whatever else it holds."""
    page, _ = exporter().from_notebook_node(executed)
    assert amiss(words_of(page)) == {}
    assert "Traceback" not in page
