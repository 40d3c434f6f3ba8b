"""Jupyter console, typed into as a person does: its kernel has no page, and all that is seen is text."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment
from kernels import TIMEOUT_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal of its own needs a pseudoterminal")
COLOURS = r"(?:\x1b\[[0-9;?]*[A-Za-z])*"
PASTED, RUN = "\x1b[200~{}\n\x1b[201~", "\x1b\r"
PROVED = "a = %tonumpy t\ntry:\n    a[0] = 1\nexcept ValueError as error:\n    print(error)"


def test_each_cell_shows_its_card_once_in_words_and_pictures_of_the_terminal(tmp_path: Path):
    """Bars and arrows as they are, nothing of a widget, and the arrays are what the cards say."""
    import pexpect  # a part of IPython, but for Windows

    cells = (SETUP, *SHOWN, PROVED)
    console = pexpect.spawn(
        sys.executable, ["-m", "jupyter_console", "--kernel=python3"], encoding="utf-8", timeout=TIMEOUT_S, echo=False,
        # It would ask the terminal where the cursor is, which nobody answers.
        env=environment(tmp_path) | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}, dimensions=(60, 100),
    )  # fmt: skip
    said = []
    try:
        for number, cell in enumerate((*cells, "exit"), start=1):
            console.expect(rf"In \[{COLOURS}{number}{COLOURS}\]: ")
            said.append(re.sub(COLOURS, "", console.before))
            console.send(PASTED.format(cell) + RUN)
        console.expect(pexpect.EOF)
    finally:
        console.close(force=True)
    shown = dict(zip(cells, said[1:], strict=True))
    for cell in SHOWN:
        assert amiss(shown[cell], [cell]) == {}, shown[cell]
        assert "idget" not in shown[cell]
    assert "█" in shown["t"] and "‖grad‖" in shown[cell]
    assert "assignment destination is read-only" in shown[PROVED]
    assert "Traceback" not in "".join(said)
