"""Names that libraries write in several ways are those of the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

import tensornp as tnp

SAME = {
    "LoRA, saved by PEFT": ("base_model.model.q.lora_A.default.weight", "base_model.model.q.lora_A.weight"),
    "LoRA of another name": ("q.lora_B.style.weight", "q.lora_B.weight"),
    "LoRA of an embedding": ("wte.lora_embedding_A.default", "wte.lora_embedding_A"),
    "DoRA": ("q.lora_magnitude_vector.default.weight", "q.lora_magnitude_vector"),
    "modules that are saved whole": ("score.modules_to_save.default.weight", "score.weight"),
    "a layer below an adapter": ("q.base_layer.weight", "q.weight"),
    "DistributedDataParallel": ("a.module.weight", "a.weight"),
    "torch.compile below FSDP": ("a._fsdp_wrapped_module._orig_mod.weight", "a.weight"),
    "torch.compile": ("a._orig_mod.weight", "a.weight"),
    "weight_norm's magnitude": ("a.parametrizations.weight.original0", "a.weight_g"),
    "weight_norm's direction": ("a.parametrizations.weight.original1", "a.weight_v"),
}


@pytest.mark.parametrize("writers", SAME)
def test_one_weight_by_the_names_of_two_writers(writers):
    """Beside another weight, whichever of the two is first."""
    one, other = SAME[writers]
    w, b = torch.randn(3, 2), torch.randn(2)
    first, second = {one: w, "other.bias": b}, {other: w.clone(), "other.bias": b.clone()}
    assert tnp.compare(first, second).equal
    assert tnp.compare(second, first).equal


def test_two_adapters_are_not_taken_for_one():
    """Each is found by its own name alone."""
    live = {f"q.lora_A.{name}.weight": torch.randn(2, 2) for name in ("default", "style")}
    found = tnp.compare(live, {"q.lora_A.weight": live["q.lora_A.default.weight"]})
    assert set(found.missing) == set(live)


def test_both_kinds_of_weight_norm_are_the_same_weights():
    """A layer of the old function, loaded into one of the new, as torch itself does it."""
    with pytest.warns(FutureWarning, match="weight_norm"):
        old = weight_norm(nn.Linear(4, 3))
    new = parametrizations.weight_norm(nn.Linear(4, 3))
    new.load_state_dict(old.state_dict())
    assert tnp.compare(old.state_dict(), new.state_dict()).equal
