"""Outputs that are not UTF-8: what tensornp says is spelled in characters that they have, and never raises."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
import torch

import tensornp as tnp

ENCODINGS = ("ascii", "cp1252", "cp437", "cp932", "latin-1")


def said() -> list[object]:
    """Return one of each that says something of itself."""
    torch.manual_seed(0)
    t = torch.randn(30, 4)
    model, other = (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)) for _ in range(2))
    with tnp.follow() as run:
        model(torch.randn(2, 3)).sum().backward()
    explorer, found = tnp.weights(model), tnp.compare(model, other)
    every = [
        tnp.stats(t),
        tnp.compare(t, t + 1),
        tnp.locate(t, "max"),
        tnp.plan(t),
        tnp.inspect(t),
        tnp.image(t),
        found,
    ]
    every += [explorer, next(iter(explorer.values())), explorer.scan(progress=False), run, tnp.compare(run, run)]
    every += [run.calls[0], run.calls[0].outputs[0], run.grads, tnp.aliases(t)]
    return [*every, *(tnp.card(one) for one in (t, t.T, [t, t.T], model, found, explorer, run))]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_whatever_says_something_can_be_printed(encoding: str, monkeypatch: pytest.MonkeyPatch):
    """And as it is where nothing is lacking."""
    every = said()
    whole = [repr(one) for one in every]
    written = io.BytesIO()
    output = io.TextIOWrapper(written, encoding, errors="strict", write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        for one in every:
            print(one)
            print(repr(one))
    text = written.getvalue().decode(encoding)
    assert "\\u" not in text
    assert "\\x" not in text
    assert [repr(one) for one in every] == whole
    assert not "".join(whole).isascii()
    if encoding == "ascii":
        assert "mean 0.0298 +- 1.03 | -2.61 ... 3.41" in text
        assert "largest |d|" in text


_SHELL = """
from IPython.terminal.interactiveshell import TerminalInteractiveShell

shell = TerminalInteractiveShell.instance(colors="nocolor", simple_prompt=True)
for cell in (
    "%load_ext tensornp",
    "import torch; t = torch.randn(30, 4); m = torch.nn.Linear(3, 2); before = dict(m.state_dict())",
    "t", "[t, t.T]", "m", "%weights m", "%tensorstats t", "%tonumpy --explain t", "%tensordiff before m", "%tensornp",
    "%%follow\\nm(torch.randn(2, 3)).sum().backward()", "%tensors", "t, 1",
):
    assert shell.run_cell(cell, store_history=True).success, cell
"""


@pytest.mark.parametrize("encoding", ["ascii", "cp932"])
def test_a_terminal_of_ipython_says_all_of_it(encoding: str):
    """Cards, tables and magics."""
    ran = subprocess.run(
        [sys.executable, "-c", _SHELL],
        env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"},
        check=False,
        capture_output=True,
        timeout=240,
    )
    text = ran.stdout.decode(encoding)
    assert ran.returncode == 0, ran.stderr.decode(errors="replace")
    assert "UnicodeEncodeError" not in text
    assert "\\u" not in text
    assert "\\x" not in text
