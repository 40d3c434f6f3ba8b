"""`%tensors` among programs that train, swap and interrupt: it leaves no trace, and drops what is proven unnamed."""

from __future__ import annotations

import collections
import re
import threading
from typing import Any

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output
from unchanged import unchanged

import tensornp
from tensornp.core.namespace import members
from tensornp.session import release


def cell(shell: Any, code: str) -> str:
    """Run a numbered cell, and return what it has shown as text."""
    with capture_output() as captured:
        shell.ip.run_cell(code, store_history=True).raise_error()
    return "\n".join([captured.stdout, *(output.data.get("text/plain", "") for output in captured.outputs)])


def test_torch_swaps_what_the_table_has_shown(shell):
    """It refuses that for a tensor with a weak reference, and with it each conversion of a subclass parameter."""
    shell.run(
        "a, b = torch.zeros(3), torch.ones(3); model = torch.nn.Linear(2, 2); model(torch.ones(2)).sum().backward()"
    )
    shell.run("%tensors")
    shell.run("torch.utils.swap_tensors(a, b)")
    assert shell.namespace["a"].tolist() == [1, 1, 1]
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        shell.run("model.double(); model.load_state_dict(model.state_dict())")
        shell.run("%tensors --release")
        shell.run("model.half()")
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


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
    shell.namespace.update(w=w, odd=odd, a=np.ones(3), storage=odd[1].untyped_storage())
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
    assert re.search(rf"_oh\[{entry}\] .* 40 bytes .* _oh\[{entry}\], _\n", table)
    assert "40 bytes of history" in table
    assert f"released _oh[{entry}]: 40 bytes on cpu came free" in cell(shell, "%tensors --release")
    assert ("kept: same object" in cell(shell, "%tensors")) == ("kept" in statement)


def test_a_gradient_and_a_state_are_called_by_the_parameter_and_not_by_a_result(shell):
    """A parameter that a cell has shown is no other owner of what belongs to the training."""
    cell(shell, "model = torch.nn.Linear(3, 2); optimizer = torch.optim.Adam(model.parameters())")
    cell(shell, "model(torch.ones(3)).sum().backward(); optimizer.step()")
    cell(shell, "model.weight")
    table = cell(shell, "%tensors")
    assert "32 bytes of gradients, 72 bytes of optimizer states · " in table
    assert "\nmodel.weight.grad " in table
    assert "\noptimizer.state[model.weight]['exp_avg'] " in table
    assert "of history" not in table


def test_what_hides_its_items_leaves_all_in_place(shell):
    """A container that cannot be read to its end may hold anything."""
    entry = shell.ip.execution_count
    cell(shell, "torch.ones(10)")
    shell.namespace["held"] = collections.deque([1])

    def raising(_: Any) -> Any:
        raise RuntimeError("deque mutated during iteration")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(members._CONTAINERS, collections.deque, raising)
        assert "nothing was released" in cell(shell, "%tensors --release")
    assert entry in shell.namespace["Out"]


def test_a_result_that_may_be_a_gradient_is_not_released(shell):
    """Where gradients must not be looked at, since another thread runs, one of them may be what `Out` holds."""
    cell(shell, "p = torch.ones(2, requires_grad=True); p.sum().backward()")
    entry = shell.ip.execution_count
    cell(shell, "p.grad")
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        said = cell(shell, "%tensors --release")
        assert said.startswith("nothing was released: another thread is running: gradients were not looked at")
    finally:
        done.set()
        thread.join()
    assert entry in shell.namespace["Out"]
    assert "nothing to release" in cell(shell, "%tensors --release")


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


@pytest.mark.parametrize("call", ["to_numpy(mine, dtype=3j)", "locate(mine, what='')", "compare(mine, 5)"])
def test_a_call_that_is_refused_holds_nothing(shell, call):
    """Of the last traceback, only what functions of the user's hold is listed."""
    assert held_after(shell, f"tnp.{call}") == ["mine in fails() of the last traceback"]


def held_after(shell: Any, call: str, before_the_table: Any = lambda: None) -> list[str]:
    """Return the names in `%tensors` after a function with a tensor of its own has failed in `call`."""
    shell.namespace["tnp"] = tensornp
    with capture_output():
        result = shell.ip.run_cell(f"def fails():\n    mine = torch.zeros(1000)\n    {call}\nfails()")
    assert isinstance(result.error_in_exec, (KeyboardInterrupt, tensornp.TensornpError))
    before_the_table()
    shell.run("%tensors")
    rows = [row.split("  ")[0] for row in shell.displayed[0]["text/plain"].strip().splitlines()[2:]]
    # The frame is torch's by which an older one has compiled code leave a function alone.
    return [row for row in rows if " of _fn() " not in row and " in _fn() " not in row]
