"""What a card says of autograd: leaves, gradients of other kinds, retained ones, parameters that were left out."""

from __future__ import annotations

import html
import re

import torch


def badge(card: dict[str, str]) -> tuple[str, str]:
    """Return the text of the grad badge and its sentence, which stands in the receipt too."""
    shown = re.findall(r'<span title="[^"]*" style="[^"]*">([^<]*)</span>', card["text/html"])
    words = ("grad", "frozen", "buffer", "Backward")
    text = next(one for one in shown if any(word in one for word in words))
    sentence = re.search(f"<br>{re.escape(text)} – ([^<]*)<", card["text/html"] + "<")
    assert sentence is not None
    assert card["text/html"].count(sentence[1]) == 2
    return html.unescape(text), html.unescape(sentence[1])


def test_a_leaf_has_a_gradient_or_not(shell):
    """Before and after a backward."""
    x = torch.ones(3, requires_grad=True)
    assert badge(shell.show(x)) == ("requires grad", "Autograd tracks this leaf and .grad is empty.")
    x.sum().backward()
    assert badge(shell.show(x)) == (
        "requires grad · has .grad",
        "Autograd tracks this leaf and .grad is filled.",
    )


def test_a_retained_gradient_is_told_before_and_after(shell):
    """Of a tensor that is no leaf."""
    y = torch.ones(3, requires_grad=True) * 2
    assert badge(shell.show(y))[0] == "from MulBackward0"
    y.retain_grad()
    assert badge(shell.show(y))[0] == "from MulBackward0 · retains grad"
    y.sum().backward()
    assert badge(shell.show(y))[0] == "from MulBackward0 · has .grad"


def test_the_last_operation_is_told(shell):
    """The badge names the node that made the tensor."""
    x = torch.ones(3, requires_grad=True)
    assert badge(shell.show(x.exp() + x))[1] == "Autograd made this tensor by AddBackward0; it is not a leaf."


def test_a_frozen_parameter_is_told_from_a_plain_tensor(shell):
    """And one that was frozen with its gradient still there."""
    p = torch.nn.Parameter(torch.ones(2))
    p.sum().backward()
    p.requires_grad_(False)
    assert badge(shell.show(p))[0] == "frozen · has .grad"
    assert badge(shell.show(torch.nn.Parameter(torch.ones(2), requires_grad=False)))[0] == "frozen"
    assert "grad" not in shell.show(torch.ones(2))["text/plain"]
