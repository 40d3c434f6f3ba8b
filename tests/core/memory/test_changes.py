"""Snapshots of one tensor before and after each way to change it, and the roads that are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from accelerator import memory_of, needs_card, register
from child import in_fork

import tensornp as tnp
from tensornp.core.memory.changes import Change, Snapshot, change_between, take_snapshot
from tensornp.render.tensor.badges import change_parts, change_sentence, change_text

ALL = 2**40


def snapshot(t: torch.Tensor, max_nbytes: int = ALL) -> Snapshot:
    return take_snapshot(t, tnp.inspect(t), "the card in In[1]", max_nbytes)


def change_by(t: torch.Tensor, act: Callable[[torch.Tensor], object], max_nbytes: int = ALL) -> Change | None:
    before = snapshot(t, max_nbytes)
    act(t)
    return change_between(before, snapshot(t, max_nbytes))


def fused_step(t: torch.Tensor) -> None:
    t.grad = torch.ones_like(t)
    torch.optim.SGD([t], lr=0.1, fused=True).step()


def plain_step(t: torch.Tensor) -> None:
    t.grad = torch.ones_like(t)
    torch.optim.SGD([t], lr=0.1, foreach=False).step()


ROADS: dict[str, tuple[Callable[[torch.Tensor], object], str]] = {
    "in place": (lambda t: torch.no_grad()(t.add_)(1), "torch"),
    "one element": (lambda t: torch.no_grad()(t.__setitem__)((1, 2), 5.0), "torch"),
    "an optimizer": (plain_step, "torch"),
    "through a view": (lambda t: torch.no_grad()(t.detach()[1].mul_)(2), "torch"),
    "NumPy": (lambda t: tnp.to_numpy(t, copy=False, writeable=True).fill(7), "uncounted"),
    ".data": (lambda t: t.data.add_(1), "uncounted"),
    "half precision": (lambda t: setattr(t, "data", t.data.half()), "retyped"),
    "the storage": (lambda t: t.untyped_storage().fill_(1), "uncounted"),
    "DLPack": (lambda t: torch.from_dlpack(t.detach()).add_(1), "uncounted"),
    "a fused optimizer": (fused_step, "uncounted"),
    "other data": (lambda t: setattr(t, "data", torch.ones(3, 4)), "uncounted"),
}


@pytest.mark.parametrize("road", ROADS)
def test_each_road_is_told(road):
    """Values by torch or behind its back; `test_snapshots` has those of a watch."""
    act, expected = ROADS[road]
    found = change_by(torch.nn.Parameter(torch.arange(12.0).view(3, 4)), act)
    assert found is not None
    assert found.cause == expected


@pytest.mark.parametrize(
    "act",
    [
        lambda t: None,
        lambda t: t.add_(0),
        lambda t: t.copy_(t.clone()),
        lambda t: t.requires_grad_(),
        lambda t: t.sum().item(),
        lambda t: t.numpy(),
    ],
)
def test_equal_bits_in_the_same_place_are_no_change(act):
    """Even where torch has counted a write, if every byte was read."""
    assert change_by(torch.arange(12.0), act) is None


def test_a_square_matrix_that_is_transposed_in_place_is_not_unchanged():
    """The bytes are equal, the elements are not."""
    assert change_by(torch.arange(9.0).view(3, 3), lambda t: t.t_()).cause == "moved"


def test_a_counted_write_is_not_said_to_be_the_only_one():
    """Torch has counted one that changes nothing, and NumPy, uncounted, has changed the values."""

    def both(t: torch.Tensor) -> None:
        t.add_(0)
        t.numpy()[0] = 5

    change = change_by(torch.zeros(3), both)
    assert change.cause == "torch"
    assert change_text(change) == "changed since the card in In[1] · with a write counted by torch"
    assert change_sentence(change) == (
        "Changed since the card in In[1], and torch has counted a write since then, which need not be the only one."
    )
    assert change_parts(change) == ("with a write counted by torch",)


def test_inference_tensors_count_no_writes():
    """The road cannot be told."""
    with torch.inference_mode():
        t = torch.zeros(3)
        change = change_by(t, lambda t: t.add_(1))
    assert change.cause == "unknown"
    assert "by an unknown write" in change_sentence(change)


def test_without_a_budget_nothing_is_read_and_nothing_said():
    """0 turns it off; what has no values never changes."""
    t = torch.zeros(4)
    assert snapshot(t, 0).fingerprint is None
    assert change_by(t, lambda t: t.add_(1), 0) is None
    assert change_by(torch.zeros(3, device="meta"), lambda t: t.add_(1)) is None
    assert change_by(torch.zeros(3), lambda t: t.untyped_storage().resize_(0)) is None


@needs_card
@in_fork
def test_a_move_to_another_device_is_a_move():
    """Equal values on another device are not called changed; a change there is."""
    register()
    module = torch.nn.Linear(3, 3)
    before = snapshot(module.weight)
    module.to("card")
    change = change_between(before, snapshot(module.weight))
    assert (change.cause, change.coverage) == ("moved", "values not compared")
    assert change_text(change) == "moved since the card in In[1] · values not compared"
    assert change_by(module.weight, lambda t: memory_of(t.detach()).add_(1)).cause == "uncounted"
    assert change_by(module.weight, lambda t: torch.no_grad()(t.add_)(1)).cause == "torch"
    assert change_by(module.weight, lambda t: None) is None
