"""Codes of checkpoints: block-scaled float8 gives what it means, packed integers never count; and adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted_reads import counted_reads
from safetensors.torch import save_file
from torch import nn

import tensornp as tnp
from tensornp.models.quantization import block_of

FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def model(folder: Path, tensors: dict[str, torch.Tensor], config: Any = None) -> Path:
    save_file(tensors, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def meant(codes: torch.Tensor, scales: torch.Tensor, block: tuple[int, ...]) -> np.ndarray:
    """Return what torch computes: each block of codes times its scale."""
    wide = scales.float()
    for axis, size in enumerate(block):
        wide = wide.repeat_interleave(size, axis).narrow(axis, 0, codes.shape[axis])
    return (codes.float() * wide).numpy()


def some(shape: tuple[int, ...], block: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Any:
    g = torch.Generator().manual_seed(0)
    codes = (torch.randn(shape, generator=g) * 100).to(torch.float8_e4m3fn)
    scales = torch.rand([-(-n // size) for n, size in zip(shape, block, strict=True)], generator=g).to(dtype) + 0.01
    return codes, scales


@pytest.mark.parametrize(
    ("shape", "block", "dtype"),
    [
        ((300, 200), (128, 128), torch.float32),
        ((256, 384), (128, 128), torch.bfloat16),
        ((129, 7), (128, 128), torch.float32),
        ((40, 60), (1, 60), torch.float32),
        ((3, 130, 140), (1, 128, 128), torch.float32),
        ((1000,), (128,), torch.float32),
        ((3, 400_000), (2, 128), torch.float32),
    ],
)
def test_block_scaled_float8_gives_what_it_means(tmp_path, shape, block, dtype):
    """Whole and in parts; the codes are there besides, and the scales are no parameters."""
    codes, scales = some(shape, block, dtype)
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": list(block)}}
    explorer = tnp.weights(model(tmp_path, {"a.weight": codes, "a.weight_scale_inv": scales}, config))
    entry, expected = explorer["a.weight"], meant(codes, scales, block)
    codec = entry._source.codec
    assert (entry.dtype, entry.shape, codec.block) == ("float8_e4m3fn", shape, block)
    assert entry.note == "block-scaled float8, scales 'a.weight_scale_inv'"
    assert explorer.totals.parameters == codes.numel()
    assert explorer["a.weight_scale_inv"].kind == "state"
    for index in (..., 2, slice(4, 0, -1), (..., slice(1, None, 3)), (None, ..., -1), slice(0), (slice(1, 3), ...)):
        found = entry.to_numpy(index)
        assert found.dtype == np.float32
        assert np.array_equal(found, expected[index], equal_nan=True)
        assert entry.plan(index).shape == expected[index].shape
    assert np.array_equal(entry.codes.to_numpy(), codes.float().numpy(), equal_nan=True)
    told, own = entry.stats(), tnp.stats(expected)
    assert (told.count, told.min, told.std) == (own.count, own.min, pytest.approx(own.std, nan_ok=True))
    assert entry.to_numpy(dtype="float16").dtype == np.float16


@pytest.mark.slow
def test_only_the_bytes_of_an_index_are_read(tmp_path, monkeypatch):
    """Of codes and of scales."""
    codes, scales = some((4096, 4096), (128, 128))
    entry = tnp.weights(model(tmp_path, {"w": codes, "w_scale_inv": scales}, FP8))["w"]
    read = counted_reads(monkeypatch)
    assert np.array_equal(entry.to_numpy(slice(700, 702)), meant(codes, scales, (128, 128))[700:702])
    assert sum(read) == entry.plan(slice(700, 702)).nbytes_read + 32 * 4 == 2 * 4096 + 32 * 4


@pytest.mark.parametrize(
    ("shape", "scales", "told", "block"),
    [
        ((300, 200), (3, 2), [128, 128], (128, 128)),
        ((300, 200), (3, 2), None, (128, 128)),
        ((512, 512), (2, 2), None, (256, 256)),
        ((300, 200), (3, 2), [64, 64], (128, 128)),
        ((300, 200), (3, 2), [True, 0], (128, 128)),
        ((300, 200), (3, 2), "128", (128, 128)),
        ((300, 200), (300, 1), [128, 128], (1, 200)),
        ((300, 200), (1,), None, (300, 200)),
        ((300, 200), (), None, (300, 200)),
        ((4, 300, 200), (4, 3, 2), [128, 128], (1, 128, 128)),
        ((300, 200), (7, 7), None, None),
        ((300, 200), (3,), None, None),
        ((0, 200), (0, 2), None, None),
        ((300, 200), (3, 2), [1, 1, 128, 128], (128, 128)),
    ],
)
def test_the_size_of_blocks_is_told_by_the_configuration_or_the_shapes(shape, scales, told, block):
    """And by nothing where they disagree."""
    assert block_of(shape, scales, told) == block


def test_one_scale_of_all_is_applied_to_all(tmp_path):
    """Whatever shape it has."""
    codes, _ = some((30, 40), (128, 128))
    for shape in ((), (1,), (1, 1)):
        scale = torch.full(shape, 0.5)
        entry = tnp.weights(model(tmp_path, {"w": codes, "w_scale_inv": scale}))["w"]
        assert np.array_equal(entry.to_numpy(slice(3, 5)), codes[3:5].float().numpy() / 2)
        assert entry.stats() == tnp.stats(codes.float() / 2)
        assert entry.plan(3).nbytes_read > 0


def test_scales_that_fit_to_no_block_are_not_applied(tmp_path):
    """The codes are given, and it is said that they are codes."""
    codes, _ = some((300, 200), (128, 128))
    for scales in (torch.ones(7, 7), torch.ones(3, 2, dtype=torch.int32)):
        entry = tnp.weights(model(tmp_path, {"w": codes, "w_scale_inv": scales}))["w"]
        assert entry._source.codec is None
        assert entry.note == "float8 codes, to which the scales 'w_scale_inv' are not applied"
        assert np.array_equal(entry.to_numpy(), codes.float().numpy())


def words(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.randint(0, 100, shape, dtype=dtype)


PACKED = {
    "gptq": (
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
        {"m.qweight": words(32, 64), "m.qzeros": words(2, 8), "m.scales": torch.ones(2, 64), "m.g_idx": words(256)},
        "m.qweight", "packed 4-bit codes (gptq)", 256 * 64,
    ),
    "gptq of 3 bits": (
        {"quantization_config": {"quant_method": "gptq", "bits": 3}},
        {"m.qweight": words(24, 64), "m.scales": torch.ones(2, 64)}, "m.qweight", "packed 3-bit codes (gptq)", 256 * 64,
    ),
    "awq": (
        {"quantization_config": {"quant_method": "awq", "w_bit": 4}},
        {"m.qweight": words(256, 8), "m.qzeros": words(2, 8), "m.scales": torch.ones(2, 64)},
        "m.qweight", "packed 4-bit codes (awq)", 256 * 64,
    ),
    "bitsandbytes of 4 bits": (
        {"quantization_config": {"load_in_4bit": True, "quant_method": "bitsandbytes"}},
        {
            "m.weight": words(8192, 1, dtype=torch.uint8), "m.weight.absmax": words(256, dtype=torch.uint8),
            "m.weight.quant_map": torch.ones(16), "m.weight.nested_absmax": torch.ones(1),
            "m.weight.quant_state.bitsandbytes__nf4": words(80, dtype=torch.uint8),
        },
        "m.weight", "packed 4-bit codes (bitsandbytes)", 256 * 64,
    ),
    "bitsandbytes of 8 bits": (
        {"quantization_config": {"load_in_8bit": True}},
        {"m.weight": words(256, 64, dtype=torch.int8), "m.SCB": torch.ones(256)},
        "m.weight", "8-bit codes (bitsandbytes)", 256 * 64,
    ),
    "mlx": (
        {"quantization": {"bits": 4, "group_size": 64}},
        {"m.weight": words(256, 8).to(torch.uint32), "m.scales": torch.ones(256, 1), "m.biases": torch.ones(256, 1)},
        "m.weight", "packed 4-bit codes (mlx)", 256 * 64,
    ),
    "mlx of its own bits": (
        {"quantization": {"bits": 4, "group_size": 64, "m": {"bits": 8, "group_size": 32}}},
        {"m.weight": words(256, 16).to(torch.uint32), "m.scales": torch.ones(256, 2), "m.biases": torch.ones(256, 2)},
        "m.weight", "packed 8-bit codes (mlx)", 256 * 64,
    ),
    "compressed-tensors": (
        {"text_config": {"quantization_config": {
            "quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}},
        }}},
        {"m.weight_packed": words(256, 8), "m.weight_scale": torch.ones(256, 1), "m.weight_shape": words(2)},
        "m.weight_packed", "packed 4-bit codes (compressed-tensors)", 256 * 64,
    ),
    "mxfp4": (
        {"quantization_config": {"quant_method": "mxfp4"}},
        {"m_blocks": words(2, 128, 2, 32, dtype=torch.uint8), "m_scales": words(2, 128, 2, dtype=torch.uint8)},
        "m_blocks", "packed 4-bit codes (mxfp4)", 2 * 256 * 64,
    ),
    "of bits that are not told": (
        {"quantization_config": {"quant_method": "gptq", "bits": "four"}},
        {"m.qweight": words(32, 64), "m.scales": torch.ones(2, 64)}, "m.qweight", "packed codes (gptq)", None,
    ),
    "of another method": (
        {"quantization_config": {"quant_method": "aqlm"}}, {"m.codes": words(256, 8), "m.codebooks": torch.ones(4)},
        "m.codes", "codes ('aqlm')", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_packed_codes_are_named_and_never_counted(tmp_path, name):
    """Their raw elements are there, and how many weights they are, where that is told."""
    config, tensors, packed, note, count = PACKED[name]
    plain = torch.ones(10)
    explorer = tnp.weights(model(tmp_path, {**tensors, "norm.weight": plain}, config))
    entry = explorer[packed]
    assert entry._packed is not None
    assert (entry.note, entry._num_parameters) == (note, count)
    assert np.array_equal(entry.to_numpy(), tensors[packed].numpy())
    assert entry.numel == tensors[packed].numel()
    untold = tensors["m.codebooks"].numel() if name == "of another method" else 0
    assert explorer.totals.parameters == (count or 0) + 10 + untold
    assert (count is None) == ("how many parameters 1 packed weights have is not told" in "".join(explorer.problems))
    with pytest.raises(tnp.NoDataError, match="statistics mean nothing; to_numpy gives them"):
        entry.stats()
    table = explorer.scan()
    assert "statistics mean nothing" in table.failed[packed]
    assert table["norm.weight"] == tnp.stats(plain)
    for other in set(tensors) - {packed, "m.codebooks"}:
        assert explorer[other].kind == "state"
        assert (other in table) == tensors[other].is_floating_point()


def file_alone(folder: Path, tensors: dict[str, torch.Tensor]) -> Path:
    return model(folder, tensors)


def saved_by_torch(folder: Path, tensors: dict[str, torch.Tensor]) -> Path:
    torch.save(tensors, folder / "model.bin")
    return folder / "model.bin"


def in_memory(_: Path, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {"model": tensors}


def live(_: Path, tensors: dict[str, torch.Tensor]) -> nn.Module:
    module = nn.ModuleDict({"m": nn.Module()})
    # A name of bitsandbytes has a dot, which only its own code saves.
    module.m._buffers.update({name.removeprefix("m."): tensor for name, tensor in tensors.items()})
    return module


@pytest.mark.parametrize("where", [file_alone, saved_by_torch, in_memory, live])
@pytest.mark.parametrize("name", ["gptq", "awq", "bitsandbytes of 4 bits", "bitsandbytes of 8 bits"])
def test_without_a_configuration_names_and_shapes_tell_what_is_packed(tmp_path, name, where):
    """In a file by itself, of either format, and in memory, as a state dict or as the module."""
    _, tensors, packed, note, count = PACKED[name]
    explorer = tnp.weights(where(tmp_path, tensors))
    prefix = "model." if where is in_memory else ""
    entry = explorer[prefix + packed]
    assert (entry.note, entry._num_parameters) == (note, count)
    assert explorer.totals.parameters == (0 if where is live else count)
    assert np.array_equal(entry.to_numpy(), tensors[packed].numpy())
    found = explorer.scan()
    assert set(found) == {prefix + one for one in tensors if tensors[one].is_floating_point()}
    assert tnp.compare(explorer, explorer).same_bits


CODES = torch.randn(256, 256).to(torch.float8_e4m3fn)
SCALED = {
    "DeepSeek": ("q.weight", "q.weight_scale_inv", (2, 2)),
    "ModelOpt": ("q.weight", "q.weight_scale", ()),
    "compressed-tensors, by rows": ("q.weight", "q.weight_scale", (256, 1)),
    "ComfyUI": ("q.weight", "q.scale_weight", ()),
    "torchao": ("q._weight_qdata", "q._weight_scale", (256, 1)),
    "experts of Llama 4": ("experts.down_proj", "experts.down_proj_scale", (1, 256)),
}
"""The names of float8 codes and of their scales, by who writes them, and the shape of the scales."""


@pytest.mark.parametrize("writer", SCALED)
def test_float8_is_scaled_whoever_has_named_its_scales(tmp_path, writer):
    """In a file the values are multiplied; in memory it is said that they are not."""
    name, of_scales, shape = SCALED[writer]
    scales = torch.rand(shape) + 0.5
    tensors = {name: CODES, of_scales: scales}
    entry = tnp.weights(model(tmp_path, tensors))[name]
    whole = scales.repeat_interleave(128, 0).repeat_interleave(128, 1) if shape == (2, 2) else scales
    assert np.array_equal(entry.to_numpy(), (CODES.float() * whole).numpy())
    assert shown(of_scales) in entry.note
    assert tnp.weights(tensors)[name].note == f"float8 codes, to which the scales {shown(of_scales)} are not applied"


def shown(name: str) -> str:
    return f"'{name}'"


HALVES = torch.ones(8, 2, dtype=torch.bfloat16)
TOLD_BY_NAMES = {
    "gpt-oss": (
        {"e_blocks": words(2, 8, 2, 16, dtype=torch.uint8), "e_scales": words(2, 8, 2, dtype=torch.uint8)},
        "e_blocks", "packed 4-bit codes (mxfp4)",
    ),
    "compressed-tensors": (
        {"q.weight_packed": words(8, 8), "q.weight_scale": HALVES, "q.weight_shape": torch.tensor([8, 64])},
        "q.weight_packed", "packed codes (compressed-tensors)",
    ),
    "MLX": (
        {"q.weight": words(8, 8).to(torch.uint32), "q.scales": HALVES, "q.biases": HALVES.clone()},
        "q.weight", "packed codes (mlx)",
    ),
    "ModelOpt of 4 bits": (
        {"q.weight": words(8, 16, dtype=torch.uint8), "q.weight_scale": torch.ones(8, 2).to(torch.float8_e4m3fn)},
        "q.weight", "codes, to which the scales 'q.weight_scale' are not applied",
    ),
    "words without zero points": (
        {"q.qweight": words(4, 4), "q.scales": torch.ones(4)}, "q.qweight", "packed codes (gptq)",
    ),
    "integers with a scale": (
        {"q.weight": words(8, 8, dtype=torch.int8), "q.weight_scale": torch.ones(8, 1)},
        "q.weight", "codes, to which the scales 'q.weight_scale' are not applied",
    ),
}  # fmt: skip


@pytest.mark.parametrize("where", [file_alone, in_memory])
@pytest.mark.parametrize("writer", TOLD_BY_NAMES)
def test_codes_beside_scales_are_never_taken_for_numbers(tmp_path, writer, where):
    """Names, dtypes and shapes tell it, without a configuration."""
    tensors, packed, note = TOLD_BY_NAMES[writer]
    explorer = tnp.weights(where(tmp_path, tensors))
    entry = explorer["model." * (where is in_memory) + packed]
    assert entry.note.replace("model.", "") == note
    with pytest.raises(tnp.NoDataError, match="statistics mean nothing"):
        entry.stats()


INTEGERS = {
    "no words": {"m.qweight": words(4, 64).long(), "m.qzeros": words(2, 8).long(), "m.scales": torch.ones(2, 64)},
    "scales alone": {"m.scales": torch.ones(4), "m.weight": words(4, 4, dtype=torch.int8)},
    "no codes": {"m.weight": torch.ones(4, 4), "m.SCB": torch.ones(4)},
    "a state alone": {"m.weight.quant_state.bitsandbytes__nf4": words(8, dtype=torch.uint8)},
}


@pytest.mark.parametrize("name", INTEGERS)
def test_without_a_configuration_integers_are_integers(tmp_path, name):
    """A name alone says too little."""
    tensors = INTEGERS[name]
    for explorer in (tnp.weights(model(tmp_path, tensors)), tnp.weights(tensors)):
        assert all(entry._packed is None for entry in explorer.values())
        assert explorer.totals.parameters == sum(one.numel() for one in tensors.values())
        assert explorer.scan().failed == {}


def test_a_parameter_of_bitsandbytes_says_by_its_class_that_it_is_packed():
    """In a live module, which has no name that tells of it."""
    cls = type("Params4bit", (nn.Parameter,), {"__module__": "bitsandbytes.nn.modules"})
    module = nn.Module()
    module._parameters["weight"] = words(8, 1, dtype=torch.uint8).as_subclass(cls)
    explorer = tnp.weights(module)
    assert explorer["weight"].note == "packed 4-bit codes (bitsandbytes), Params4bit"
    assert explorer.totals.parameters == 16
    assert "statistics mean nothing" in explorer.scan().failed["weight"]
    module._parameters["weight"] = torch.ones(8, 1).as_subclass(cls)
    assert tnp.weights(module)["weight"]._packed is None


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
