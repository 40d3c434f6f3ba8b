"""Folders of which one file is not all, and offloaded ones: what is passed over is named, and never equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import tensornp as tnp


def write(path: Path, value: float = 1.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {"w": torch.full((3,), value)}
    if path.suffix == ".safetensors":
        save_file(held, path)
    elif path.suffix == ".npz":
        np.savez(path, w=held["w"].numpy())
    else:
        torch.save(held, path)


LISTED = {
    "a sentence transformer": (["model.safetensors", "2_Dense/model.safetensors"], ["w", "2_Dense.w"]),
    "an older one": (["pytorch_model.bin", "2_Dense/pytorch_model.bin"], ["w", "2_Dense.w"]),
    "a pipeline of both kinds": (["unet/model.safetensors", "vae/model.bin"], ["unet.w", "vae.w"]),
    "a file of another kind": (["top.pt", "sub/a.safetensors"], ["w", "sub.w"]),
    "an archive": (["top.npz", "sub/a.safetensors"], ["w", "sub.w"]),
    "an index": (["model-00001-of-00001.safetensors", "2_Dense/model.safetensors"], ["w", "2_Dense.w"]),
    "what lies deeper": (["model.safetensors", "sub/deep/a.safetensors"], ["w", "sub.deep.w"]),
    "checkpoints": (["checkpoint-1/a.safetensors", "checkpoint-2/model.bin"], ["checkpoint-1.w", "checkpoint-2.w"]),
}  # fmt: skip


@pytest.mark.parametrize("files", LISTED)
def test_components_are_listed_below_their_names(tmp_path, files):
    """Whatever lies above them; each is compared, and read by a scan."""
    paths, names = LISTED[files]
    for path in paths:
        write(tmp_path / "a" / path)
        write(tmp_path / "b" / path, 2.0 if path == paths[-1] else 1.0)
    if files == "an index":
        told = json.dumps({"weight_map": {"w": paths[0]}})
        for folder in "ab":
            (tmp_path / folder / "model.safetensors.index.json").write_text(told)
    explorer = tnp.weights(tmp_path / "a")
    assert (list(explorer), explorer.problems) == (names, [])
    assert explorer[names[1]].to_numpy().tolist() == [1, 1, 1]
    assert list(tnp.compare(tmp_path / "a", tmp_path / "b").changed()) == names[1:]
    assert len(explorer.scan()) == 2


INDICES = {
    "model.safetensors.index.json": "model-{}.safetensors",
    "model.safetensors.index.fp16.json": "model.fp16-{}.safetensors",
    "diffusion_pytorch_model.safetensors.fp16.index.json": "diffusion_pytorch_model-{}.fp16.safetensors",
    "pytorch_model.bin.index.json": "pytorch_model-{}.bin",
    "pytorch_model.bin.index.fp16.json": "pytorch_model-{}.fp16.bin",
}
"""The names that transformers and diffusers give to the index of a model, and to its parts."""


@pytest.mark.parametrize("folder", ["", "text_encoder/", "a/b/"])
@pytest.mark.parametrize("index", INDICES)
def test_an_index_is_followed_at_every_depth(tmp_path, index, folder):
    """An old file beside the parts is left alone; without an index, parts belong together by their names."""
    at, expected = tmp_path / folder, {f"{folder.replace('/', '.')}w{i}": [i] * 3 for i in range(2)}
    at.mkdir(parents=True, exist_ok=True)
    parts = [INDICES[index].format(f"0000{i}-of-00002") for i in (1, 2)]
    for i, part in enumerate(parts):
        (torch.save if part.endswith(".bin") else save_file)({f"w{i}": torch.full((3,), float(i))}, at / part)
    (at / index).write_text(json.dumps({"weight_map": {"w0": parts[0], "w1": parts[1]}}))
    assert _values(tmp_path) == expected
    assert len(tnp.weights(at / index)) == 2
    old = at / ("model.safetensors" if "safetensors" in index else "pytorch_model.bin")
    write(old, 5.0)
    assert _values(tmp_path) == expected
    old.unlink()
    (at / index).unlink()
    assert _values(tmp_path) == expected
    assert tnp.weights(at / parts[0]).problems == ["this is one of 2 parts; open its folder for all"]


def _values(path: Path) -> dict[str, list[object]]:
    return {name: entry.to_numpy().tolist() for name, entry in tnp.weights(path).items()}


PASSED_OVER = {
    "the other kind": "pytorch_model.bin",
    "the optimizer": "optimizer.pt",
    "a component of another kind": "sub/part.pt",
    "a .bin of any data": "sub/data.bin",
    "an ending in capitals": "MODEL.SafeTensors",
    "a checkpoint": "checkpoint-500/model.safetensors",
    "one of what lies deeper": "checkpoint-500/unet/model.safetensors",
}


@pytest.mark.parametrize("what", PASSED_OVER)
def test_what_is_passed_over_is_named_and_not_equal(tmp_path, what):
    """Though all that is listed is."""
    path = PASSED_OVER[what]
    named = "checkpoint-500" if "checkpoint" in path else path
    said = f"'{named}' is not listed; open it by its path"
    write(tmp_path / "model.safetensors")
    write(tmp_path / path)
    explorer = tnp.weights(tmp_path)
    assert (list(explorer), explorer.problems) == (["w"], [said])
    assert not tnp.compare(tmp_path, tmp_path).equal
    assert explorer.scan().not_listed == (said,)


def test_what_is_saved_beside_a_model_is_none_of_a_module(tmp_path):
    """A checkpoint of a training, its optimizer, and the same model in the other kind: told, and missing nowhere."""
    module = torch.nn.Module()
    module.w = torch.nn.Parameter(torch.ones(3))
    for name in ("model.safetensors", "pytorch_model.bin", "optimizer.pt", "checkpoint-500/model.safetensors"):
        write(tmp_path / name)
    assert len(tnp.weights(tmp_path).problems) == 1
    assert tnp.compare(module, tmp_path).equal and tnp.compare(tmp_path, module).equal
    assert not tnp.compare(tmp_path, tmp_path).equal
    write(tmp_path / "sub/deep/a.safetensors")
    assert not tnp.compare(module, tmp_path).equal


def test_the_last_model_of_a_training_hides_not_behind_its_checkpoints(tmp_path):
    """They are named together; the arguments of the training are no weights."""
    write(tmp_path / "pytorch_model.bin")
    for name in ("training_args.bin", "checkpoint-1000/pytorch_model.bin", "checkpoint-500/model.safetensors"):
        write(tmp_path / name, 2.0)
    explorer = tnp.weights(tmp_path)
    assert explorer["w"].to_numpy().tolist() == [1, 1, 1]
    assert explorer.problems == ["'checkpoint-1000', 'checkpoint-500' are not listed; open them by their paths"]
    write(tmp_path / "optimizer.pt")
    explorer = tnp.weights(tmp_path)
    assert list(explorer) == ["w"]
    assert "'optimizer.pt'" in explorer.problems[0]
    write(tmp_path / "other.pt")
    with pytest.raises(tnp.CheckpointError, match=r"has several: 'other.pt', 'pytorch_model.bin'"):
        tnp.weights(tmp_path)


def _as_dcp(folder: Path) -> None:
    dcp.save({"w": torch.ones(3)}, checkpoint_id=folder)


def _as_offloaded(folder: Path) -> None:
    folder.mkdir()
    (folder / "index.json").write_text('{"w": {"dtype": "float32", "shape": [2]}}')
    np.ones(2, np.float32).tofile(folder / "w.dat")


@pytest.mark.parametrize("made", [_as_dcp, _as_offloaded])
def test_a_folder_that_is_one_checkpoint_is_a_component(tmp_path, made: Callable[[Path], None]):
    """A checkpoint of torch.distributed.checkpoint, or offloaded weights; what else lies there is told."""
    write(tmp_path / "model.safetensors")
    made(tmp_path / "part")
    explorer = tnp.weights(tmp_path)
    assert (list(explorer), explorer.problems) == (["w", "part.w"], [])
    assert explorer["part.w"].to_numpy().tolist() == tnp.weights(tmp_path / "part")["w"].to_numpy().tolist()
    name = "other.pt" if made is _as_dcp else "other.dat"
    write(tmp_path / "part" / name)
    (problem,) = tnp.weights(tmp_path / "part").not_listed
    assert f"'{name}'" in problem


def test_a_part_that_a_component_lacks_is_told(tmp_path):
    """Though other components are whole."""
    write(tmp_path / "unet" / "m-00001-of-00002.safetensors")
    write(tmp_path / "vae" / "model.safetensors")
    said = "'unet': 'm-00002-of-00002.safetensors' is missing"
    assert tnp.weights(tmp_path).not_listed == (said,)


def test_what_lies_beside_tensors_of_a_component_is_compared(tmp_path):
    """A number that a file of torch holds is another one."""
    for folder, step in (("a", 5), ("b", 6)):
        write(tmp_path / folder / "unet" / "model.safetensors")
        (tmp_path / folder / "vae").mkdir()
        torch.save({"w": torch.ones(3), "step": step}, tmp_path / folder / "vae" / "model.bin")
    found = tnp.compare(tmp_path / "a", tmp_path / "b")
    assert found._beside == {"vae.step": "5 → 6"}


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["unet/a.fp16.safetensors", "unet/a.safetensors"], "'{}' is not listed; open it by its path"),
        (["m-1-of-2.bin", "m-2-of-2.bin"], "'w' lies in '{1}' and in another file, and is listed of the last"),
        (["m-1-of-2.safetensors", "m-2-of-2.safetensors"], "'w' lies in '{}', where the index has it not"),
    ],
)  # fmt: skip
def test_a_weight_that_lies_twice_is_not_called_equal(tmp_path, paths, said):
    """Only one of the two is listed: the other one may differ, or have a NaN."""
    said = said.format(*paths)
    for folder, value in (("a", 1.0), ("b", 2.0)):
        write(tmp_path / folder / paths[0], value)
        write(tmp_path / folder / paths[1])
        if "index" in said:
            told = {"weight_map": {"v": paths[0], "w": paths[1]}}
            (tmp_path / folder / "m.safetensors.index.json").write_text(json.dumps(told))
    found = tnp.compare(tmp_path / "a", tmp_path / "b")
    assert not found.changed()
    assert not found.equal
    assert f"both: {said}" in found._not_listed
    assert said in found._first.scan().not_listed


TENSORS = {
    "w": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.bfloat16), "deep.n": torch.tensor(7),
    "f": torch.arange(4.0).half().view(2, 2), "flags": torch.tensor([True, False]),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("accelerate.utils.offload").offload_state_dict(str(tmp_path / "x"), TENSORS)
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
