"""Which line wrote over what a backward needs: torch's error names a node, a shape and two versions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import tensornp as tnp

X, Z = torch.randn(2, 3, 8, 8), torch.randn(4, 8)


def residual() -> None:
    """The writer is what torch names; a later one, of another shape, does no harm."""
    h = nn.Conv2d(3, 8, 3, padding=1)(X)
    h += nn.Conv2d(8, 8, 3, padding=1)(h)  # culprit
    z = nn.Linear(8, 4)(h.mean((2, 3)))
    functional.relu(z, inplace=True).sum().backward()


def adversarial() -> None:
    """A step between the forward and the backward of another loss: torch names a view of a weight."""
    made, judge = nn.Linear(8, 8)(Z), nn.Linear(8, 1)
    optimizer = torch.optim.SGD(judge.parameters(), 0.1)
    loss = judge(made).mean()
    judge(made.detach()).mean().backward()
    optimizer.step()  # culprit
    loss.backward()


def adam() -> None:
    """Its states have the shapes of the weights, and are written too."""
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    loss = model(model(Z)).sum()
    model(Z).sum().backward()
    optimizer.step()  # culprit
    loss.backward()


def part() -> None:
    """Of what was made, a row is written."""
    h = nn.Linear(8, 8)(Z).exp()
    h[0] = 0  # culprit
    h.sum().backward()


def column() -> None:
    """Of what a product needs; the node that torch names has a space of names before it."""
    h, w = nn.Linear(8, 8)(Z), torch.randn(8, 8, requires_grad=True)
    product = h @ w
    h[:, 0] = 0  # culprit
    product.sum().backward()


def row_read() -> None:
    """A row that is read as well."""
    h = nn.Linear(8, 8)(Z).tanh()
    h[0] += 1  # culprit
    h.sum().backward()


def several() -> None:
    """The first of two."""
    h = nn.Linear(8, 8)(Z).sigmoid()
    y = h * h
    h.add_(1)  # culprit
    h.mul_(2)
    y.sum().backward()


def detached() -> None:
    """Torch names no node."""
    sums, held = [], torch.zeros(8)
    for row in nn.Linear(8, 8)(Z):
        held.copy_(row.detach())  # culprit
        sums.append((row * held).sum())
    torch.stack(sums).sum().backward()


def either() -> None:
    """Two of one shape, each written over at a line of its own: torch does not tell which is meant."""
    model = nn.Linear(8, 8)
    one, other = model(Z).sigmoid(), model(Z + 1).sigmoid()
    one.mul_(2)
    other.mul_(3)
    (one.sum() + other.sum()).backward()


@pytest.mark.parametrize("program", [residual, adversarial, adam, part, column, row_read, several, detached])
def test_the_line_that_wrote_over_it_is_named(program: Callable[[], None]):
    """And none that wrote over something else."""
    assert "# culprit` wrote over" in told_of(program)


def test_where_two_lines_may_be_meant_none_is():
    """The error itself is told."""
    assert told_of(either).startswith("RuntimeError after 2 calls")


def told_of(program: Callable[[], None]) -> str:
    """Return the first that is said of a program that fails so."""
    torch.manual_seed(0)
    run = tnp.follow(level="operators")
    with contextlib.suppress(RuntimeError), run:
        program()
    return run.problems[0]
