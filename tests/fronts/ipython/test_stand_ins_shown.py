"""Objects that stand for a tensor, in a real shell; all others are shown as ever."""

from __future__ import annotations

MAKE = """
import torch, tensornp as tnp
class Says:
    def __init__(self, values): self.values = values
    def __tensornp__(self): return self.values
    def __repr__(self): return "its own repr"
s = Says(torch.arange(3.))
"""


def test_an_object_that_stands_for_a_tensor_is_shown_as_it(shell):
    """As text and as HTML, alone and in a list; its own repr is for everywhere else."""
    shell.run(MAKE)
    says = shell.namespace["s"]
    shown = shell.show_within_modes(says)
    assert shown["text/plain"].startswith("Says | (3,) | float32")
    assert shown["text/plain"].endswith("array([0., 1., 2.], dtype=float32)")
    assert "array([0., 1., 2.], dtype=float32)" in shown["text/html"]
    assert "stand-in" in shown["text/html"]
    table = shell.show_within_modes([says, 5])
    assert "0., 1., 2." in table["text/plain"]
    assert "0., 1., 2." in table["text/html"]
    shell.run("%unload_ext tensornp")
    assert shell.show_within_modes(says) == {"text/plain": "its own repr"}


def test_a_registration_holds_at_once_and_until_it_is_taken_back(shell):
    """No matter whether an instance was shown before."""
    shell.run("class Own:\n    def __repr__(self): return 'own'\no = Own()")
    own = shell.namespace["o"]
    assert shell.show_within_modes(own) == {"text/plain": "own"}
    shell.run("import torch, tensornp as tnp\ntnp.register_kind(Own, values=lambda o: torch.ones(2), label='mine')")
    assert "mine" in shell.show_within_modes(own)["text/plain"]
    assert "mine" in shell.show_within_modes(own)["text/html"]
    shell.run("tnp.register_kind(Own)")
    assert shell.show_within_modes(own) == {"text/plain": "own"}
