"""euporie, which draws HTML in a terminal, and does not go with the Sphinx of the other tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment, notebook
from kernels import TIMEOUT_S
from overlaid import python_with

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="a terminal of its own needs a pseudoterminal"),
]
COLOURS_AND_MOVES = r"\x1b\[[0-9;?<>]*[ ]?[A-Za-z]"
PASTED, RUN, QUIT = "\x1b[200~{}\x1b[201~", "\x05", "\x11"
NUM_TRIES = 3
"""It draws a cell once the reply has come: where the output comes later, on another socket, it is left out."""
NO_WIDGET = "[Widget not implemented]"


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
    _, _, loaded, *cells = parts
    assert loaded.startswith("tensornp")
    for cell, output in zip(SHOWN, cells[1::2], strict=True):
        assert amiss(output, [cell]) == {}, output
    assert "Traceback" not in "".join(cells)


def test_its_console_draws_each_card_and_of_a_widget_says_that_it_has_none(tmp_path: Path, python: Path):
    """What it has drawn it may draw again."""
    import pexpect  # a part of IPython, but for Windows

    console = pexpect.spawn(
        str(python), ["-m", "euporie.console", "--kernel-name=python3"], encoding="utf-8", timeout=TIMEOUT_S,
        # It would ask the terminal where the cursor is, which nobody answers.
        env=environment(tmp_path) | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}, dimensions=(60, 100), echo=False,
    )  # fmt: skip

    def drawn_until(*facts: str) -> str:
        drawn = said = ""
        while not all(fact in said for fact in facts):
            drawn += console.read_nonblocking(100_000)
            said = re.sub(COLOURS_AND_MOVES, "", drawn)
            assert "Traceback" not in said
        return said

    try:
        drawn_until("In [1]: ")
        for cell, facts in {SETUP: ("%tensors",), **SHOWN}.items():
            console.send(PASTED.format(cell) + RUN)
            drawn_until(*([NO_WIDGET] if "-w" in cell else facts))
        console.send(QUIT)
        console.expect(pexpect.EOF)
    finally:
        console.close(force=True)
