"""Objects that stand for a tensor, in a real shell; all others are shown as ever."""

from __future__ import annotations

import torch

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


def test_tonumpy_converts_it_and_explains(shell):
    """As an expression, in a container, and as a receipt alone."""
    shell.run(MAKE)
    assert shell.run("%tonumpy s").tolist() == [0, 1, 2]
    assert "s" in shell.complete("%tonumpy ")
    assert shell.run("%tonumpy {'a': s}")["a"].tolist() == [0, 1, 2]
    shell.run("%tonumpy --explain s")
    assert "s.__tensornp__()" in shell.printed
    assert "stand in" in shell.printed


def test_all_other_objects_are_shown_as_without_us(shell):
    """Their own MIME bundles, methods and printers, and those that other libraries have set for `object`."""

    class Bundle:
        def _repr_mimebundle_(self, include=None, exclude=None):
            return {"text/plain": "bundle", "image/png": "png"}, {"image/png": {"width": 3}}

    class Html:
        def __repr__(self):
            return "plain"

        def _repr_html_(self):
            return "<b>html</b>"

    formatter = shell.ip.display_formatter
    loaded = [formatter.format(obj) for obj in (Bundle(), Html(), 5, "x")]
    kept = formatter.format(Bundle(), include=["image/png"])
    torch.zeros(1)
    shell.run("%unload_ext tensornp")
    assert loaded == [formatter.format(obj) for obj in (Bundle(), Html(), 5, "x")]
    assert kept == formatter.format(Bundle(), include=["image/png"])
