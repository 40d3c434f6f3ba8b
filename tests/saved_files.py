"""Small checkpoints of each format, written by the libraries that people use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from written_dcp import ITEMS, save

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "c": torch.arange(3)}
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.ones((3, 3), ">f4", order="F")}
Save = Callable[[Path], tuple[Path, Path]]
"""Writes into a folder, and returns the path to open, and that of the file to damage."""


def safetensors(folder: Path) -> tuple[Path, Path]:
    save_file(TENSORS, folder / "x.safetensors", metadata={"made by": "a test"})
    return (folder / "x.safetensors",) * 2


def index(folder: Path) -> tuple[Path, Path]:
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    save_file({"a": TENSORS["a"]}, folder / names[0])
    save_file({"b": TENSORS["b"], "c": TENSORS["c"]}, folder / names[1])
    places = {"a": names[0], "b": names[1], "c": names[1]}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 56}, "weight_map": places}))
    return folder, path


def torch_index(folder: Path) -> tuple[Path, Path]:
    names = [f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)]
    torch.save({"a": TENSORS["a"]}, folder / names[0])
    torch.save({"b": TENSORS["b"]}, folder / names[1])
    path = folder / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": dict(zip("ab", names, strict=True))}))
    return folder, path


def config(folder: Path) -> tuple[Path, Path]:
    save_file({"w.weight": torch.ones(4, 4, dtype=torch.uint8), "w.scales": torch.ones(4)}, folder / "x.safetensors")
    told = {"quant_method": "mlx", "bits": 4, "group_size": 32, "weight_block_size": [2, 2]}
    (folder / "config.json").write_text(json.dumps({"quantization_config": told}))
    return folder, folder / "config.json"


def torch_zip(folder: Path) -> tuple[Path, Path]:
    torch.save({**TENSORS, "deep": [{"d": TENSORS["a"].T}], "step": 3}, folder / "x.pt")
    return (folder / "x.pt",) * 2


def torch_legacy(folder: Path) -> tuple[Path, Path]:
    torch.save({**TENSORS, "step": 3}, folder / "x.pt", _use_new_zipfile_serialization=False)
    return (folder / "x.pt",) * 2


def dcp_items(folder: Path) -> tuple[Path, Path]:
    save({**TENSORS, "step": 3}, folder / "dcp")
    return folder / "dcp", folder / "dcp" / ITEMS


def dcp_metadata(folder: Path) -> tuple[Path, Path]:
    return dcp_items(folder)[0], folder / "dcp" / ".metadata"


def npy(folder: Path) -> tuple[Path, Path]:
    np.save(folder / "x.npy", ARRAYS["a"])
    return (folder / "x.npy",) * 2


def npz(folder: Path) -> tuple[Path, Path]:
    np.savez(folder / "x.npz", **ARRAYS)
    return (folder / "x.npz",) * 2


def npz_compressed(folder: Path) -> tuple[Path, Path]:
    np.savez_compressed(folder / "x.npz", **ARRAYS)
    return (folder / "x.npz",) * 2


def gguf_file(folder: Path) -> tuple[Path, Path]:
    writer = gguf.GGUFWriter(folder / "x.gguf", "llama")
    writer.add_array("words", ["a", "bc"])
    writer.add_tensor("a", np.ones((2, 32), np.float32))
    codes = np.zeros((2, 18), np.uint8)
    writer.add_tensor("q", codes, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (folder / "x.gguf",) * 2


def torch_wrappers(folder: Path) -> tuple[Path, Path]:
    from torch.testing._internal.two_tensor import TwoTensor

    inner = TwoTensor(TENSORS["a"], TENSORS["a"].clone())
    torch.save({"w": inner, "deep": TwoTensor(inner, inner), "p": torch.nn.Parameter(TENSORS["b"])}, folder / "x.pt")
    return (folder / "x.pt",) * 2


def offload_index(folder: Path) -> tuple[Path, Path]:
    from accelerate.utils.offload import offload_state_dict

    offload_state_dict(str(folder / "x"), TENSORS)
    return folder / "x", folder / "x" / "index.json"


TOLD: dict[str, Save] = {
    "index": index,
    "torch index": torch_index,
    "config.json": config,
    "DCP metadata": dcp_metadata,
    "offload index": offload_index,
}
"""Those of which the damaged file holds no values."""
VALUES: dict[str, Save] = {
    "safetensors": safetensors, "torch zip": torch_zip, "torch legacy": torch_legacy,
    "DCP items": dcp_items, "npy": npy, "npz": npz,
    "npz compressed": npz_compressed, "GGUF": gguf_file,
}  # fmt: skip
FORMATS = TOLD | VALUES | {"torch wrappers": torch_wrappers}
