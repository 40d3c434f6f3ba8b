"""Low-rank adapters: two halves that say their rank, their scale and each other."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp

NAME = "base_model.model.layers.0.q_proj"


def pair(rank: int, rest: str = ".weight") -> dict[str, torch.Tensor]:
    return {f"{NAME}.lora_A{rest}": torch.zeros(rank, 12), f"{NAME}.lora_B{rest}": torch.zeros(20, rank)}


@pytest.mark.parametrize(
    ("config", "scale"),
    [({"r": 4, "lora_alpha": 8}, ", scale 2"), ({"lora_alpha": 8, "use_rslora": True}, ", scale 4"), ({}, ""),
     ({"lora_alpha": "8"}, ""), ({"lora_alpha": 8, "alpha_pattern": {"q_proj": 1}}, ""), (None, "")],
)  # fmt: skip
def test_the_halves_of_an_adapter_name_each_other(tmp_path, config, scale):
    """With the scale, as far as the configuration beside tells it."""
    save_file(pair(4), tmp_path / "adapter_model.safetensors")
    if config is not None:
        (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    for path in (tmp_path, tmp_path / "adapter_model.safetensors"):
        explorer = tnp.weights(path)
        assert explorer[f"{NAME}.lora_A.weight"].note == f"adapter of rank 4{scale}, with lora_B.weight"
        assert explorer[f"{NAME}.lora_B.weight"].note == f"adapter of rank 4{scale}, with lora_A.weight"
        assert explorer.metadata.get("adapter_config") == config


def test_what_is_no_pair_is_not_called_one():
    """One half alone, halves that do not fit, and weights of other dimensions."""
    assert not any(entry.note for entry in tnp.weights({"a.lora_A.weight": torch.zeros(4, 3)}).values())
    odd = {"a.lora_A.weight": torch.zeros(4, 3), "a.lora_B.weight": torch.zeros(9, 5)}
    assert not any(entry.note for entry in tnp.weights(odd).values())
    assert "rank 4" in tnp.weights(pair(4, ".default.weight"))[f"{NAME}.lora_A.default.weight"].note
