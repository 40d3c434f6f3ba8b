"""Memory across cells: lines and badges of cards, `%tensors`, what it releases; it drops what is proven unnamed."""

from __future__ import annotations

import gc
import html
import re
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output
from unchanged import unchanged

from tensornp.fronts.ipython import names
from tensornp.session import ledger


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace["np"] = np


def cell(shell: Any, code: str) -> str:
    """Run a numbered cell that must succeed, and return all it showed as text, without the array."""
    with capture_output() as captured:
        result = shell.ip.run_cell(code, store_history=True)
    result.raise_error()
    shell.html = "".join(output.data.get("text/html", "") for output in captured.outputs)
    return "\n".join([captured.stdout, *(output.data.get("text/plain", "") for output in captured.outputs)])


_USUAL = re.compile(r"\(|float|cpu|shared|copy |requires grad|from |Parameter")


def card(shell: Any, code: str) -> list[str]:
    """Return the unusual badges of the card that a cell shows, and the lines under them."""
    lines = cell(shell, code).splitlines()
    start = next(i for i, line in enumerate(lines) if " | " in line)
    badges = [badge for badge in lines[start].split(" | ") if not _USUAL.match(badge)]
    return [*badges, *[line for line in lines[start + 1 :] if not _is_array(line)]]


def _is_array(line: str) -> bool:
    return line.startswith(("array(", " ")) or not line


def table(shell: Any, line: str = "") -> dict[str, str]:
    """Return the rows of `%tensors` by name, and the heading under the empty name."""
    heading, columns, *rows = cell(shell, f"%tensors {line}").strip().splitlines()
    assert columns.startswith("name ")
    return {"": heading, **{row.removeprefix("└ ").split("  ")[0]: row for row in rows}}


def number(shell: Any) -> int:
    return shell.ip.execution_count


def test_a_card_names_who_shares_and_not_itself(shell):
    """Under the badges, from the closest; a copy shares nothing, now or later."""
    cell(shell, "w = torch.zeros(4); a = w.numpy(); v = w[1:3]; half = w[:1]; rest = v[2:]")
    cell(shell, "%tonumpy -c -o mine w")
    assert card(shell, "w") == ["same memory as a (NumPy array)", "overlaps v, half"]
    cell(shell, "del a, v, half")
    assert card(shell, "w") == [], "what only IPython keeps is no news"
    assert re.search(r"also named Out\[\d+\]", shell.show(shell.namespace["w"])["text/html"])


@pytest.mark.parametrize(
    ("act", "rows", "road"),
    [
        ("w[0] = 5", "element 0 of 4", "and torch has counted a write since then"),
        ("w.numpy()[2] = 5", "element 2 of 4 · unseen by autograd", "(largest difference 5 at [2])"),
        ("a = %tonumpy -s w\na[0] = 5", "element 0 of 4 · unseen by autograd", "largest difference 5"),
        ("w.data.add_(1)", "all 4 elements · unseen by autograd", "largest difference 1"),
    ],
)
def test_a_change_since_the_last_card_is_a_badge(shell, act, rows, road):
    """With the cell of that card and the changed elements; the next card is silent again."""
    cell(shell, "w = torch.zeros(4)")
    first = number(shell)
    assert not any("changed" in line for line in card(shell, "w"))
    event = f"the conversion in In[{number(shell)}]" if "%tonumpy" in act else f"the card in In[{first}]"
    cell(shell, act)
    assert f"changed since {event} · {rows}" in "\n".join(card(shell, "display(w)"))
    assert road in html.unescape(shell.html)
    assert not any("changed" in line for line in card(shell, "w"))


def test_a_change_is_known_of_another_name_and_forgotten_after_many_cards(shell, monkeypatch):
    """An alias is another object over the same elements; of a view of another shape nothing is known."""
    cell(shell, "w = torch.zeros(4)")
    cell(shell, "w")
    cell(shell, "w += 1")
    assert any("changed" in line for line in card(shell, "w.view(4)"))
    cell(shell, "w += 1")
    assert not any("changed" in line for line in card(shell, "w.view(2, 2)"))
    monkeypatch.setattr(ledger, "MAX_RECORDS", 1)
    cell(shell, "torch.zeros(3)")
    cell(shell, "w += 1")
    assert not any("changed" in line for line in card(shell, "w"))


def test_an_array_that_was_left_behind_is_named(shell):
    """After the storage has moved, the array is stale; its memory was given back."""
    cell(shell, "w = torch.nn.Parameter(torch.zeros(4))")
    cell(shell, "%tonumpy -o a w")
    cell(shell, "b = w.detach().numpy(); w.data = torch.ones(4)")
    assert "no longer shares with a (NumPy array)" in card(shell, "w"), "nobody has seen b before"
    cell(shell, "t = torch.from_numpy(base := np.arange(6.0)); g = torch.as_tensor(t.numpy()); g2 = g[2:]")
    cell(shell, "t")
    cell(shell, "kept = g; del g; t.data = torch.ones(6)")
    left = "no longer shares with base (NumPy array), g2, kept"
    assert left in card(shell, "t")
    cell(shell, "t.data = torch.zeros(3); g3 = torch.from_numpy(np.zeros(6)); g2.set_()")
    assert "no longer shares with base (NumPy array), kept" in card(shell, "t")
    # Of an alias that has stayed, nothing is said which the tensor shares elsewhere now.
    cell(shell, "s = torch.zeros(5); stays = s[:]")
    cell(shell, "s")
    cell(shell, "s.data = torch.from_numpy(elsewhere := np.ones(5, np.float32)); twin = torch.from_numpy(elsewhere)")
    assert "same memory as elsewhere (NumPy array), twin" in card(shell, "s")
    assert [line for line in card(shell, "stays") if "twin" in line or "elsewhere" in line] == []


def test_options_turn_it_off(shell):
    """Nothing is read, and no change is reported."""
    cell(shell, "w = torch.zeros(4)")
    cell(shell, "w")
    cell(shell, "%config TensorDisplay.max_read_nbytes = 0")
    cell(shell, "w[0] = 5")
    assert card(shell, "w") == []
    cell(shell, "w[0] = 6")
    assert card(shell, "w") == []


def test_the_table_groups_by_memory_and_counts_each_byte_once(shell):
    """A model, its optimizer, arrays and views; totals are those of the storages."""
    cell(shell, "w = torch.zeros(1000); v = w[10:]; a = w.numpy()[::2]; other = torch.zeros(500, dtype=torch.float64)")
    rows = table(shell)
    assert rows[""] == "3 tensors and 1 array · cpu 7.8 KiB"
    assert [name for name in rows if name] == ["w", "v", "a (NumPy array)", "other"]
    assert "w: overlapping" in rows["v"]
    cell(shell, "model = torch.nn.Linear(3, 2); model.head = model.weight; loss = model(torch.ones(3)).sum()")
    cell(shell, "loss.backward(); opt = torch.optim.Adam(model.parameters()); opt.step()")
    rows = table(shell, "model")
    assert {"model.weight", "model.bias", "model.weight.grad", "model.bias.grad"} <= set(rows)
    assert "opt.state[model.weight]" in "".join(table(shell, "opt*"))
    heading = table(shell, "model.bias")[""]
    assert "· cpu 16 bytes · " in heading, "itself and its gradient"
    assert "not counted: what the graphs of loss saved for backward" in cell(shell, "%tensors")
    assert "not counted" not in cell(shell, "del loss\n%tensors")


def test_a_view_that_keeps_a_storage_says_so(shell):
    """Among the variables, where nothing else reaches the storage."""
    cell(shell, "part = torch.zeros(1000)[:10]; whole = torch.zeros(1000); seen = whole[:10]")
    cell(shell, "model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(20)])")
    told = " ".join(table(shell).values())
    assert "(10,) float32, 40 bytes of a storage of 3.9 KiB" in told
    assert told.count("of a storage") == 1


def test_the_heading_says_whose_the_bytes_are(shell):
    """Each storage is one owner's, however many names reach it; a single owner is not named."""
    cell(
        shell,
        "model = torch.nn.Linear(10, 5); w = model.weight; bn = torch.nn.BatchNorm1d(5); state = model.state_dict()",
    )
    assert "buffers" not in cell(shell, "%tensors"), "all are the modules'"
    cell(
        shell,
        "loss = model(torch.ones(10)).sum(); loss.backward(); opt = torch.optim.Adam(model.parameters()); opt.step()",
    )
    cell(shell, "x = torch.ones(100); y = x[3:]; del loss")
    cell(shell, "torch.ones(7)")
    assert table(shell)[""].split(" · ")[2:4] == [
        "parameters and buffers 308 bytes, gradients 220 bytes, optimizer states 448 bytes, variables 400 bytes, "
        "Out[…] 28 bytes",
        "%tensors --release frees 28 bytes",
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%tensors --nope", "the options are"),
        ("%tensors nothing_here", "no tensor or array is called nothing_here"),
        ("%tensors --release w", "--release takes no name"),
        ("%tensorwatch --off w", "w is not watched"),
        ("%tensorwatch nope", "nope cannot be watched (name 'nope' is not defined)"),
        ("%tensorwatch w[", "cannot be watched"),
        ("%tensorwatch 3", "3 would have to be run"),
        ("%tensorwatch number", "number holds no tensor or array; name one that does"),
        ("%tensorwatch w[::2]", "w[::2] cannot be watched"),
        ("%tensorwatch q.pop()", "q.pop() would have to be run"),
        ("%tensorwatch -x w", "the options are"),
    ],
)
def test_bad_input_gets_one_clear_sentence(shell, line, says):
    """No traceback wall, and nothing is run to find out."""
    shell.namespace.update(w=torch.zeros(3), number=3, q=[torch.zeros(1)])
    assert says in shell.fail(line)
    assert len(shell.namespace["q"]) == 1


def test_an_empty_notebook(shell):
    """There is nothing, and that is said."""
    assert cell(shell, "%tensors").strip() == "no tensor or array here"
    assert "nothing to release" in cell(shell, "%tensors --release")


def test_what_history_pins_is_told_and_released_with_exact_bytes(shell):
    """`Out`, `_` and `_n`; the tensor is gone at once, and the names of the user stay."""
    cell(shell, "w = torch.zeros(100)")
    first = number(shell)
    shell.namespace["refs"] = refs = []
    cell(shell, "def make():\n    t = torch.zeros(1000); refs.append(__import__('weakref').ref(t)); return t\nmake()")
    cell(shell, "[make(), w]")
    cell(shell, "w")
    rows = table(shell)
    assert f"Out[{first}]" in rows[f"Out[{first}]"].rsplit("  ", 1)[-1]
    gc.collect()
    assert None not in [ref() for ref in refs]
    said = cell(shell, "%tensors --release")
    assert f"released Out[{first}], Out[{first + 1}]: 8,000 bytes on cpu came free" in said
    assert [ref() for ref in refs] == [None, None]
    assert (shell.namespace["__"], shell.namespace["___"]) == ("", "")
    assert shell.namespace["w"] is shell.namespace["Out"][first + 2]
    assert "nothing to release" in cell(shell, "%tensors --release")


def test_a_name_of_the_users_is_never_touched(shell):
    """Neither `_` nor `_3` once the user has bound them, nor a key that they put into `Out`."""
    first = number(shell)
    cell(shell, "torch.ones(10)")
    cell(shell, f"_{first} = 'mine'; Out['mine'] = torch.ones(5)")
    cell(shell, "_ = 'also mine'")
    said = cell(shell, "%tensors --release")
    assert f"released Out[{first}]: 40 bytes on cpu came free" in said
    assert (shell.namespace[f"_{first}"], shell.namespace["_"]) == ("mine", "also mine")
    assert shell.namespace["Out"]["mine"].tolist() == [1] * 5
    del shell.namespace["_"]


def test_what_the_last_error_holds_comes_free(shell):
    """The locals of the functions that it has left; names of the user stay."""
    with capture_output():
        shell.ip.run_cell("w = torch.ones(3)\ndef f(w):\n    x = torch.zeros(1000); v = x[1:]\n    1 / 0\nf(w)")
    assert "the last error holds 3.9 KiB more · %tensors --release frees 3.9 KiB" in cell(shell, "%tensors")
    said = cell(shell, "%tensors --release")
    assert "released the locals of the last error: 4,000 bytes on cpu came free" in said
    assert "nothing to release" in cell(shell, "%tensors --release")


def test_the_table_keeps_nothing_alive(shell):
    """Nor does a card, a conversion or a release."""
    t = torch.zeros(10)
    reference = weakref.ref(t)
    shell.namespace["t"] = t
    shell.run("%tensors")
    shell.run("%tonumpy -c -o a t")
    shell.show(t)
    shell.run("%tensors t")
    del shell.namespace["t"], t
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    "cells",
    [
        ["%tensors"],
        ["%tensors w*"],
        ["%tensors --release"],
        ["%tensorwatch w odd a", "5", "a[0] = 2", "%tensorwatch --off"],
    ],
)
def test_looking_at_all_changes_nothing(shell, cells):
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
        for code in cells:
            shell.run(code)


def test_what_is_not_proven_unnamed_is_not_released(shell, monkeypatch):
    """A name of the user's may reach it where the search had stopped; what is left is named, with the cure."""
    entry = shell.ip.execution_count
    cell(shell, "torch.ones(10)")
    cell(shell, f"kept = [0] * 5000 + [Out[{entry}]]")
    monkeypatch.setattr(names, "MAX_RELEASE_SECONDS", 0)
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
