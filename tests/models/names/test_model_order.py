"""The order of real architectures, as their libraries make them, from names that the alphabet has sorted."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensornp.models.names.model_order import in_model_order, is_alphabetical

LAYERS = range(12)
LLAMA = [
    "model.embed_tokens.weight",
    *(
        f"model.layers.{i}.{name}.weight"
        for i in LAYERS
        for name in ("input_layernorm", "mlp.up_proj", "self_attn.q_proj")
    ),
    "model.norm.weight",
    "lm_head.weight",
]
GPT2 = [
    "wte.weight", "wpe.weight",
    *(f"h.{i}.{name}" for i in LAYERS for name in ("attn.c_attn.weight", "attn.c_attn.bias", "ln_1.weight")),
    "ln_f.weight", "ln_f.bias",
]  # fmt: skip
BERT = [
    *(f"bert.embeddings.{name}" for name in (
        "word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight", "LayerNorm.weight",
        "LayerNorm.bias",
    )),
    *(f"bert.encoder.layer.{i}.{name}" for i in LAYERS for name in (
        "attention.output.dense.weight", "attention.self.query.weight", "attention.self.query.bias",
        "intermediate.dense.weight", "output.dense.weight",
    )),
    "bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias",
]  # fmt: skip
VIT = [
    "vit.embeddings.cls_token", "vit.embeddings.patch_embeddings.projection.weight",
    "vit.embeddings.patch_embeddings.projection.bias", "vit.embeddings.position_embeddings",
    *(f"vit.encoder.layer.{i}.{name}.weight" for i in LAYERS for name in ("attention.output.dense", "layernorm")),
    "vit.layernorm.weight", "vit.layernorm.bias", "classifier.weight", "classifier.bias",
]  # fmt: skip
TIMM_VIT = [
    "cls_token", "patch_embed.proj.weight", "patch_embed.proj.bias", "pos_embed",
    *(f"blocks.{i}.{name}.weight" for i in LAYERS for name in ("attn.qkv", "norm1")),
    "norm.weight", "norm.bias", "head.weight", "head.bias",
]  # fmt: skip
RESNET = [
    "conv1.weight", "bn1.weight", "bn1.bias",
    *(f"layer{i}.{j}.{name}" for i in range(1, 5) for j in LAYERS for name in ("bn1.weight", "conv1.weight")),
    "fc.weight", "fc.bias",
]  # fmt: skip
T5 = [
    "shared.weight",
    *(f"encoder.block.{i}.layer.{j}.layer_norm.weight" for i in LAYERS for j in range(2)),
    "encoder.final_layer_norm.weight",
    *(f"decoder.block.{i}.layer.{j}.layer_norm.weight" for i in LAYERS for j in range(3)),
    "decoder.final_layer_norm.weight",
    "lm_head.weight",
]
WHISPER = [
    "model.encoder.conv1.weight", "model.encoder.conv1.bias", "model.encoder.conv2.weight", "model.encoder.conv2.bias",
    "model.encoder.embed_positions.weight",
    *(f"model.encoder.layers.{i}.{name}" for i in LAYERS for name in ("fc1.weight", "fc1.bias", "q_proj.weight")),
    "model.encoder.layer_norm.weight", "model.encoder.layer_norm.bias",
    "model.decoder.embed_tokens.weight", "model.decoder.embed_positions.weight",
    *(f"model.decoder.layers.{i}.{name}" for i in LAYERS for name in ("encoder_attn.q_proj.weight", "fc1.weight")),
    "model.decoder.layer_norm.weight", "model.decoder.layer_norm.bias",
    "proj_out.weight",
]  # fmt: skip
MODELS = {
    "Llama": LLAMA, "GPT-2": GPT2, "BERT": BERT, "ViT": VIT, "ViT of timm": TIMM_VIT, "ResNet": RESNET, "T5": T5,
    "Whisper": WHISPER,
}  # fmt: skip


def ordered(names: list[str]) -> list[str]:
    return [names[i] for i in in_model_order(names)]


@pytest.mark.parametrize("model", MODELS)
def test_the_alphabet_is_put_into_the_order_of_the_model(model):
    """And what is in it already stays."""
    names = MODELS[model]
    assert not is_alphabetical(names)
    assert ordered(sorted(names)) == names
    assert ordered(names) == names


def test_where_no_layer_is_known_names_stand_as_they_do():
    """A weight before its bias, and numbers by their value."""
    assert ordered(["b.x", "a.y", "b.c"]) == ["b.x", "b.c", "a.y"]
    assert ordered(["a.bias", "a.weight", "l.10.w", "l.2.w"]) == ["a.weight", "a.bias", "l.2.w", "l.10.w"]


@example(["10.a", "0.a.a", "10.a.a"])
@given(st.lists(st.lists(st.sampled_from(["a", "0", "10", "2", "head", "embed", "norm", "weight", ""])).map(".".join)))
def test_it_is_an_order_of_all_that_stays(names):
    """Whatever they are; what goes on from one key stays together."""
    found = in_model_order(names)
    assert sorted(found) == [*range(len(names))]
    once = [names[i] for i in found]
    assert ordered(once) == once
    first_keys = [name.split(".")[0] for name in once]
    runs = [key for i, key in enumerate(first_keys) if i == 0 or key != first_keys[i - 1]]
    assert len(runs) <= 2 * len(set(first_keys))


def test_random_orders_keep_layers_in_theirs():
    """What is shuffled is by its layers at least, the head last."""
    names = list(LLAMA)
    random.Random(0).shuffle(names)
    found = ordered(names)
    assert (found[0], found[-2:]) == (LLAMA[0], LLAMA[-2:])
    numbers = [int(name.split(".")[2]) for name in found[1:-2]]
    assert numbers == sorted(numbers)
