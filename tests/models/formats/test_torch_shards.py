"""Models in several files of `torch.save`, with and without an index: what is wrong is said, and hides nothing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensornp as tnp

SHARDS = ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin")
INDEX = "pytorch_model.bin.index.json"
FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
TENSORS = {"a.weight": torch.arange(6.0).view(2, 3).T, "b": torch.ones(3, dtype=torch.bfloat16), "c": torch.arange(4)}
PLACES = {"a.weight": SHARDS[0], "b": SHARDS[0], "c": SHARDS[1]}
TOTAL = 6 * 4 + 3 * 2 + 4 * 8


@pytest.fixture(params=FORMATS)
def folder(tmp_path: Path, request: Any) -> Path:
    """A model in two files, with an index and a configuration, and the arguments that a training leaves beside."""
    for shard in SHARDS:
        held = {name: TENSORS[name] for name, place in PLACES.items() if place == shard}
        torch.save(held, tmp_path / shard, **FORMATS[request.param])
    torch.save({"lr": 0.1}, tmp_path / "training_args.bin")
    torch.save({"last_epoch": 1}, tmp_path / "scheduler.pt")
    write_index(tmp_path, PLACES)
    (tmp_path / "config.json").write_text('{"hidden_size": 4}')
    return tmp_path


def write_index(folder: Path, weight_map: dict[str, Any], total: int = TOTAL, name: str = INDEX) -> None:
    (folder / name).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))


def expect_values(explorer: tnp.WeightsExplorer, expected: dict[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        assert explorer[name].shape == tuple(tensor.shape)
        assert np.array_equal(explorer[name].to_numpy(), tnp.to_numpy(tensor))


def test_an_index_and_its_folder_are_one(folder, monkeypatch):
    """In the order of the index, with torch's values, and without `torch.load`."""
    loaded = {}
    for shard in SHARDS:
        loaded |= torch.load(folder / shard, weights_only=True)
    monkeypatch.setattr(torch, "load", None)
    for path in (folder, folder / INDEX, str(folder)):
        explorer = tnp.weights(path)
        assert list(explorer) == ["a.weight", "b", "c"]
        assert explorer.problems == []
        assert explorer.metadata == {"total_size": TOTAL, "config": {"hidden_size": 4}}
        assert explorer.totals == (13, 13, TOTAL)
        assert Path(explorer["c"].location).name == SHARDS[1]
        expect_values(explorer, loaded)
    monkeypatch.undo()
    for name, entry in explorer.items():
        assert torch.equal(eval(entry.code, {"torch": torch}), TENSORS[name])


def test_parts_without_an_index_belong_together(folder):
    """What a training leaves beside them is no part; a part that is missing is told."""
    (folder / INDEX).unlink()
    explorer = tnp.weights(folder)
    assert (list(explorer), explorer.problems) == (["a.weight", "b", "c"], [])
    assert explorer.metadata == {"config": {"hidden_size": 4}}
    expect_values(explorer, TENSORS)
    (folder / SHARDS[1]).unlink()
    explorer = tnp.weights(folder)
    assert list(explorer) == ["a.weight", "b"]
    assert explorer.problems == [f"'{SHARDS[1]}' is missing"]


def test_parts_of_two_models_are_several_candidates(folder):
    """As are two indices."""
    write_index(folder, PLACES, name="other.bin.index.json")
    with pytest.raises(tnp.CheckpointError, match=rf"has several: 'other.bin.index.json', '{INDEX}'; name one of them"):
        tnp.weights(folder)
    (folder / INDEX).unlink()
    (folder / "other.bin.index.json").unlink()
    torch.save(TENSORS, folder / "other-00001-of-00001.bin")
    with pytest.raises(tnp.CheckpointError, match=r"has several: .*'other-00001-of-00001.bin'.*; name one of them"):
        tnp.weights(folder)


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("broken", ["cut", "empty", "other", "pickle", "folder"])
def test_a_broken_shard_hides_no_other(folder, has_index, broken):
    """Nor does a file of another kind."""
    if not has_index:
        (folder / INDEX).unlink()
    path = folder / SHARDS[1]
    data = path.read_bytes()
    path.unlink()
    if broken == "folder":
        path.mkdir()
    else:
        contents = {"cut": data[:-100], "empty": b"", "other": bytes(range(256)), "pickle": pickle.dumps({"c": 1})}
        path.write_bytes(contents[broken])
    explorer = tnp.weights(folder)
    # Of a legacy file that is cut off, the values alone are missing.
    assert SHARDS[1] in explorer.problems[0] or explorer["c"].problem == "its storage is not in the file"
    assert "no sound safetensors" not in "".join(explorer.problems)
    expect_values(explorer, {"a.weight": TENSORS["a.weight"], "b": TENSORS["b"]})
    assert not has_index or explorer["c"].problem
