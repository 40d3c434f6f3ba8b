"""Sentences that have a line of a program in them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.render.passes.source_line import clauses_of


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("`kl` holds NaN, cell 3 `a(x); b(x)`", "; it came with the call; so it is said"),
        ("one clause", ""),
        ("a;b", "; c"),
        ("a line that was cut, `net(x)", "; opt.step(…"),
    ],
)
def test_a_clause_ends_at_no_semicolon_of_a_line(first: str, rest: str):
    """Nothing is lost between the two."""
    assert clauses_of(first + rest) == (first, rest)


def test_the_whole_line_of_what_differs_first_is_marked():
    """One that has several statements too."""
    net = nn.Linear(2, 1)
    with tnp.follow(net) as first:
        pass; net(torch.ones(1, 2)); pass  # fmt: skip  # noqa: E702
    net.bias.data += 1
    with tnp.follow(net) as second:
        net(torch.ones(1, 2))
    html = tnp.card(tnp.compare(first, second)).html
    marked = html.partition('font-weight:600">')[2].partition("</span>")[0]
    assert "pass; net(torch.ones(1, 2)); pass" in marked and marked.endswith("relative")
