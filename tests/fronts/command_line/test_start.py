"""Listing a file needs no torch, whatever its format: nobody waits for what is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from saved_files import FORMATS

import tensornp as tnp
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.render.models.weights import weights_document

HEAVY = ("torch", "IPython", "ipywidgets", "anywidget", "matplotlib", "pandas", "safetensors", "gguf", "ml_dtypes")
COMMAND = "from tensornp.fronts.command_line import main; status = main()"
LISTED = """
from tensornp.fronts.command_line import main
import tensornp as tnp
status, paths = 0, sys.argv[1:]
for path in paths:
    sys.argv[1:] = [path]
    status |= main()
    print(end="\\f")
    w = tnp.weights(path)
    one = w[next(iter(w))]
    print(w, w.totals, w.find(one.name), one, one.code, one.extents, one._is_trained, one.codes, end="\\f")
"""


def brought_by(code: str, *arguments: object) -> tuple[str, list[str]]:
    """Return what code prints in a process of its own, and what is heavy of what it has imported."""
    code = f"import sys\n{code}\nsys.stderr.write(' '.join({HEAVY} & sys.modules.keys())); sys.exit(status)"
    code = code.replace(str(HEAVY), str(set(HEAVY)))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, encoding="utf-8", env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.split()


def checkpoint(folder):
    """Write what people write: a model, its optimizer, and objects of their own."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "args": SimpleNamespace(lr=1)}
    torch.save(state | {"weight": model.weight, "step": 3}, folder / "x.pt")
    return (folder / "x.pt",) * 2


def every_dtype(folder):
    """Write a tensor of each dtype that `torch.save` knows."""
    names = [name for name in KNOWN if hasattr(torch, name) and not name.startswith("float4")]
    torch.save({name: torch.zeros(4, 4).to(getattr(torch, name)) for name in names}, folder / "x.pt")
    return (folder / "x.pt",) * 2


class Own(torch.nn.Module):
    """A class that torch does not have."""


def whole_modules(folder):
    """Write modules as `torch.save` pickles them: what would be imported is told alike, with and without torch."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), Own())
    torch.save([model, torch.optim.SGD(model.parameters())], folder / "x.pt")
    return (folder / "x.pt",) * 2


WAYS = FORMATS | {"checkpoint": checkpoint, "every dtype": every_dtype, "whole modules": whole_modules}


@pytest.mark.slow
def test_each_format_is_listed_without_torch(tmp_path):
    """By the command, and by `tnp.weights`: the text is there, and so are all attributes of an entry."""
    paths = []
    for name, write in WAYS.items():
        (tmp_path / name).mkdir()
        paths.append(str(write(tmp_path / name)[0]))
    text, brought = brought_by(LISTED, *paths)
    parts = text.split("\f")
    for path, listed, explored in zip(paths, parts[::2], parts[1::2], strict=False):
        assert listed == weights_document(tnp.weights(path), max_rows=None).text() + "\n"
        assert "<WeightsExplorer of " in explored
    assert len(parts) == 2 * len(paths) + 1
    assert brought == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    ["--json", "--find a", "--sort notes", "--html page.html", "--help"],
)
def test_no_option_of_a_list_needs_torch(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    path, _ = WAYS["safetensors"](tmp_path)
    text, brought = brought_by(COMMAND, *options.split(), path)
    assert text or (tmp_path / "page.html").exists()
    assert brought == []


@pytest.mark.slow
def test_values_bring_what_reads_them(tmp_path):
    """Torch, as ever."""
    path, _ = WAYS["safetensors"](tmp_path)
    text, brought = brought_by(
        "import tensornp as tnp; print(tnp.weights(sys.argv[1])['a'].to_numpy()[1, 2]); status = 0", path
    )
    assert text == "5.0\n"
    assert "torch" in brought
