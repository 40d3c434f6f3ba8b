"""A file that lists its weights by the alphabet is shown in the order of the model."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp

MODELS = {
    "gpt2": ["wte.weight", "wpe.weight", "h.2.w", "h.10.w", "ln_f.weight", "ln_f.bias"],
    "bert": [
        "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight", "encoder.layer.0.w",
        "encoder.layer.10.w", "pooler.dense.weight", "pooler.dense.bias",
    ],
    "llama": ["model.embed_tokens.weight", "model.layers.2.w", "model.layers.10.w", "model.norm.weight", "head.weight"],
    "t5": ["shared.weight", "encoder.block.0.w", "decoder.block.0.w", "lm_head.weight"],
    "clip": ["vision.embeddings.w", "vision.encoder.layers.0.w", "vision.post_layernorm.weight"],
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_embeddings_come_first_layers_by_number_and_the_head_last(tmp_path, name):
    """Whatever the alphabet says."""
    save_file({one: torch.ones(1) for one in sorted(MODELS[name])}, tmp_path / "x.safetensors")
    assert list(tnp.weights(tmp_path / "x.safetensors")) == MODELS[name]
