"""The live part in a front end that isolates outputs: Colab, of whose output module a fake stands here, and VS Code."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from IPython.utils.capture import capture_output

from tensornp.fronts.ipython.live import IsolatedOutput
from tensornp.widget.toggle import TensorWidget

WIDGET = "application/vnd.jupyter.widget-view+json"
MANAGER = "https://ssl.gstatic.com/colaboratory-static/widgets/colab-cdn-widget-manager/x/manager.min.js"


@pytest.fixture
def colab(monkeypatch):
    """What `import google.colab.output` finds in Colab, as far as widgets ask it."""
    output = ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: None
    output._widgets = ModuleType("google.colab.output._widgets")
    output._widgets._installed_url = MANAGER
    colab = ModuleType("google.colab")
    colab.output = output
    for name, module in {"google.colab": colab, "google.colab.output": output}.items():
        monkeypatch.setitem(sys.modules, name, module)


def shown(shell):
    """Return the data and the metadata of the toggle's own output, and of what it is emptied by."""
    widget, output = TensorWidget(torch.ones(3), anchor="tnp-0"), IsolatedOutput(shell.ip)
    with capture_output() as captured:
        output.show(widget)
        output.clear()
    widget.close()
    return [(one.data, one.metadata) for one in captured.outputs]


def test_colab_is_told_who_makes_widgets(shell, colab):
    """Without that it has no manager of them, and shows nothing."""
    (data, metadata), _ = shown(shell)
    assert data[WIDGET]["model_id"]
    assert metadata[WIDGET]["colab"]["custom_widget_manager"]["url"] == MANAGER


def test_where_no_widget_can_be_made_a_sentence_stands(shell, colab):
    """An empty text would be an empty line; and the card is not told twice."""
    (data, _), (emptied, _) = shown(shell)
    assert data["text/plain"] == "the live part of the output above, which is there while its kernel runs"
    assert "text/html" not in data
    assert emptied == {"text/plain": "", "text/html": ""}


def test_vs_code_gets_the_view_as_well(shell):
    """There are no metadata to give."""
    shell.namespace["__vsc_ipynb_file__"] = "a.ipynb"
    (data, metadata), _ = shown(shell)
    assert data[WIDGET]["model_id"]
    assert metadata == {}


def test_elsewhere_there_is_no_output_of_its_own(shell):
    """In JupyterLab and Notebook the part docks into its card."""
    assert shown(shell) == []
