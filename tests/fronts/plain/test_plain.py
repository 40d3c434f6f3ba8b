"""`tnp.install` in plain Python: the prompt prints cards, a freed tensor ends nothing, and all is as it was after."""

from __future__ import annotations

import builtins
import functools
import os
import subprocess
import sys

import pytest
import torch

from tensornp.fronts import install

LINES = {
    "tensor": "t = torch.arange(6.).reshape(2, 3); t",
    "is it": "_ is t",
    "list": "[t, 1]",
    "module": "torch.nn.Linear(3, 2)",
    "text": "'a'",
    "it": "_",
    "nothing": "None",
    "numbers": "[1, 2]",
    "explorer": "tnp.weights({'a': t})",
    "shared": "a = t.numpy(); t",
    "freed": "u = torch.ones(3); u.untyped_storage().resize_(0) and None; u",
    "freed within": "{'u': u}",
    "after": "1 + 1",
    "again": "tnp.install(); t",
    "unregistered": "tnp.uninstall(); tnp.uninstall(); t",
}


@pytest.fixture(scope="module")
def shown():
    """What each line prints that is typed at the prompt of a fresh Python."""
    lines = [f"{line}\nprint('-----')\n" for line in LINES.values()]
    child = subprocess.run(
        [sys.executable, "-i", "-q"],
        input="".join(["import torch, tensornp as tnp; tnp.install()\n", *lines]),
        capture_output=True, check=True, encoding="utf-8",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert "Error" not in child.stderr, child.stderr
    return dict(zip(LINES, (text.strip() for text in child.stdout.split("-----\n")), strict=False))


@pytest.mark.slow
def test_the_prompt_prints_cards_and_all_else_as_before(shown):
    """A tensor, a list of them and a model; a number, a text, None, and what `_` is after each."""
    assert shown["tensor"].startswith("(2, 3) | float32 | cpu | shared\n")
    assert "array([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32)" in shown["tensor"]
    assert shown["is it"] == "True"
    assert shown["list"].startswith("list of 2")
    assert "2 weights" in shown["module"]
    assert [shown[name] for name in ("text", "it", "nothing", "numbers")] == ["'a'", "'a'", "", "[1, 2]"]
    assert "1 weight ·" in shown["explorer"]


def test_a_freed_tensor_says_so_and_ends_nothing(shown):
    """Torch's own `repr` of it would be a segmentation fault, in a container too."""
    assert "the storage holds 0 bytes" in shown["freed"]
    assert "holds 0 bytes" in shown["freed within"]
    assert shown["after"] == "2"


def test_who_shares_the_memory_is_told_by_name(shown):
    """The variables of the program are searched, as in a notebook."""
    assert "same memory as a (NumPy array)" in shown["shared"]


def test_unregistering_at_the_prompt_brings_torch_s_own_text_back(shown):
    """Once, though it was registered twice."""
    assert "array(" in shown["again"]
    assert shown["unregistered"].startswith("tensor([[0., 1., 2.],")


@pytest.fixture
def hook(monkeypatch, capsys):
    """The hook of this process, which is put back."""
    monkeypatch.setattr(sys, "displayhook", sys.__displayhook__)
    # Python's own hook leaves its value here, and no shell of IPython writes `_` any more then.
    monkeypatch.setattr(builtins, "_", None, raising=False)
    yield
    install.unregister()


def test_the_hook_that_was_there_before_is_put_back(hook, monkeypatch):
    """Its own, not Python's."""
    others: list[object] = []
    monkeypatch.setattr(sys, "displayhook", others.append)
    install.register()
    install.register()
    sys.displayhook(3)
    install.unregister()
    install.unregister()
    assert sys.displayhook == others.append
    assert others == [3]


def test_a_hook_that_was_put_in_since_stays(hook, capsys):
    """What it hands on to us goes on to the one before."""
    install.register()
    ours = sys.displayhook
    sys.displayhook = later = functools.partial(ours)
    install.unregister()
    assert sys.displayhook is later
    sys.displayhook(torch.ones(2))
    assert capsys.readouterr().out == "tensor([1., 1.])\n"
