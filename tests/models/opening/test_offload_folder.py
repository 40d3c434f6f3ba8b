"""Folders to which accelerate has offloaded weights: opened by their path, as any checkpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensornp as tnp

offload = pytest.importorskip("accelerate.utils.offload")
TENSORS = {
    "w": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.bfloat16), "deep.n": torch.tensor(7),
    "f": torch.arange(4.0).half().view(2, 2), "flags": torch.tensor([True, False]),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    offload.offload_state_dict(str(tmp_path / "x"), TENSORS)
    return tmp_path / "x"


def rewritten(folder: Path, change: Any) -> tnp.WeightsExplorer:
    """Return what is there once `change` was applied to what the index tells."""
    told = json.loads((folder / "index.json").read_text())
    change(told)
    (folder / "index.json").write_text(json.dumps(told))
    return tnp.weights(folder)


@pytest.mark.parametrize("by", ["", "index.json"])
def test_the_values_are_those_that_were_offloaded(folder, by):
    """By the folder and by its index; the code of each brings the same."""
    explorer = tnp.weights(folder / by)
    assert explorer.problems == [] and set(explorer) == set(TENSORS)
    assert explorer.totals.parameters == sum(one.numel() for one in TENSORS.values())
    import accelerate

    for name, one in TENSORS.items():
        entry = explorer[name]
        assert (entry.shape, f"torch.{entry.dtype}") == (tuple(one.shape), str(one.dtype))
        assert np.array_equal(entry.to_numpy(), tnp.to_numpy(one)), name
        loaded = eval(entry.code, {"accelerate": accelerate})
        assert np.array_equal(tnp.to_numpy(torch.as_tensor(loaded)), tnp.to_numpy(one)), name
    assert tnp.compare(explorer, TENSORS).equal


def test_what_the_index_tells_wrongly_is_a_problem_of_its_own(folder):
    """Nor is a file outside of the folder opened."""
    (folder.parent / "secret.dat").write_bytes(bytes(100))

    def change(told: dict[str, Any]) -> None:
        told["w"]["shape"] = [200, 3]
        told["b"]["dtype"] = "float3"
        told["deep.n"]["shape"] = "7"
        told["gone"] = told["../secret"] = {"dtype": "float32", "shape": [1]}

    explorer = rewritten(folder, change)
    assert "has 24 bytes, and 2,400 are needed" in explorer["w"].problem
    assert "a dtype of it that is not known, 'float3'" in explorer["b"].problem
    assert explorer["deep.n"].problem == "accelerate's index has no shape of it"
    assert "gone.dat' cannot be opened" in explorer["gone"].problem
    assert "would lie outside of the folder" in explorer["../secret"].problem
    assert len(explorer.problems) == 5 and explorer["f"].to_numpy().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("told", [{}, {"a": 3}, {"a": {"shape": [1]}}])
def test_another_index_is_refused(folder, told):
    """As one that has nothing to do with accelerate."""
    (folder / "index.json").write_text(json.dumps(told))
    with pytest.raises(tnp.CheckpointError, match="is not an index of weights offloaded by accelerate"):
        tnp.weights(folder)


def test_a_file_that_is_lost_is_a_problem(folder):
    """Its name is listed."""
    os.remove(folder / "w.dat")
    assert "cannot be opened" in tnp.weights(folder)["w"].problem
