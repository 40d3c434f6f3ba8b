"""The example notebooks run from top to bottom and show what their text promises."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client import BlockingKernelClient
from kernels import TIMEOUT_S, warm_kernels
from nbclient import NotebookClient
from older import TELLS_WHAT_IS_SAVED, since

from tensornp.core.values.stats.fast import TAKES_LONG

EXAMPLES = Path(__file__).parents[1] / "examples"
SAVED = (
    "saved for PowBackward0: a NumPy write here gives wrong gradients without an error" if TELLS_WHAT_IS_SAVED
    else "does not tell what backward has saved"
)  # fmt: skip


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> Iterator[Path]:
    """What is to be ``JUPYTER_PATH`` of who would not have torch imported once more."""
    folder = tmp_path_factory.mktemp("warm")
    with warm_kernels(folder):
        yield folder


@pytest.fixture
def executed(tmp_path, warm) -> Callable[[str], list[str]]:
    """Runs a notebook, and gives the text of each code cell's outputs; a second run must save the same bytes.

    So a difference of two versions of a notebook is a difference of what it shows.
    """

    def execute(name: str) -> list[str]:
        cells = run(name, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUPYTER_PATH", str(warm))
            again = run(name, tmp_path)
        for cell, other in zip(cells, again, strict=True):
            assert saved(cell.outputs) == saved(other.outputs), cell.source
        return ["".join(map(text_of, cell.outputs)) for cell in cells]

    return execute


def run(name: str, folder: Path) -> list[nbformat.NotebookNode]:
    """Run a notebook as a newcomer would, and return its code cells."""
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    patience = {"timeout": TIMEOUT_S, "startup_timeout": TIMEOUT_S}
    NotebookClient(notebook, resources={"metadata": {"path": folder}}, **patience).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def saved(outputs: list[nbformat.NotebookNode]) -> str:
    """Return what a front end saves of outputs: it joins what a kernel sends of one stream in several pieces.

    But for the bar of what took longer than a second, which has gone, and left its empty place.
    """
    joined: list[dict] = []
    for output in map(dict, outputs):
        if "text" in output:
            output["text"] = text_of(output)
        if not any(output.get("data", {"": True}).values()) or output.get("text") == "":
            continue
        if joined and output.get("name") and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return json.dumps(joined, sort_keys=True)


def text_of(output: dict) -> str:
    """Return what is shown, but for what the log says on a slow machine."""
    data, text = output.get("data", {}), output.get("text", "").replace(f"{TAKES_LONG}\n", "")
    return text + "".join(data.get("text/plain", "")) + "".join(data.get("text/html", ""))


@pytest.mark.slow
def test_the_first_tour(executed):
    """On the real weights: the table, the card, and each badge that the text names."""
    cells = executed("1-display.ipynb")
    assert "dict of 104 tensors · 86.6 MiB" in cells[2]
    story = "\n".join(cells[3:])
    for promised in (
        "(384, 384)", "array: shared, read-only", "requires grad · has .grad", "AddmmBackward0",
        "NumPy has no bfloat16", "non-contiguous", "the conjugate is pending", "a meta tensor has a shape",
        "104 tensors: 104 share memory", "dtype('float64')", "max_rows",
    ):  # fmt: skip
        assert promised in story


@pytest.mark.slow
@since("2.8", "float4 is there")
def test_every_kind_of_tensor(executed):
    """Each kind that the text names: its array, or the reason why there is none."""
    story = "\n".join(executed("8-every-kind.ipynb"))
    for promised in (
        "values widened exactly to float32", "values unpacked exactly to float32", "packed · (32,)", "4,000 stored",
        "2 stored, in 40 bytes", "nested · 2 parts", "masked_array(data=[0.0, --, 2.0, 3.0]",
        "the storage holds 0 bytes", "wrapped by a torch.func transform", "Batch(tokens=array([0, 1, 2])",
        "array([3, 2, 1, 0], dtype=int16)",
    ):  # fmt: skip
        assert promised in story


@pytest.mark.slow
def test_memory(executed):
    """The map, the change that torch has not counted, the table, the watch, the stale array, and the wrong gradient."""
    story = "\n".join(executed("3-memory.ipynb"))
    for promised in (
        "same memory as b (NumPy array), turned", "overlaps row, even, odd", "other elements of the same storage: odd",
        "same storage   tensor", "changed since the card in In[3] · not counted by torch",
        "changed since the card in In[6] · with a write counted by torch",
        "Out[8], _", "(4,000,000 bytes) on cpu came free",
        "got a .grad", "largest |Δ| 0.1 at [", "no .grad, unlike its siblings",
        "float32 to float16 · their storage is another one now", "no longer shares with before (NumPy array)",
        SAVED, "[200.,   6.]",
        "NumPy refuses: assignment destination is read-only", "[4., 6.]",
    ):  # fmt: skip
        assert promised in story


@pytest.mark.slow
def test_values(executed):
    """A planted NaN is found, the outlier channel comes first, and two layers are compared."""
    cells = executed("4-values.ipynb")
    assert "1 NaN" in cells[2]
    assert "[123, 45]" in cells[3]
    assert cells[4].split("axis 0")[1].split("\n")[1].split()[0] == "17"
    assert "count=147456, nan=1" in cells[5]
    assert "1 NaN at [123, 45]" in cells[6]
    assert "same bits" in cells[7]
    assert "cast from float32" in cells[8]
    assert "384 of 147,456 differ, first at [17, 0]" in cells[9]
    assert cells[10].startswith("the first and the second: 384 of 147,456 differ, first at [17, 0]")
    assert "<img" in cells[12]


@pytest.mark.slow
def test_weights(executed):
    """The table folds what repeats, four rows cost their bytes, the NaN comes first, and nothing of the file runs."""
    cells = executed("5-weights.ipynb")
    assert "104 weights · 22,713,728 elements · 86.6 MiB" in cells[2]
    assert "encoder.layer.{0..5}.attention.self.query.weight" in cells[2]
    assert "2 weights · 147,840 elements" in cells[3]
    assert "nbytes_read=6144, num_reads=1" in cells[4]
    assert cells[5].startswith("model.encoder.layer.3.attention.self.query.weight ['1 of 147,456 is NaN']")
    assert "Loading it would call posix.system · nothing was imported or run" in cells[6]
    assert "this would have run" not in cells[6]
    assert "tied to 2.weight" in cells[7]
    assert "('0.weight',) Totals(parameters=1872" in cells[8]


@pytest.mark.slow
def test_compare(executed):
    """The planted NaN comes first, the scaled norm and the adapter are told, and so is the prefix."""
    cells = executed("6-compare.ipynb")
    assert "3 of 103 weights differ" in cells[3]
    lines = cells[3].split("\n")
    begins = next(i for i, line in enumerate(lines) if line.startswith("name ")) + 1
    names = [line.split()[0].rpartition("layer.2.")[2] for line in lines[begins : begins + 3]]
    assert names == ["output.dense.bias", "output.LayerNorm.weight", "attention.self.query.weight"]
    assert "1 NaN or infinite now" in cells[3]
    assert "100% of the change lies in 8 directions" in cells[3]
    assert "has 'model.module.' before its names" in cells[3]
    assert "of the change lies in 4 directions" in cells[5]
    assert cells[6].startswith("(('embeddings.position_ids',), (), ('', 'model.module.'))")


@pytest.mark.slow
def test_follow(executed):
    """Each planted fault is told in the first line under its cell: overflow, gradient, shapes, dead units."""
    cells = executed("7-follow.ipynb")
    assert cells[3].startswith("the first NaN was born in norm (LayerNorm), In[3] line 11")
    assert "layers.3 (Linear) left the range of float16 (65,504)" in cells[3]
    assert cells[4].startswith("layers.3 (Linear)") and "output · Inf" in cells[4]
    assert "<ModuleCall layers.3 (Linear): (32, 64) float16 -> (32, 64), Inf>" in cells[5]
    assert "the first NaN came in the backward of `sqrt` of 2, In[7] line 4 `roots = squares.sqrt()`" in cells[7]
    assert cells[9].startswith(
        "2 (Linear) got (16, 24) and its weight is (8, 32): it takes 32 features; the call before"
    )
    assert "12 of 64 units of 3 (ReLU) were 0 at all 512 positions" in cells[11]
    assert not cells[13]
    assert cells[14].startswith("before and after: the first call that differs is 2 (Linear)\n")
    assert "its bias had differed before" in cells[14]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ranks meet by gloo")
def test_ranks(executed, monkeypatch, tmp_path):
    """Two engines are one table; the NaN has its rank, and so has the replica that has drifted."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = executed("8-ranks.ipynb")
    assert cells[3].startswith("model · 2 ranks: the same 39 tensors")
    assert "S(0) on tp 2" in cells[3]
    assert "on rank 1, at [133, 7]" in cells[5]
    assert cells[6].startswith("([((1,), (133, 7))], 'all elements')")
    assert "of 21 tensors that several hold, 1 differs" in cells[8]
    assert "differs on rank 1, first in block 0" in cells[8]
    assert "38 tensors in common; rank 0 lacks head.bias" in cells[9]
    assert cells[10].startswith("model.head · 1 of 2 ranks: the same 2 tensors")
    assert "ranks 0..1: has no 'modle'; the closest is 'model'" in cells[11]
    assert "count=16384, nan=1" in cells[13]


@pytest.mark.slow
def test_view_share_and_copy(executed):
    """The surprise, the three answers, the wrong gradient, and how view mode stops it."""
    cells = executed("2-view-share-copy.ipynb")
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


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_each_example_loads_the_extension_in_its_first_cell(notebook):
    """So it runs anywhere, and a newcomer sees how."""
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert cells[0].source.splitlines()[0] == "%load_ext tensornp"


@pytest.fixture
def started(tmp_path):
    """JupyterLab as `examples/start.py` starts it, in this environment: its address, and a way to ask it."""
    # The real command would install into the environment of the source tree.
    code = (
        "import sys; from pathlib import Path; import environment; environment.VENV = Path(sys.prefix); "
        "environment.ensure = lambda *_: sys.executable; import start; sys.exit(start.main())"
    )
    places = {name: str(tmp_path / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    environment = {
        **os.environ,
        **places,
        "JUPYTER_TOKEN": "token",
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path]),
    }
    lab = subprocess.Popen([sys.executable, "-c", code, "--no-browser"], env=environment)
    try:
        yield Path(places["JUPYTER_RUNTIME_DIR"])
    finally:
        lab.terminate()
        lab.wait(60)


@pytest.mark.slow
def test_the_first_cell_of_an_example_greets(started):
    """What JupyterLab starts is a plain kernel: nothing was loaded beforehand."""
    server = wait_for(lambda: json.loads(next(started.glob("jpserver-*.json")).read_text()))

    def ask(path, method="GET"):
        request = urllib.request.Request(
            f"{server['url']}api/{path}", method=method, headers={"Authorization": "token token"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)

    kernel = wait_for(lambda: ask("kernels", "POST"))
    client = BlockingKernelClient(connection_file=str(started / f"kernel-{kernel['id']}.json"))
    client.load_connection_file()
    client.start_channels()
    outputs = []
    client.execute_interactive("%load_ext tensornp", output_hook=outputs.append, timeout=TIMEOUT_S)
    client.stop_channels()
    (said,) = (message["content"]["text"] for message in outputs if message["msg_type"] == "stream")
    assert re.fullmatch(r"tensornp \S+: show a tensor, .*; %tensornp for more\n", said)


def wait_for(ask):
    """Return the first answer; while the server starts, there is none, or half of one."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            return ask()
        time.sleep(0.1)
    raise TimeoutError
