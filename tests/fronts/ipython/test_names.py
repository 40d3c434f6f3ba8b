"""Names that `-o` and Bind take, ask about, and refuse: one answer for both."""

from __future__ import annotations

import builtins
import keyword

import pytest
import torch

from tensornp.core.summary.surroundings import Surroundings
from tensornp.fronts.ipython.live import LiveToggle
from tensornp.widget.toggle import TensorWidget

NEVER = [
    "1a", "a b", "a.b", "", "None", "class", "__debug__", "__builtins__", "__name__", "ﬁ", "𝐱", "\ud800",
    "In", "Out", "_", "__", "___", "_3", "_i", "_ii", "_iii", "_i3", "_ih", "_oh", "_dh", "exit", "quit", "get_ipython",
]  # fmt: skip
TAKEN = ["print", "input", "open", "display", "NotImplemented"]
FREE = ["mine", "_mine", "__mine", "match", "in_", "____", "_i_", "größe", "类"]


@pytest.fixture
def bind(shell):
    """Return what a page does: it sends a name to a card, and reads what the card then says."""
    shell.namespace["w"] = torch.zeros(2)
    binder = LiveToggle(shell.ip, None, None).bind
    widget = TensorWidget(shell.namespace["w"], binder=binder, look=lambda *_: Surroundings(name="w"))

    def send(name, overwrite=False):
        content = {"type": "bind", "name": name, "overwrite": overwrite}
        with shell.ip.builtin_trap:
            widget._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
        return widget.message

    return send


def test_what_python_cannot_reach_and_what_is_ipythons_is_refused(shell, bind):
    """One sentence, the name is nowhere, and there is no Overwrite; the page may say what it likes."""
    before = dict(shell.namespace)
    for name in NEVER:
        for overwrite in (False, True):
            said = bind(name, overwrite)
            assert (said["tone"], "confirm" in said) == ("error", False)
        if name and " " not in name:
            for magic in ("tonumpy", "totensor"):
                assert said["text"] in shell.refuse(magic, f"-o {name} nothing_is_evaluated()")
        assert {k: v for k, v in shell.namespace.items() if k in before} == before
        assert name in before or name not in shell.namespace


def test_a_builtin_is_taken(shell, bind):
    """Bind asks first, `-o` refuses."""
    for name in TAKEN:
        before = shell.namespace.get(name)
        assert bind(name)["confirm"] == name
        assert "already names a builtin" in shell.fail(f"%tonumpy -o {name} w")
        assert "already names a builtin" in shell.fail(f"%totensor -o {name} w.numpy()")
        assert shell.namespace.get(name) is before
        said = bind(name, overwrite=True)
        assert said == {"text": f"bound to {name} (view)", "again": f"{name} = %tonumpy --view w"}
        assert shell.namespace.pop(name).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["mine", "input"])
def test_a_variable_of_the_users_own_is_overwritten_by_o_and_asked_about_by_bind(shell, bind, name):
    """Also one that hides a builtin already."""
    shell.namespace[name] = "precious"
    assert bind(name)["confirm"] == name
    assert "something of type str" in bind(name)["text"]
    shell.run(f"%tonumpy -o {name} w")
    assert shell.namespace[name].tolist() == [0, 0]
    shell.run(f"%totensor -o {name} {name}")
    assert isinstance(shell.namespace[name], torch.Tensor)


def test_all_other_names_are_free(shell, bind):
    """Other alphabets, soft keywords, and names that only look like those of IPython."""
    for name in FREE:
        assert bind(name) == {"text": f"bound to {name} (view)", "again": f"{name} = %tonumpy --view w"}
        shell.run(f"del {name}\n%tonumpy -o {name} w")
        assert eval(name, shell.namespace).tolist() == [0, 0]


def test_nothing_that_ipython_or_python_binds_by_itself_can_be_bound(shell, bind):
    """Asked of a fresh shell itself, whatever its version puts there."""
    shell.ip.run_cell("0", store_history=True)
    theirs = set(shell.ip.user_ns_hidden) | set(vars(builtins)) | set(keyword.kwlist)
    assert all(bind(name).get("tone") == "error" for name in theirs)


def test_a_name_that_is_taken_is_told_before_anything_is_converted(shell, bind):
    """The array of a large tensor would be made for nothing; where it cannot be, the name is what is said first."""
    del shell.namespace["w"]
    assert bind("print")["confirm"] == "print"
