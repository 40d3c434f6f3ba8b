"""`%tensors` among programs that train, swap and interrupt: it leaves no trace, and drops what is proven unnamed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output
from unchanged import unchanged

from tensornp.session import release


def cell(shell: Any, code: str) -> str:
    """Run a numbered cell, and return what it has shown as text."""
    with capture_output() as captured:
        shell.ip.run_cell(code, store_history=True).raise_error()
    return "\n".join([captured.stdout, *(output.data.get("text/plain", "") for output in captured.outputs)])


@pytest.mark.parametrize("line", ["%tensors", "%tensors w*", "%tensors --release"])
def test_looking_at_all_changes_nothing(shell, line):
    """No mode sees a call, whatever is bound; nothing warns."""
    w = torch.ones(3, 2, requires_grad=True)
    (w * w).sum().backward()
    odd = [
        torch.eye(3).to_sparse(),
        torch.ones(4)[1:],
        torch.eye(2, dtype=torch.complex64).conj(),
        torch._lazy_clone(w),
    ]
    shell.namespace.update(w=w, odd=odd, a=np.ones(3))
    with unchanged(w, *odd):
        shell.run(line)


def test_what_is_not_proven_unnamed_is_not_released(shell, monkeypatch):
    """A name of the user's may reach it where the search had stopped; what is left is named, with the cure."""
    entry = shell.ip.execution_count
    cell(shell, "torch.ones(10)")
    cell(shell, f"kept = [0] * 5000 + [Out[{entry}]]")
    monkeypatch.setattr(release, "MAX_RELEASE_SECONDS", 0)
    said = cell(shell, "%tensors --release")
    assert said.startswith("nothing was released: search stopped at ")
    assert "%reset -f out drops all results" in said
    assert shell.namespace["Out"][entry] is shell.namespace["kept"][-1]
    monkeypatch.undo()
    assert "nothing to release" in cell(shell, "%tensors --release")
    del shell.namespace["kept"]
    assert f"released Out[{entry}]: 40 bytes on cpu came free" in cell(shell, "%tensors --release")


@pytest.mark.parametrize("statement", ["Out = 5", "Out = {7: kept}", "del Out"])
def test_the_history_is_read_where_ipython_keeps_it(shell, statement):
    """Under the name that reaches it, and what the user calls `Out` then is a variable as any."""
    entry = shell.ip.execution_count
    cell(shell, "kept = torch.zeros(1); torch.ones(10)")
    cell(shell, statement)
    table = cell(shell, "%tensors")
    assert re.search(rf"_oh\[{entry}\] .* 40 bytes .* _oh\[{entry}\]", table)
    assert "%tensors --release frees 40 bytes" in table
    assert f"released _oh[{entry}]: 40 bytes on cpu came free" in cell(shell, "%tensors --release")
    assert ("kept: same object" in cell(shell, "%tensors")) == ("kept" in statement)


def test_what_came_free_is_told_by_the_memory(shell):
    """A view that goes frees nothing while another name, which no search finds, keeps the storage."""
    hidden = [torch.ones(10)]
    shell.namespace["take"] = lambda: hidden[0][2:]
    cell(shell, "take()")
    assert "nothing came free; 40 bytes are still held elsewhere" in cell(shell, "%tensors --release")
    array = [np.ones(10)]
    shell.namespace["take"] = lambda: array[0][2:]
    cell(shell, "take()")
    assert "nothing came free; 80 bytes are still held elsewhere" in cell(shell, "%tensors --release")
    cell(shell, "torch.eye(4).to_sparse()")
    assert "80 bytes on cpu came free" in cell(shell, "%tensors --release"), "its indices and its values"
