"""Models in several files of `torch.save`, with and without an index: what is wrong is said, and hides nothing."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

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


class Runs:
    """Makes a folder, should anybody unpickle it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


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
    assert explorer.problems == [f"'{SHARDS[1]}' is missing; what may be there is not known"]


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


@pytest.mark.parametrize("has_both_indices", [True, False])
@pytest.mark.parametrize("has_torch_index", [True, False])
def test_of_both_kinds_the_safetensors_are_taken(folder, has_both_indices, has_torch_index):
    """And the others are named."""
    if not has_torch_index:
        (folder / INDEX).unlink()
    parts = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    save_file({"a.weight": torch.zeros(2)}, folder / parts[0])
    save_file({"c": torch.zeros(3)}, folder / parts[1])
    said = {}
    if has_both_indices:
        write_index(folder, {"a.weight": parts[0], "c": parts[1]}, 20, "model.safetensors.index.json")
        said = {"total_size": 20}
    explorer = tnp.weights(folder)
    assert {Path(entry.location).name for entry in explorer.values()} == set(parts)
    assert explorer.problems == [f"'{SHARDS[0]}', '{SHARDS[1]}' are not listed; open them by their paths"]
    assert explorer.metadata == {**said, "config": {"hidden_size": 4}}
    assert tnp.weights(folder / SHARDS[0])["b"].to_numpy().tolist() == [1, 1, 1]


def test_the_kind_that_is_there_is_taken(folder):
    """Though the index of the other one is there as well, as where a part of a repository was downloaded."""
    write_index(folder, {"a.weight": "model-00001-of-00001.safetensors"}, 20, "model.safetensors.index.json")
    explorer = tnp.weights(folder)
    assert (list(explorer), explorer.problems) == (["a.weight", "b", "c"], [])
    assert explorer.metadata["total_size"] == TOTAL
    for shard in SHARDS:
        (folder / shard).unlink()
    (folder / "training_args.bin").unlink()
    assert "model-00001-of-00001.safetensors" in tnp.weights(folder).problems[0]


def test_an_index_of_both_kinds_reads_each_by_what_it_is(folder):
    """And not by its name: files of either kind may end as the other one does."""
    save_file({"d": torch.ones(2)}, folder / "x.safetensors")
    save_file({"e": torch.ones(3)}, folder / "x.bin")
    torch.save({"f": torch.ones(4)}, folder / "y.safetensors")
    more = {"d": "x.safetensors", "e": "x.bin", "f": "y.safetensors"}
    write_index(folder, {**PLACES, **more}, TOTAL + 36, "model.index.json")
    explorer = tnp.weights(folder / "model.index.json")
    assert (list(explorer), explorer.problems) == ([*PLACES, *more], [])
    expect_values(explorer, {**TENSORS, "d": torch.ones(2), "e": torch.ones(3), "f": torch.ones(4)})


def test_what_an_index_lists_wrongly_is_a_problem(folder):
    """What is missing, what nobody lists, what lies elsewhere, a total that is not true, and places outside."""
    third = "pytorch_model-00003.bin"
    places = {"a.weight": SHARDS[1], "gone": SHARDS[0], "far": third, "c": SHARDS[1], "up": "../x.bin", "no": 3}
    write_index(folder, places, 99)
    explorer = tnp.weights(folder)
    assert list(explorer) == ["a.weight", "gone", "far", "c", "b"]
    said = "\n".join(explorer.problems)
    for words in (
        f"{third}' cannot be opened", f"'b' lies in '{SHARDS[0]}', and is not in the index",
        f"'gone': it is not in '{SHARDS[0]}'", f"'far': its file '{third}' cannot be read",
        f"'a.weight' lies in '{SHARDS[0]}', where the index has it not", f"'a.weight': it is not in '{SHARDS[1]}'",
        "'up' is refused: its file '../x.bin' would lie outside of the folder", "'no' is refused: its file is no text",
        "the index tells of 99 bytes, and its tensors have 38",
    ):  # fmt: skip
        assert words in said
    assert explorer["b"].note == "not in the index"
    expect_values(explorer, {"b": TENSORS["b"], "c": TENSORS["c"]})


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


def test_nothing_that_a_shard_wants_is_run(folder, tmp_path):
    """The problem names the shard."""
    torch.save({"c": TENSORS["c"], "bad": Runs(tmp_path / "made")}, folder / SHARDS[1])
    for path in (folder, folder / INDEX):
        explorer = tnp.weights(path)
        wanted = f"'{os.mkdir.__module__}.mkdir'"
        assert explorer.problems == [f"'{SHARDS[1]}': it wants to import {wanted}, and nothing was imported"]
        expect_values(explorer, TENSORS)
    (folder / INDEX).unlink()
    assert len(tnp.weights(folder).problems) == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("is_each_counted", [True, False])
def test_a_tied_weight_may_be_counted_once_in_the_total(folder, is_each_counted):
    """As different versions of transformers have written it; and what is no tensor is listed as what it is."""
    embedding = torch.ones(5, 2)
    torch.save({"c": TENSORS["c"], "embed": embedding, "head": embedding, "version": 3}, folder / SHARDS[1])
    places = {**PLACES, "embed": SHARDS[1], "head": SHARDS[1], "version": SHARDS[1]}
    write_index(folder, places, TOTAL + (80 if is_each_counted else 40))
    explorer = tnp.weights(folder)
    assert (list(explorer), explorer.problems) == ([*PLACES, "embed", "head"], [])
    assert explorer["head"].tied_to == ("embed",)
    assert explorer.totals == (23, 23, TOTAL + 40)
    assert explorer.metadata["version"] == 3


def test_packed_weights_of_shards_mean_the_same_as_those_of_safetensors(folder):
    """By the configuration beside them."""
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    packed = {"l.qweight": torch.zeros(4, 8, dtype=torch.int32), "l.scales": torch.ones(1, 8).half()}
    torch.save(packed, folder / SHARDS[1])
    write_index(folder, {"a.weight": SHARDS[0], "b": SHARDS[0], **dict.fromkeys(packed, SHARDS[1])}, 30 + 128 + 16)
    explorer = tnp.weights(folder)
    assert explorer.problems == []
    assert explorer["l.qweight"].note == "packed 4-bit codes (gptq)"
    assert explorer["l.qweight"]._num_parameters == 4 * 8 * 8


def test_a_shard_that_is_replaced_is_told(folder):
    """When it is read."""
    explorer = tnp.weights(folder)
    with zipfile.ZipFile(folder / SHARDS[0], "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
    with pytest.raises(tnp.ChangedFileError):
        explorer["b"].to_numpy()
    expect_values(explorer, {"c": TENSORS["c"]})


def test_one_file_by_two_ways_is_one(tmp_path):
    """``./x.bin`` and ``x.bin``; and a total that is no number tells nothing."""
    weight = torch.randn(4, 4)
    torch.save({"a": weight, "b": weight + 1}, tmp_path / "x.bin")
    told = {"metadata": {"total_size": float("nan")}, "weight_map": {"a": "./x.bin", "b": "x.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(told))
    explorer = tnp.weights(tmp_path)
    assert explorer.problems == []
    assert list(explorer) == ["a", "b"]
