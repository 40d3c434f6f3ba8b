"""Which weights count or index, and are no numbers that were learnt."""

from __future__ import annotations

import torch
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.models.entries.entry import is_counter


def counters(explorer) -> set[str]:
    return {name for name, one in explorer.items() if is_counter(one)}


def test_integer_buffers_count(tmp_path):
    """In a module any of int64, and masks; codes of quantized weights do not, nor what a file calls otherwise."""
    module = torch.nn.BatchNorm1d(3)
    module.register_buffer("index", torch.arange(4))
    module.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    module.register_buffer("qweight", torch.ones(2, dtype=torch.int32))
    assert counters(tnp.weights(module)) == {"num_batches_tracked", "index", "mask"}
    save_file(module.state_dict(), tmp_path / "m.safetensors")
    assert counters(tnp.weights(tmp_path / "m.safetensors")) == {"num_batches_tracked"}
