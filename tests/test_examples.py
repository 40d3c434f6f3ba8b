"""The example notebooks run from top to bottom and show what their text promises."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"


def executed(name: str, tmp_path: Path) -> list[str]:
    """Run a notebook as a newcomer would, and return the text of each code cell's outputs."""
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": tmp_path}}).execute()
    return ["".join(map(text_of, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def text_of(output: dict) -> str:
    data = output.get("data", {})
    return output.get("text", "") + "".join(data.get("text/plain", "")) + "".join(data.get("text/html", ""))


def test_the_first_tour(tmp_path):
    """On the real weights: the table, the card, and each badge that the text names."""
    cells = executed("1-display.ipynb", tmp_path)
    assert "dict of 104 | 104 tensors | 86.6 MiB" in cells[2]
    story = "\n".join(cells[3:])
    for promised in (
        "(384, 384)", "shares memory · read-only", "requires grad · leaf · has .grad", "AddmmBackward0",
        "NumPy has no bfloat16", "non-contiguous", "the conjugate is pending", "a meta tensor has a shape",
        "104 tensors: 104 share memory", "dtype('float64')", "TensorDisplay.max_rows",
    ):  # fmt: skip
        assert promised in story


def test_every_kind_of_tensor(tmp_path):
    """Each kind that the text names: its array, or the reason why there is none."""
    story = "\n".join(executed("4-every-kind.ipynb", tmp_path))
    for promised in (
        "values widened exactly to float32", "values unpacked exactly to float32", "packed · (32,)", "4,000 stored",
        "400,000,000,000,000 bytes", "nested · 2 parts", "masked_array(data=[0.0, --, 2.0, 3.0]",
        "the storage holds 0 bytes", "wrapped by a torch.func transform", "Batch(tokens=array([0, 1, 2])",
        "array([3, 2, 1, 0], dtype=int16)",
    ):  # fmt: skip
        assert promised in story


def test_memory(tmp_path):
    """The map, the change behind torch's back, the table, the watch, the stale array, and the wrong gradient."""
    story = "\n".join(executed("3-memory.ipynb", tmp_path))
    for promised in (
        "same memory as b (NumPy array), turned", "overlaps row, even, odd", "other elements of the same storage: odd",
        "same storage   tensor", "changed since the card in In[3] · behind torch's back",
        "changed since the card in In[6] · through torch", "Out[8], _", "(4,000,000 bytes) on cpu came free",
        ".grad: None to set", "largest |Δ| 0.1 at [", "missed by backward",
        "float32 to float16 · its storage is another one now", "no longer shares with before (NumPy array)",
        "saved for PowBackward0: a NumPy write here gives wrong gradients without an error", "[200.,   6.]",
        "NumPy refuses: assignment destination is read-only", "[4., 6.]",
    ):  # fmt: skip
        assert promised in story


def test_view_share_and_copy(tmp_path):
    """The surprise, the three answers, the wrong gradient, and how view mode stops it."""
    cells = executed("2-view-share-copy.ipynb", tmp_path)
    assert "[0.25, 0.5 , 0.75, 1.  ]" in cells[1]
    assert "NumPy refuses: output array is read-only" in cells[2]
    assert "[100., 200.,   3.,   4.]" in cells[3]
    assert "[100., 200.,   3.,   4.]" in cells[4]
    assert "mean in bfloat16: 0.25" in cells[5]
    assert "mean of the widened copy: 1.0" in cells[5]
    assert "pass copy=None to allow a copy" in cells[6]
    assert "[200.,   6.]" in cells[7]
    assert "[4., 6.]" in cells[8]
    assert "gradients may be silently wrong" in cells[9]
