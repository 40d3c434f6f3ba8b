"""In which order the weights of files stand."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp

ORDER = ["wte.weight", *(f"h.{i}.fc.{name}" for i in range(11) for name in ("weight", "bias")), "lm_head.weight"]


def tensors() -> dict[str, torch.Tensor]:
    return {name: torch.ones(2) for name in ORDER} | {"h.0.fc.index": torch.ones(1, dtype=torch.int64)}


@pytest.mark.parametrize("has_index", [False, True])
def test_safetensors_stand_in_the_order_of_the_model(tmp_path, has_index):
    """In one file, and in several with an index; each has names by the alphabet."""
    made = dict(sorted(tensors().items()))
    if has_index:
        parts = {"a.safetensors": [name for name in made if "h." in name], "b.safetensors": []}
        parts["b.safetensors"] = [name for name in made if name not in parts["a.safetensors"]]
        for file, names in parts.items():
            save_file({name: made[name] for name in names}, tmp_path / file)
        places = {name: file for file, names in parts.items() for name in names}
        (tmp_path / "x.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
        explorer = tnp.weights(tmp_path)
    else:
        save_file(made, tmp_path / "x.safetensors")
        explorer = tnp.weights(tmp_path / "x.safetensors")
    assert [name for name in explorer if name != "h.0.fc.index"] == ORDER
    assert {*explorer} == {*made}


def test_what_has_an_order_keeps_it(tmp_path):
    """A dictionary of torch.save, even by the alphabet, and a safetensors file that is not sorted."""
    made = dict(sorted(tensors().items()))
    torch.save(made, tmp_path / "x.pt")
    assert [*tnp.weights(tmp_path / "x.pt")] == [*made]
    assert [*tnp.weights(made)] == [*made]
    names = ["lm_head", "h.1", "wte"]
    header = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
    text = json.dumps(header).encode()
    (tmp_path / "y.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(12))
    assert [*tnp.weights(tmp_path / "y.safetensors")] == names
