"""What is asked for and is not there, or is wrong: one sentence each, and what is good is still shown in its order."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp

NAME = "model.safetensors"


def says(error: type[Exception], ask: Callable[[], object], *words: str) -> None:
    """Expect one sentence of a kind that has all these words."""
    with pytest.raises(error) as raised:
        ask()
    said = str(raised.value)
    assert isinstance(raised.value, tnp.TensornpError)
    assert said.isprintable()
    assert not said.endswith(".")
    assert len(said) < 500
    assert all(word in said for word in words), said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    save_file({"a.weight": torch.ones(2, 3), "b": torch.zeros(4)}, tmp_path / "models" / NAME)
    return tmp_path


def test_a_path_that_is_not_there_is_refused(folder):
    """Whichever part of it is wrong."""
    for wrong in (f"models/{NAME[1:]}", f"modles/{NAME}", f"modles/x/{NAME}", f"models/{NAME}/x"):
        says(tnp.CheckpointError, lambda wrong=wrong: tnp.weights(folder / wrong), f"'{folder / wrong}'")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".npz", ".gguf", ""])
def test_a_file_of_no_bytes_is_said_to_be_empty(tmp_path, suffix):
    """Whatever its name says."""
    path = tmp_path / f"model{suffix}"
    path.touch()
    with pytest.raises(tnp.CheckpointError, match=r"is empty$"):
        tnp.weights(path)


def test_beside_a_tensor_a_path_is_opened_first(folder):
    """Of what is not there, none can be taken."""
    t = torch.ones(2, 3)
    with pytest.raises(tnp.BadRequestError, match=r"cannot be compared with all weights of .*; take one of them"):
        tnp.compare(t, folder / "models")
    for pair in ((t, "nope.pt"), ("nope.pt", t)):
        with pytest.raises(tnp.CheckpointError, match="there is no"):
            tnp.compare(*pair)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".gguf", ".npz", ".safetensors.index.json"])
def test_a_folder_of_several_names_them(tmp_path, suffix):
    """And reads none; one of them is opened by its name."""
    for i in range(8):
        save_file({"w": torch.ones(1)}, tmp_path / f"part{i}{suffix}")
    says(tnp.CheckpointError, lambda: tnp.weights(tmp_path), "has several", f"'part0{suffix}'", "…", "name one of them")


def test_a_folder_without_weights_says_so(tmp_path):
    """Empty, or of other things; nor is what is no folder taken for one."""
    says(tnp.CheckpointError, lambda: tnp.weights(tmp_path), "has no file of weights")
    (tmp_path / "readme.md").write_text("# hello")
    (tmp_path / "below").mkdir()
    says(tnp.CheckpointError, lambda: tnp.weights(tmp_path), "has no file of weights")


def test_what_may_not_be_read_says_so(folder, monkeypatch):
    """A file, a folder; root may read all, so that the system's answer is put in its place."""

    def denied(path: object, *_: object, **__: object) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for name, path in (("open", folder / "models" / NAME), ("scandir", folder / "models")):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, denied)
            says(tnp.CheckpointError, lambda path=path: tnp.weights(path), f"'{path}' cannot be", "Permission denied")


def test_an_index_or_a_name_that_is_not_there_is_told(folder):
    """With its bounds, and with the name that is closest."""
    explorer = tnp.weights(folder / "models")
    entry = explorer["a.weight"]
    for use in (entry.to_numpy, entry.plan):
        says(tnp.BadRequestError, lambda use=use: use(2), "index 2 is out of bounds", "axis 0 has 2 indices")
        says(tnp.BadRequestError, lambda use=use: use((0, -4)), "index -4 is out of bounds", "axis 1 has 3 indices")
        says(tnp.BadRequestError, lambda use=use: use((0, 0, 0)), "at most 2 dimensions")
        says(tnp.BadRequestError, lambda use=use: use((..., 0, ...)), "index")
        for odd in ("a", 1.5, [0], np.array([0]), True, {}):
            says(tnp.BadRequestError, lambda use=use, odd=odd: use(odd), "index must consist of integers, slices")
        says(tnp.BadRequestError, lambda use=use: use(slice(None, None, 0)), "slice")
        says(tnp.BadRequestError, lambda use=use: use(slice("a", None)), "slice")
    says(tnp.NoSuchWeightError, lambda: explorer["a.wieght"], "no weight 'a.wieght'", "the closest is 'a.weight'")
    says(tnp.NoSuchWeightError, lambda: explorer["zzz"], "no weight 'zzz'")
    says(tnp.NoSuchWeightError, lambda: explorer.scan()["a.wieght"], "the closest is 'a.weight'")
    says(tnp.CopyRequiredError, lambda: entry.to_numpy(copy=False), "leave copy=False out")


@pytest.mark.parametrize("odd", [3, "threads", object(), ThreadPoolExecutor, torch.nn.Linear(1, 1)])
def test_what_is_no_executor_is_refused(folder, odd):
    """Before anything is read."""
    says(tnp.BadRequestError, lambda: tnp.weights(folder / "models").scan(odd), "concurrent.futures.Executor")


@pytest.mark.parametrize("error", [MemoryError(), AssertionError(), EOFError(), ValueError("no")], ids=repr)
def test_a_worker_that_fails_of_a_part_fails_of_the_whole(tmp_path, error):
    """Though its error says nothing: of what the others have read alone no figures are made."""
    save_file({"large": torch.ones(9_000_001, dtype=torch.bfloat16), "b": torch.zeros(4)}, tmp_path / NAME)
    explorer = tnp.weights(tmp_path)

    def failing(task: Callable[..., Any], entry: Any, number: int) -> Future[Any]:
        done: Future[Any] = Future()
        if number:
            done.set_exception(error)
        else:
            done.set_result(task(entry, number))
        return done

    table = explorer.scan(SimpleNamespace(submit=failing))
    assert (list(table), list(table.failed)) == (["b"], ["large"])
    assert table.failed["large"].endswith(str(error))


def test_a_closed_explorer_is_empty_and_its_entries_are_still_read(folder):
    """Twice closed is closed; nothing of it raises anything but that a name is not there."""
    explorer = tnp.weights(folder / "models")
    entry = explorer["b"]
    explorer.close()
    explorer.close()
    assert (len(explorer), list(explorer), explorer.totals) == (0, [], (0, 0, 0))
    assert explorer.scan().complete
    assert len(explorer.find("*")) == 0
    assert "0 weights" in repr(explorer)
    says(tnp.NoSuchWeightError, lambda: explorer["b"], "no weight 'b'")
    assert entry.to_numpy().tolist() == [0, 0, 0, 0]
    tnp.weights({"a": torch.ones(1)}).close()


SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A model in two files, with an index and a configuration."""
    save_file({"a": torch.ones(2), "b": torch.zeros(3)}, tmp_path / SHARDS[0])
    save_file({"c": torch.ones(4)}, tmp_path / SHARDS[1])
    write_index(tmp_path, {"a": SHARDS[0], "b": SHARDS[0], "c": SHARDS[1]})
    (tmp_path / "config.json").write_text('{"hidden_size": 4}')
    return tmp_path


def write_index(checkpoint: Path, weight_map: dict[str, object], total: int = 36) -> None:
    (checkpoint / INDEX).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))


def test_a_broken_checkpoint_of_a_training_hides_no_other(tmp_path):
    """As of a training that ended while it saved; what is wrong stands first."""
    for step in (100, 200):
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file({"w": torch.ones(2)}, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    (tmp_path / "checkpoint-200" / "model.safetensors").write_bytes(b"\1\2\3\4")
    explorer = tnp.weights(tmp_path)
    assert list(explorer) == ["checkpoint-100.w"]
    assert "is not a valid safetensors file" in explorer.problems[0]


def test_what_an_index_lists_wrongly_is_a_problem(checkpoint):
    """A shard that is missing, a weight that is not there, and one that nobody lists."""
    write_index(
        checkpoint, {"a": SHARDS[0], "gone": SHARDS[0], "far": "model-00003.safetensors", "c": SHARDS[1]}, total=99
    )
    explorer = tnp.weights(checkpoint)
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


def test_a_configuration_that_cannot_be_read_is_a_problem(checkpoint, monkeypatch):
    """Also beside a single file; where there is none, nothing is said."""
    with monkeypatch.context() as patch:
        _denied(patch, "config.json")
        for path in (checkpoint, checkpoint / SHARDS[0]):
            explorer = tnp.weights(path)
            assert explorer["a"].to_numpy().tolist() == [1, 1]
            assert "config.json' cannot be opened: Permission denied" in explorer.problems[0]
    (checkpoint / "config.json").write_text("{")
    assert "config.json' is not valid JSON" in tnp.weights(checkpoint).problems[0]
    (checkpoint / "config.json").unlink()
    assert tnp.weights(checkpoint).problems == []


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
