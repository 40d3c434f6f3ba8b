"""Folders and indices of safetensors files: what is wrong is said up front, and hides nothing that is right."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two files, with an index and a configuration."""
    save_file({"a": torch.ones(2), "b": torch.zeros(3)}, tmp_path / SHARDS[0])
    save_file({"c": torch.ones(4)}, tmp_path / SHARDS[1])
    write_index(tmp_path, {"a": SHARDS[0], "b": SHARDS[0], "c": SHARDS[1]})
    (tmp_path / "config.json").write_text('{"hidden_size": 4}')
    return tmp_path


def write_index(folder: Path, weight_map: dict[str, object], total: int = 36) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))


def test_a_broken_checkpoint_of_a_training_hides_no_other(tmp_path):
    """As of a training that ended while it saved; what is wrong stands first."""
    for step in (100, 200):
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file({"w": torch.ones(2)}, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    (tmp_path / "checkpoint-200" / "model.safetensors").write_bytes(b"\1\2\3\4")
    explorer = tnp.weights(tmp_path)
    assert list(explorer) == ["checkpoint-100.w"]
    assert "is not a valid safetensors file" in explorer.problems[0]


def test_what_an_index_lists_wrongly_is_a_problem(folder):
    """A shard that is missing, a weight that is not there, and one that nobody lists."""
    write_index(folder, {"a": SHARDS[0], "gone": SHARDS[0], "far": "model-00003.safetensors", "c": SHARDS[1]}, total=99)
    explorer = tnp.weights(folder)
    assert list(explorer) == ["a", "b", "c", "far", "gone"]
    said = "\n".join(explorer.problems)
    for words in (
        "model-00003.safetensors' cannot be opened", f"'b' lies in '{SHARDS[0]}', and is not in the index",
        f"'gone': it is not read from '{SHARDS[0]}'", "'far': it is not read from 'model-00003.safetensors'",
    ):  # fmt: skip
        assert words in said
    with pytest.raises(tnp.NoDataError, match="'gone' has no values to read"):
        explorer["gone"].to_numpy()


def _denied(monkeypatch, name: str) -> None:
    """Have a file be one that may not be read, which root always may."""
    really = os.open

    def opened(path, *args, **kwargs):
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, "Permission denied")
        return really(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", opened)


def test_a_configuration_that_cannot_be_read_is_a_problem(folder, monkeypatch):
    """Also beside a single file; where there is none, nothing is said."""
    with monkeypatch.context() as patch:
        _denied(patch, "config.json")
        for path in (folder, folder / SHARDS[0]):
            explorer = tnp.weights(path)
            assert explorer["a"].to_numpy().tolist() == [1, 1]
            assert "config.json' cannot be opened: Permission denied" in explorer.problems[0]
    (folder / "config.json").write_text("{")
    assert "config.json' is not valid JSON" in tnp.weights(folder).problems[0]
    (folder / "config.json").unlink()
    assert tnp.weights(folder).problems == []
