"""A weight stands out among those that are alike where its norm is at least four times what they have in the middle."""

from __future__ import annotations

import torch

import tensornp as tnp


def test_a_scan_says_which_weight_is_not_as_its_siblings_are():
    """Those that are one line of the tree with it, and of one shape; what counts has none."""
    state = {f"layer.{i}.w": torch.randn(30, 20, generator=torch.Generator().manual_seed(i)) for i in range(6)}
    state["layer.4.w"] *= 9
    state |= {f"layer.{i}.steps": torch.tensor(10**i) for i in range(6)} | {"head": 1e6 * torch.arange(1.0, 8)}
    found = tnp.weights(state).scan()
    said = {name: [one.text for one in found.findings(name) if "siblings" in one.text] for name in found}
    assert {name for name, texts in said.items() if texts} == {"layer.4.w"}
    norms = sorted(float(state[f"layer.{i}.w"].norm()) for i in range(6))
    assert said["layer.4.w"] == [f"its norm is {norms[-1] / norms[2]:.3g} times the median of its 5 siblings"]
    assert (found.num_alarms, found.num_quiet) == (0, 1)
