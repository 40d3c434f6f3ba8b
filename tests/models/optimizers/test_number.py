"""How many weights and states of optimizers are told."""

from __future__ import annotations

import torch

import tensornp as tnp


def test_states_of_optimizers_are_no_weights(tmp_path):
    """In the heading of a checkpoint, and of an optimizer alone; what scales a weight is no state of one."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    told = "2 weights and 6 optimizer states"
    explorer = tnp.weights(tmp_path / "c.pt")
    assert told in repr(explorer)
    assert told in tnp.card(explorer).text
    assert "6 optimizer states" in repr(tnp.weights(optimizer))
    assert "weight" not in repr(tnp.weights(optimizer)).partition(": ")[2].partition(",")[0]
    assert "2 weights," in repr(tnp.weights(model))
