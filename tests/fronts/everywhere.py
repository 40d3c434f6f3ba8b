"""A small notebook that each place is given, and what a person gets there of each of its cells."""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import nbformat

SETUP = (
    "%load_ext tensornp\nimport torch\ntorch.manual_seed(0)\n"
    "net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())\n"
    "t = torch.linspace(-1, 1, 40).requires_grad_()"
)
_CARD = ("array([-1. ", "0.9487,  1.    ],", "mean 0 ± 0.592")
SHOWN: Mapping[str, tuple[str, ...]] = {
    "t": _CARD,
    "{'a': torch.ones(3), 'w': torch.zeros(2)}": ("dict of 2 tensors", "12 bytes", "1., 1., 1.", "0., 0."),
    "%weights net": ("Sequential · 2 weights", "15 parameters", "(3, 4)", "48 bytes", "12 bytes"),
    "%%follow net\nnet(torch.ones(2, 4)).sum().backward()": ("in 3 calls", "outputs are float32", "-0.993", "1.50"),
}
"""By cell, the facts that its output says once, in any place and in text as in HTML."""


def notebook(path: Path, setup: str = SETUP, *more: str) -> Path:
    """Write it, not run, with more cells at its end, and return its path."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in (setup, *SHOWN, *more)]
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
    return path


def environment(folder: Path) -> dict[str, str]:
    """Return what a place runs with that has settings of its own for each user."""
    places = {"HOME": folder, "IPYTHONDIR": folder / "ipython", "JUPYTER_CONFIG_DIR": folder / "config"}
    places |= {"JUPYTER_DATA_DIR": folder / "data", "JUPYTER_RUNTIME_DIR": folder / "runtime"}
    return os.environ | {name: str(path) for name, path in places.items()}


def words_of(page: str) -> str:
    return html.unescape(re.sub("<[^>]*>", " ", page))


def amiss(said: str, cells: Iterable[str] = SHOWN) -> dict[str, int]:
    """Return the facts that the outputs of some cells do not say as often as they are to, and how often they do."""
    facts = Counter(fact for cell in cells for fact in SHOWN[cell])
    return {fact: said.count(fact) for fact, times in facts.items() if said.count(fact) != times}
