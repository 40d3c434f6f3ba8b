"""Errors that end a block: the call that raised, what it got, and the lines that wrote over a value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch
from made import block, chain, leaf, value, weight
from torch import nn
from torch.nn import functional

import tensornp as tnp
from tensornp.passes.findings import failed_call, failure_of
from tensornp.passes.records import LEFT, RAISED, RETURNED, STOPPED, PassRecord

ERROR = "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
X, Z = torch.randn(2, 3, 8, 8), torch.randn(4, 8)


def misfit(inputs: dict[str, torch.Tensor], **facts: object) -> PassRecord:
    """Return a pass that ended in a call with a weight, behind a GELU."""
    raised = leaf("2", "Linear", status=RAISED, error=ERROR, outputs={}, inputs=inputs, **facts)
    return chain(leaf("1", "GELU"), raised, error=ERROR)


FAILURES = {
    "shapes": (
        misfit({"[0]": value(shape=(16, 24), maker=1)}, params={"weight": weight(shape=(8, 32))}),
        f"2 (Linear) raised {ERROR}",
        "its input was (16, 24) float32 from 1 (GELU); its weight is (8, 32) float32",
    ),
    "dtypes": (
        misfit({"[0]": value(dtype="float16")}), f"2 (Linear) raised {ERROR}",
        "its input was (3, 4) float16; its weight is (3, 4) float32",
    ),
    "devices": (
        misfit({"[0]": value(device="cuda:0")}), f"2 (Linear) raised {ERROR}",
        "its input was (3, 4) float32 on cuda:0; its weight is (3, 4) float32 on cpu",
    ),
    "several inputs": (
        misfit({"[0]": value(), "[1]": value()}, params={}), f"2 (Linear) raised {ERROR}",
        "its inputs were (3, 4) float32 and (3, 4) float32",
    ),
    "the cell": (chain(leaf("fc"), error=ERROR), "RuntimeError in the cell, after fc (Linear) had returned", ""),
    "before all calls": (block(error="KeyboardInterrupt"), "KeyboardInterrupt in the cell", ""),
    "Ctrl-C": (block(leaf("", "Net", status=LEFT), error="KeyboardInterrupt"), "KeyboardInterrupt in Net", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_reported_with_what_the_call_got(name: str):
    record, fact, explanation = FAILURES[name]
    finding = failure_of(record)
    assert finding is not None
    assert (finding.kind, finding.fact, finding.explanation) == ("failed", fact, explanation)


def nested(*statuses: str, error: str = ERROR) -> PassRecord:
    """Return a pass of calls, each inside the one before."""
    calls = [leaf(".".join("a" * i), parent=i, status=one, error=ERROR) for i, one in enumerate(statuses)]
    return block(*calls, error=error)


@pytest.mark.parametrize(
    ("record", "index"),
    [
        (nested(RAISED, RAISED, RAISED), 3),
        (nested(RAISED, RAISED, RETURNED), 2),
        (nested(RETURNED, RAISED, RAISED), None),
        (nested(LEFT, LEFT), 2),
        (nested(STOPPED, STOPPED), None),
        (nested(RAISED, RAISED, error=""), None),
        (block(error=ERROR), None),
    ],
)
def test_the_innermost_call_that_raised_is_the_failure(record: PassRecord, index: int | None):
    """Calls inside of a call that returned, and those that a checkpoint stopped, did not fail."""
    call = failed_call(record)
    assert (call.index if call else None) == index


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_the_failure_of_a_model_is_the_call_whose_shapes_do_not_fit(level: str):
    model = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(32, 8))
    with pytest.raises(RuntimeError, match="mat1 and mat2"), tnp.follow(level=level) as run:
        model(torch.ones(16, 8))
    finding = run.findings[0]
    assert finding.fact.startswith("2 (Linear) raised RuntimeError: mat1 and mat2 shapes")
    assert finding.explanation == "its input was (16, 24) float32 from 1 (GELU); its weight is (8, 32) float32"
    assert run.failed is run[finding.call]


def residual() -> None:
    """Write in place over the result of a convolution; a later write, of another shape, does no harm."""
    h = nn.Conv2d(3, 8, 3, padding=1)(X)
    h += nn.Conv2d(8, 8, 3, padding=1)(h)  # culprit
    z = nn.Linear(8, 4)(h.mean((2, 3)))
    functional.relu(z, inplace=True).sum().backward()


def adversarial() -> None:
    """Step between the forward and the backward of another loss: torch names a view of a weight."""
    made, judge = nn.Linear(8, 8)(Z), nn.Linear(8, 1)
    optimizer = torch.optim.SGD(judge.parameters(), 0.1)
    loss = judge(made).mean()
    judge(made.detach()).mean().backward()
    optimizer.step()  # culprit
    loss.backward()


def part() -> None:
    h = nn.Linear(8, 8)(Z).exp()
    h[0] = 0  # culprit
    h.sum().backward()


def column() -> None:
    h, w = nn.Linear(8, 8)(Z), torch.randn(8, 8, requires_grad=True)
    product = h @ w
    h[:, 0] = 0  # culprit
    product.sum().backward()


def several() -> None:
    """Write twice; both lines are named."""
    h = nn.Linear(8, 8)(Z).sigmoid()
    y = h * h
    h.add_(1)  # culprit
    h.mul_(2)  # culprit
    y.sum().backward()


def detached() -> None:
    """Copy into memory again and again."""
    sums, held = [], torch.zeros(8)
    for row in nn.Linear(8, 8)(Z):
        held.copy_(row.detach())  # culprit
        sums.append((row * held).sum())
    torch.stack(sums).sum().backward()


def either() -> None:
    """Write over two tensors of one shape; both lines are named."""
    model = nn.Linear(8, 8)
    one, other = model(Z).sigmoid(), model(Z + 1).sigmoid()
    one.mul_(2)  # culprit
    other.mul_(3)  # culprit
    (one.sum() + other.sum()).backward()


PROGRAMS = [residual, adversarial, part, column, several, detached, either]


def failed_pass(program: Callable[[], None], level: str) -> tnp.FollowedPass:
    torch.manual_seed(0)
    with contextlib.suppress(RuntimeError), tnp.follow(level=level) as run:
        program()
    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_lines_that_wrote_over_a_value_are_named(program: Callable[[], None]):
    """Lines that wrote over other shapes are not."""
    finding = failed_pass(program, "operators").findings[0]
    assert finding.kind == "overwritten"
    assert "that the backward needs unchanged" in finding.fact
    num_culprits = 2 if program in (several, either) else 1
    text = f"{finding.fact} {finding.explanation}"
    assert (text.count("test_failure.py:"), text.count("# culprit`")) == (num_culprits, num_culprits)
    assert finding.source is not None
    assert "# culprit" in finding.source.text


def test_without_operators_the_error_leads_to_them():
    finding = failed_pass(part, "modules").findings[0]
    assert finding.fact == "RuntimeError in the cell, after Linear had returned"
    assert "--operators" in finding.explanation
