"""euporie, which draws HTML in a terminal, and does not go with the Sphinx of the other tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fronts.everywhere import SHOWN, amiss, environment, notebook
from kernels import TIMEOUT_S
from overlaid import python_with

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="a terminal of its own needs a pseudoterminal"),
]
PASTED, RUN, QUIT = "\x1b[200~{}\x1b[201~", "\x05", "\x11"
NUM_TRIES = 3
"""It draws a cell once the reply has come: where the output comes later, on another socket, it is left out."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an environment with euporie."""
    return python_with("euporie>=2.10.4", tmp_path_factory.mktemp("euporie"))


def test_its_preview_runs_a_notebook_and_draws_each_card_once(tmp_path: Path, python: Path):
    """To a file, so that also what is live elsewhere is a card."""
    given, drawn = notebook(tmp_path / "given.ipynb"), tmp_path / "drawn.txt"
    parts: list[str] = []
    for _ in range(NUM_TRIES):
        subprocess.run(
            [python, "-m", "euporie.preview", "--run", "--output-file", drawn, given], cwd=tmp_path,
            env=environment(tmp_path), stdin=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S,
        )  # fmt: skip
        parts = re.split(r"^ \[\d\] ", drawn.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if len(parts) == 1 + 2 * (1 + len(SHOWN)):
            break
    _, _, _, *cells = parts
    for cell, output in zip(SHOWN, cells[1::2], strict=True):
        assert amiss(output, [cell]) == {}, output
    assert "Traceback" not in "".join(cells)
