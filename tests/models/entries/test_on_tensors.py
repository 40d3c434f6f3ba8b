"""What tensors hold as attributes is not compared: it is named, and two that may differ in it are never equal."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensornp as tnp


class Held:
    """Holds what a library would keep beside codes."""

    def __init__(self, held: Any) -> None:
        self.held = held


class Scaled(torch.Tensor):
    """A class of the user's, of which nothing is to run."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


def scaled() -> torch.Tensor:
    return torch.arange(3.0).as_subclass(Scaled)


TENSORS = {
    "tensor": lambda: torch.arange(3.0),
    "parameter": lambda: nn.Parameter(torch.arange(3.0)),
    "subclass": scaled,
}
HELD = {
    "tensor": lambda n: torch.full((2,), n),
    "array": lambda n: np.full(2, n),
    "object": lambda n: Held([torch.full((2,), n)]),
    "list": lambda n: [1, {"a": torch.full((2,), n)}],
}


def with_held(tensor: torch.Tensor, held: Any) -> torch.Tensor:
    torch.Tensor.__setattr__(tensor, "held", held)
    torch.Tensor.__setattr__(tensor, "tag", f"of {type(held)}")
    return tensor


@pytest.mark.parametrize("what", HELD)
@pytest.mark.parametrize("kind", TENSORS)
def test_two_that_may_differ_in_what_a_tensor_holds_are_not_equal(kind: str, what: str):
    """In a dictionary, in an explorer of it, and in a module; the values are equal, and said to be."""
    pairs = []
    for number in (1.0, 2.0):
        tensor = with_held(TENSORS[kind](), HELD[what](number))
        module = nn.Module()
        module._parameters["w"] = tensor  # type: ignore[assignment]
        pairs.append(({"w": tensor}, module, {"w": tnp.weights({"w": tensor})["w"]}))
    for first, second in zip(*pairs, strict=True):
        [said] = tnp.weights(first).not_listed
        assert said.startswith("1 object was not looked into: w.held (")
        found = tnp.compare(first, second)
        assert not found.equal
        assert found["w"].same_bits
        assert "equal in what was listed" in repr(found)


@pytest.mark.parametrize("what", HELD)
@pytest.mark.parametrize("kind", ["tensor", "parameter"])
def test_what_is_saved_with_a_tensor_is_named(kind: str, what: str, tmp_path: Path):
    """By the name of the attribute; a file of the values alone has no problem."""
    for number in (1.0, 2.0):
        weights = {f"{i}.w": with_held(TENSORS[kind](), HELD[what](number)) for i in range(2)}
        torch.save(weights, tmp_path / f"{number}.pt")
    found = tnp.compare(tmp_path / "1.0.pt", tmp_path / "2.0.pt")
    assert not found.equal
    assert all(one.same_bits for one in found.values())
    [said] = found.not_listed
    assert ("2 NumPy arrays in it" if what == "array" else "2 tensors in the attribute 'held' of others") in said
    torch.save({"w": TENSORS[kind]()}, tmp_path / "alone.pt")
    assert tnp.weights(tmp_path / "alone.pt").problems == []


def test_an_attribute_of_a_subclass_is_named_in_its_file(tmp_path: Path):
    """Of which the class is not imported."""
    torch.save({"w": with_held(torch.arange(3.0).as_subclass(Plain), torch.ones(2))}, tmp_path / "w.pt")
    assert tnp.weights(tmp_path / "w.pt").not_listed == ("a tensor in the attribute 'held' of others is not listed",)


class Plain(torch.Tensor):
    """A class of the user's."""


def test_a_state_dict_lacks_nothing_that_a_parameter_holds(tmp_path: Path):
    """It has none of it; another module may have another one."""
    module = nn.Linear(3, 2)
    with_held(module.weight, Held(torch.ones(2)))
    torch.save(module.state_dict(), tmp_path / "model.pt")
    for saved in (tmp_path / "model.pt", module.state_dict()):
        assert tnp.compare(module, saved).equal and tnp.compare(saved, module).equal
    assert not tnp.compare(module, copy.deepcopy(module)).equal
    assert not tnp.compare(module, dict(module.named_parameters())).equal


def test_a_state_of_an_optimizer_may_hold_something():
    """As the codes of an 8-bit optimizer would."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    with_held(optimizer.state[weight]["exp_avg"], torch.ones(2))
    assert tnp.weights(optimizer).not_listed == ("1 object was not looked into: state.weight.exp_avg.held (Tensor)",)


def test_flags_gradients_and_what_leads_back_are_not_named():
    """As libraries keep them on parameters; and what is listed under a name of its own."""
    module = nn.Linear(3, 2)
    module.register_buffer("scale", torch.ones(2))
    held = {
        "_is_hf_initialized": True, "main_grad": torch.ones(2, 3), "_in_backward_optimizers": [Held(torch.ones(2))],
        "partition_dim": 0, "_dynamo_dynamic_indices": {0}, "weight_loader": module.forward, "module": module,
        "scale": module.scale, "axes": ("in", "out"),
    }  # fmt: skip
    for name, value in held.items():
        setattr(module.weight, name, value)
    assert tnp.weights(module).problems == []
    assert tnp.compare(module, copy.deepcopy(module)).same_bits
    found = tnp.compare({"module": module, "w": module.weight}, {"module": module, "w": module.weight})
    assert found.same_bits and found._not_compared == {}
    flat = nn.Linear(3, 2)
    flat.weight._is_flat_param, flat.weight._local_shard = True, torch.ones(6)  # type: ignore[assignment]
    assert tnp.weights(flat).problems == []
