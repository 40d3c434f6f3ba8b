"""Looking never ends the process: shapes that would list billions, and memory that others made, broke or gave back."""

from __future__ import annotations

import os

import pytest
import torch
from child import in_fork
from memory_limit import limit_memory

import tensornp as tnp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.names import ShellSession
from tensornp.render.collections.container import container_document
from tensornp.render.tensor.card import tensor_text
from tensornp.session.ledger import Ledger


def _patient_ledger(shell):
    return Ledger(ShellSession(shell), DisplayOptions)


def card(t: torch.Tensor, /, **names: object) -> str:
    """Return the text of the card that a notebook with these names shows of `t`."""
    from IPython.core.interactiveshell import InteractiveShell

    # An older IPython starts a thread for each shell.
    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    return tensor_text(summarize(t, DisplayOptions(), _patient_ledger(shell).look))


LONG = [(10**9, 0), (0, 10**9), (0, 10**9, 0), (3, 0, 10**9), (10**9, 0, 2)]


@pytest.mark.slow
@in_fork
def test_an_empty_tensor_with_a_long_dimension_takes_no_memory():
    """Alone, in containers, nested, masked and sparse: within 200 MB, where a list of all indices takes gigabytes."""
    if not os.path.exists("/proc/self/statm"):
        return
    empties = [torch.zeros(shape, dtype=dtype) for shape in LONG for dtype in (torch.float32, torch.bfloat16)]
    nested = torch.nested.as_nested_tensor([torch.zeros(10**9, 0), torch.zeros(2, 0)])
    sparse = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (10**9, 0))
    # What is imported when it is first used is imported now.
    container_document(summarize_container([torch.zeros(3), torch.zeros(2, 2).to_sparse()], DisplayOptions())).text()
    card(torch.zeros(3))
    limit_memory(200 * 2**20)
    for t in (*empties, sparse):
        expected = repr(tnp.to_numpy(t))
        assert expected in tensor_text(summarize(t, DisplayOptions()))
        assert expected in card(t, t=t)
    assert f"[{', '.join(map(repr, tnp.to_numpy(nested)))}]" in tensor_text(summarize(nested, DisplayOptions()))
    container_document(
        summarize_container({"all": empties, "nested": nested, "sparse": sparse}, DisplayOptions())
    ).text()


def test_an_empty_masked_tensor_is_shown_as_numpy_prints_it():
    """With the mask of no element."""
    from torch.masked import masked_tensor

    t = masked_tensor(torch.zeros(4, 0), torch.zeros(4, 0, dtype=torch.bool))
    assert repr(tnp.to_numpy(t)) in tensor_text(summarize(t, DisplayOptions()))
