"""Folders of `torch.distributed.checkpoint`: the values are torch's, only what is needed is read, nothing is run."""

from __future__ import annotations

import os
import pickle
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import written_dcp
from forked import Forked
from test_torch_file import Runs, leaves
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
)
from written_dcp import ITEMS, in_rows, of_ranks, save, whole, written

import tensornp as tnp
from tensornp.models.files.source_file import OpenFile
from tensornp.render.models.weights import weights_document


class NotPlain:
    """Holds what a value may have."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory) -> Path:
    """What two ranks have saved together."""
    folder = tmp_path_factory.mktemp("ranks")
    children = [Forked([written_dcp.save_rank], str(folder), rank) for rank in (0, 1)]
    endings = [ending for child in children for ending in child.endings()]
    assert [how for how, _ in endings] == ["returned", "returned"], endings
    return folder / "saved"


@pytest.fixture
def count(monkeypatch) -> Counter[str]:
    """How many bytes were read of each file, by its name."""
    found: Counter[str] = Counter()
    read_into = OpenFile.read_into

    def counting(self, target, offset):
        found[Path(self._source.path).name] += target.nbytes
        read_into(self, target, offset)

    monkeypatch.setattr(OpenFile, "read_into", counting)
    return found


def tree() -> dict[str, Any]:
    made: dict[str, Any] = {
        "model": {
            "a": torch.arange(35.0).view(5, 7), "turned": torch.arange(24.0).view(4, 6).T,
            "part": torch.arange(1000.0)[10:20], "expanded": torch.ones(1).expand(4, 5),
            "list": [torch.arange(6), torch.tensor(2.5), 4], "empty": torch.zeros(0, 3),
            "permuted": torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1), "trained": torch.nn.Parameter(torch.ones(3)),
        },
        "step": 3, "none": None, "config": ("adam", {"lr": 0.1}),
    }  # fmt: skip
    saved = ("bfloat16", "float16", "float8_e4m3fn", "int64", "complex64", "bool", "float64")
    for name in (*saved, "uint16"):
        made[name] = torch.arange(5).float().to(getattr(torch, name))
    return made


@pytest.mark.slow
def test_the_values_are_those_that_were_saved(tmp_path):
    """Of nested dictionaries, in every dtype and layout; parts of them; statistics; the code that reaches each."""
    made = tree()
    save(made, tmp_path)
    expected = dict(leaves(made))
    for path in (tmp_path, tmp_path / ".metadata"):
        explorer = tnp.weights(path)
        assert sorted(explorer) == sorted(expected)
        assert explorer.problems == []
    for name, tensor in expected.items():
        entry, array = explorer[name], tnp.to_numpy(tensor)
        assert (entry.shape, entry.dtype) == (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        assert np.array_equal(entry.to_numpy(), array), name
        assert entry.to_numpy().dtype == array.dtype
        assert entry.stats() == tnp.stats(tensor.contiguous())
        assert np.array_equal(eval(entry.code, {"tnp": tnp}), array)
        if tensor.dim():
            assert np.array_equal(entry.to_numpy((slice(None, None, -2), ...)), array[::-2])
        assert entry.plan().nbytes_read == tensor.numel() * tensor.element_size()
    metadata = dict(explorer.metadata)
    assert (metadata["step"], metadata["none"]) == (3, None)
    assert (metadata["config.0"], metadata["config.1.lr"]) == ("adam", 0.1)


@pytest.mark.slow
def test_the_shards_of_a_tensor_are_one_entry(ranks):
    """By rows or columns, uneven, or all on one rank; each index takes what NumPy takes of the whole."""
    explorer, made = tnp.weights(ranks), of_ranks()
    assert explorer.problems == []
    assert set(explorer) == set(made)
    for name, tensor in made.items():
        if name == "plain":
            continue
        entry, array = explorer[name], tnp.to_numpy(tensor)
        assert (entry.shape, entry.nbytes) == (tensor.shape, tensor.nbytes)
        assert np.array_equal(entry.to_numpy(), array), name
        assert entry.stats() == tnp.stats(tensor)
        for index in ((0,), (-1, ...), (slice(None, None, -3),), (..., slice(1, None, 2)), (..., -1), (None, ..., 0)):
            assert np.array_equal(entry.to_numpy(index), array[index]), (name, index)
        for index in ((slice(2, 2),), (slice(5, 1, -2), slice(3, 40, 7))):
            if len(index) <= array.ndim:
                assert np.array_equal(entry.to_numpy(index), array[index]), (name, index)
    places = [Path(extent.path).name for extent in explorer["rows"].extents]
    assert len(set(places)) == 2
    assert explorer["rows"].location == str(ranks)
    assert explorer.metadata["step"] in (7, 8)


def test_only_what_an_index_needs_is_read(ranks, count):
    """Of the files that hold it, and nothing at all when it is listed, where the place is known from elsewhere."""
    entry = tnp.weights(ranks)["rows"]
    first, second = (Path(extent.path).name for extent in entry.extents)
    for index, names in ((slice(3, 7), {first}), (slice(-1, None), {second}), (slice(30, 34), {first, second})):
        plan = entry.plan(index)
        assert plan.nbytes_read == 2000 * plan.shape[0]
        assert plan.num_reads == len(names)
        count.clear()
        assert entry.to_numpy(index).shape == plan.shape
        assert set(count) == names
        assert count.total() == plan.nbytes_read
    count.clear()
    assert np.array_equal(entry.to_numpy((slice(None), 7)), of_ranks()["rows"].numpy()[:, 7])


def test_listing_reads_no_item_of_a_tensor(tmp_path, count):
    """The metadata alone; an item is looked into for its values, with some kB besides them."""
    written(tmp_path, {"w": in_rows(torch.randn(1000, 100), 400, 600), "v": whole(torch.ones(5))})
    entry = tnp.weights(tmp_path)["w"]
    assert set(count) == {".metadata"}
    assert entry.to_numpy(slice(0, 2)).shape == (2, 100)
    assert 800 < count[ITEMS] < 800 + 4096
    assert [extent.nbytes > 100 * 4 * n for extent, n in zip(entry.extents, (400, 600), strict=True)] == [True, True]


def test_nothing_that_the_metadata_wants_is_run(tmp_path):
    """It is named, and the weights are there; torch would have run it."""
    folder = written(
        tmp_path / "x",
        {"w": whole(torch.ones(2))},
        change=lambda m: setattr(m, "planner_data", Runs(tmp_path / "made")),
    )
    explorer = tnp.weights(folder)
    module = os.mkdir.__module__
    assert explorer.problems == [f"it wants to import '{module}.mkdir', and nothing was imported"]
    assert explorer["w"].wanted_imports == (f"{module}.mkdir",)
    assert explorer["w"].to_numpy().tolist() == [1, 1]
    (folder / ".metadata").write_bytes(pickle.dumps(Runs(tmp_path / "made")))
    with pytest.raises(tnp.CheckpointError, match=r"holds no metadata of torch\.distributed\.checkpoint"):
        tnp.weights(folder)
    assert not (tmp_path / "made").exists()


def test_nothing_that_a_value_wants_is_run(tmp_path):
    """An item that is no tensor is a pickle of its own."""
    held = NotPlain()
    held.rate, held.of = 0.5, {3: OrderedDict(a=[1]), "b": OrderedDict()}
    made = {"w": torch.ones(2), "bad": (Runs(tmp_path / "made"), 5), "inner": (torch.ones(3), torch.int8), "own": held}
    save(made, tmp_path / "x")
    explorer = tnp.weights(tmp_path / "x")
    module = os.mkdir.__module__
    own = f"{__name__}.NotPlain"
    says = {"bad": f"{module}.mkdir", "own": own}
    assert explorer.problems == [
        f"'{name}' wants to import '{one}', and nothing was imported" for name, one in says.items()
    ]
    assert dict(explorer.metadata) == {
        "bad.0.0": str(tmp_path / "made"), "bad.1": 5, "inner.0": ("float32 tensor of shape (3,)",),
        "inner.1": "torch.int8", "own.rate": 0.5, "own.of.3.a.0": 1,
    }  # fmt: skip
    assert "inner.0: <float32 tensor of shape (3,)>" in weights_document(explorer).text()
    assert explorer["w"].to_numpy().tolist() == [1, 1]
    assert not (tmp_path / "made").exists()


def bad(**fields: Any) -> Any:
    """Return what changes the item of the first chunk of 'w'."""

    def change(metadata: Metadata) -> None:
        one = metadata.storage_data[MetadataIndex("w", (0, 0))]
        for name, value in fields.items():
            setattr(one, name, value)

    return change


def chunks(*boxes: tuple[tuple[int, ...], tuple[int, ...]]) -> Any:
    def change(metadata: Metadata) -> None:
        made = [ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)) for offsets, sizes in boxes]
        metadata.state_dict_metadata["w"].chunks = made

    return change


def forgotten(metadata: Metadata) -> None:
    del metadata.storage_data[MetadataIndex("w", (0, 0))]


HOSTILE = {
    "above": (bad(relative_path="../x.distcp"), "its file '../x.distcp' would lie outside of the folder"),
    "absolute": (bad(relative_path="/etc/passwd"), "its file '/etc/passwd' would lie outside of the folder"),
    "drive": (bad(relative_path="C:\\x.distcp"), "would lie outside of the folder"),
    "share": (bad(relative_path="\\\\srv\\x"), "would lie outside of the folder"),
    "backslashes": (bad(relative_path="a\\..\\..\\x"), "would lie outside of the folder"),
    "NUL": (bad(relative_path="a\0b"), "would lie outside of the folder"),
    "number": (bad(relative_path=3), "its file is no text"),
    "folder": (bad(relative_path="."), "is not a regular file"),
    "missing file": (bad(relative_path="__9_0.distcp"), "cannot be opened: No such file or directory"),
    "past the end": (bad(offset=10**9), "its item at byte 1,000,000,000 lies outside of '__0_0.distcp'"),
    "endless": (bad(length=2**70), "where it lies is not told"),
    "negative": (bad(offset=-1), "where it lies is not told"),
    "short": (bad(length=5), "is not an item of torch.save"),
    "transformed": (bad(transform_descriptors=["stream.rot13/1"]), "it is transformed, such as compressed"),
    "no item": (forgotten, "where it lies is not told"),
    "no chunk": (chunks(), "chunks with 12 of its 12 elements are missing"),
    "missing chunk": (chunks(((0, 0), (2, 4))), "chunks with 4 of its 12 elements are missing"),
    "overlap": (chunks(((0, 0), (2, 4)), ((1, 0), (2, 4))), "its chunks overlap"),
    "twice": (chunks(((0, 0), (3, 4)), ((0, 0), (3, 4))), "its chunks overlap"),
    "beyond": (chunks(((0, 0), (4, 4))), "the chunk at (0, 0) of (4, 4) reaches beyond its shape"),
    "dimensions": (chunks(((0,), (12,))), "a chunk has another number of dimensions"),
    "bare": (bad(length=48), "is not an item of torch.save; it may be in safetensors files"),
    "dtype": (lambda m: setattr(m.state_dict_metadata["w"].properties, "dtype", torch.quint8), "'quint8' is not read"),
    "no dtype": (
        lambda m: setattr(m.state_dict_metadata["w"].properties, "dtype", "float32"), "is not read"
    ),
    "no shape": (lambda m: setattr(m.state_dict_metadata["w"], "size", "3x4"), "its shape is not told"),
    "negative shape": (lambda m: setattr(m.state_dict_metadata["w"], "size", (-3, 4)), "its shape is not told"),
    "endless shape": (
        lambda m: setattr(m.state_dict_metadata["w"], "size", (2**61, 4)), "of its 9,223,372,036,854,775,808 elements"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_fit_is_a_problem_of_its_own_tensor(tmp_path, name):
    """Said when it is listed; the others are read."""
    change, says = HOSTILE[name]
    w, good = torch.arange(12.0).view(3, 4), torch.ones(5)
    explorer = tnp.weights(written(tmp_path, {"good": whole(good), "w": whole(w)}, change=change))
    assert says in explorer["w"].problem
    assert explorer.problems == [f"'w': {explorer['w'].problem}"]
    assert explorer["good"].to_numpy().tolist() == [1] * 5
    with pytest.raises(tnp.NoDataError):
        explorer["w"].to_numpy()
    assert dict(explorer.scan()).keys() == {"good"}


def test_what_is_no_whole_checkpoint_is_told(tmp_path):
    """A file of items alone, and a folder whose writer did not finish."""
    written(tmp_path, {"w": whole(torch.ones(100))})
    with pytest.raises(tnp.CheckpointError, match=r"holds items of torch\.distributed\.checkpoint; open its folder"):
        tnp.weights(tmp_path / ITEMS)
    (tmp_path / ".metadata").rename(tmp_path / ".metadata.tmp")
    with pytest.raises(tnp.CheckpointError, match=r"has \.distcp files, and no \.metadata that tells"):
        tnp.weights(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(tnp.CheckpointError, match=r"holds no metadata of torch\.distributed\.checkpoint"):
        tnp.weights(tmp_path)


def test_a_file_that_is_cut_off_keeps_what_is_whole(tmp_path):
    """What lies behind the cut says so."""
    written(tmp_path, {name: whole(torch.ones(100)) for name in "abc"})
    os.truncate(tmp_path / ITEMS, os.path.getsize(tmp_path / ITEMS) - 10)
    explorer = tnp.weights(tmp_path)
    assert [bool(explorer[name].problem) for name in "abc"] == [False, False, True]
    assert explorer["b"].to_numpy().sum() == 100


def test_a_lost_file_is_one_problem(tmp_path):
    """Of all tensors with a chunk in it; the others are read."""
    made = {"w": torch.arange(12.0).view(6, 2), "v": torch.ones(6, 2), "whole": torch.ones(3)}

    def change(metadata):
        for index, one in metadata.storage_data.items():
            at = index.offset[0] if index.offset is not None else 0
            one.relative_path = f"__{at // 2}_0.distcp"

    tree = {name: in_rows(one, 2, 2, 2) if one.dim() == 2 else whole(one) for name, one in made.items()}
    written(tmp_path, tree, change=change)
    (tmp_path / "__1_0.distcp").write_bytes((tmp_path / ITEMS).read_bytes())
    explorer = tnp.weights(tmp_path)
    (problem,) = explorer.problems
    assert "__2_0.distcp' cannot be opened" in problem
    assert "1 more" in problem
    assert [bool(explorer[name].problem) for name in made] == [True, True, False]
    table = explorer.scan()
    assert (set(table), set(table.failed)) == ({"whole"}, {"w", "v"})
