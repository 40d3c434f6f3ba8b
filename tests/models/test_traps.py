"""Every trap of files and numbers, each a small script that makes it, in a process of its own with little memory.

A trap is a generator: what comes before the first `yield` makes the file; what comes after it looks, in a process that
gets 300 MB more and no more time than a hang would take, and that is watched: nothing is imported, run, mapped or
written. A further `yield` hands over to making again, and so on.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import signal
import struct
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from child import in_fork
from memory_limit import limit_memory
from safetensors.torch import save_file
from watched import Watch
from written_dcp import save
from written_torch import named, tensor, text, written, written_legacy

import tensornp as tnp
from tensornp.core.values.stats import fast
from tensornp.render.models.weights import weights_document

NBYTES = 300_000_000
"""What a process may take to look at any of these files."""
HALVES = 170_000_000
"""Elements of two bytes that take more."""
TIMEOUT_S = 300
Trap = Callable[[Path], Iterator[None]]
TRAPS: dict[str, Trap] = {}


def trap(made: Trap) -> Trap:
    TRAPS[made.__name__.replace("_", " ")] = made
    return made


def refused(path: Path, *says: str) -> None:
    """Expect one sentence, which names the file and says all that."""
    with pytest.raises(tnp.CheckpointError) as raised:
        tnp.weights(path)
    said = str(raised.value)
    assert said.isprintable()
    assert path.name in said
    assert len(said) < 1000
    for words in says:
        assert words in said, said


def headed(header: Any, nbytes: int = 0) -> bytes:
    """Return a safetensors file of this header, which may be text, and of zeros."""
    told = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(told)) + told + bytes(nbytes)


def facts(first: int, stop: int, *shape: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [first, stop]}


def sparse(path: Path, data: bytes, nbytes: int) -> Path:
    """Write a file that ends in a hole, which takes no disk."""
    path.write_bytes(data)
    os.truncate(path, len(data) + nbytes)
    return path


def num_read() -> int:
    """Return how many bytes this process has read, as the system counts; 0 where it does not tell."""
    counts = Path("/proc/self/io")
    return int(counts.read_text().split()[1]) if counts.exists() else 0


@trap
def a_safetensors_file_larger_than_memory(folder):
    rows = 10_000_000
    header = {
        "w": facts(0, rows * 4000, rows, 1000),
        "half": facts(rows * 4000, rows * 4000 + 2 * HALVES, HALVES, dtype="F16"),
    }
    path = sparse(folder / "x.safetensors", headed(header), rows * 4000 + 2 * HALVES)
    tnp.weights({"w": torch.ones(300_000)}).scan()
    fast.load()
    yield
    explorer = tnp.weights(path)
    before = num_read()
    assert explorer["w"].to_numpy(slice(-4, None)).shape == (4, 1000)
    assert num_read() - before < 16_000 + 4096
    assert explorer["w"].plan(slice(-4, None)).nbytes_read == 16_000
    assert (explorer["half"].stats().zeros, explorer["half"].stats().count) == (HALVES, HALVES)
    with pytest.raises(tnp.TooLargeError):
        explorer["w"].to_numpy()


@trap
def a_torch_file_larger_than_memory(folder):
    nbytes = 30 * 2**30
    sparse(folder / "values", b"", nbytes)
    values = torch.from_file(str(folder / "values"), shared=True, size=nbytes // 4).view(-1, 1024)
    with torch.serialization.skip_data():
        torch.save({"w": values, "b": torch.ones(3)}, folder / "x.pt")
    del values
    yield
    entry = tnp.weights(folder / "x.pt")["w"]
    assert entry.nbytes == nbytes
    before = num_read()
    assert entry.to_numpy((slice(-4, None), slice(8))).shape == (4, 8)
    assert num_read() - before < 4 * 4096 + 4096


@trap
def an_empty_tensor_of_endless_shape(folder):
    (folder / "x.safetensors").write_bytes(headed({"w": facts(0, 0, 0, 2**62)}))
    yield
    entry = tnp.weights(folder / "x.safetensors")["w"]
    assert (entry.numel, entry.nbytes) == (0, 0)
    with pytest.raises(tnp.NoDataError, match="its shape is too large for any memory"):
        entry.to_numpy()


@trap
def values_that_begin_at_odd_addresses(folder):
    header = {"byte": facts(0, 1, 1, dtype="U8"), "w": facts(1, 25, 3, dtype="F64")}
    (folder / "x.safetensors").write_bytes(headed(header, 1) + np.arange(3, dtype="<f8").tobytes())
    yield
    entry = tnp.weights(folder / "x.safetensors")["w"]
    assert entry.extents[0].offset % 8
    assert entry.to_numpy().tolist() == [0, 1, 2]
    assert entry.to_numpy().flags.aligned
    with pytest.raises(tnp.CopyRequiredError):
        entry.to_numpy(copy=False)


@trap
def a_cache_whose_files_are_links_out_of_it(folder):
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    save_file({"w": torch.ones(2)}, blobs / "1f")
    (snapshot / "model-00001-of-00001.safetensors").symlink_to("../../blobs/1f")
    index = {"weight_map": {"w": "model-00001-of-00001.safetensors"}}
    (blobs / "2f").write_text(json.dumps(index))
    (snapshot / "model.safetensors.index.json").symlink_to("../../blobs/2f")
    yield
    explorer = tnp.weights(snapshot)
    assert explorer.problems == []
    assert explorer["w"].to_numpy().tolist() == [1, 1]


@trap
def pipes_folders_and_devices_by_the_name_of_a_file(folder):
    names = ["folder.safetensors"]
    (folder / names[0]).mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.safetensors")
        (folder / "device.safetensors").symlink_to("/dev/zero")
        (folder / "endless.safetensors.index.json").symlink_to("/dev/zero")
        (folder / "pipe.pt").symlink_to("pipe.safetensors")
        names += ["pipe.safetensors", "device.safetensors", "endless.safetensors.index.json", "pipe.pt"]
    yield
    for name in names:
        refused(folder / name, "no file of weights" if name.startswith("folder") else "regular file")


@trap
def fifty_thousand_tensors(folder):
    header = {f"layers.{i}.experts.{j}.w": facts(0, 0, 0) for i in range(100) for j in range(500)}
    (folder / "x.safetensors").write_bytes(headed(header))
    del header
    yield
    explorer = tnp.weights(folder / "x.safetensors")
    assert len(explorer) == 50_000
    assert len(weights_document(explorer).html()) < 10_000


PLACES = (
    "../outside.safetensors", "sub/../../outside.safetensors", "/outside.safetensors", "C:\\x.safetensors",
    "\\\\srv\\x.safetensors", "..\\x.safetensors", "a\0.safetensors", 3, None, ["x"], {"a": 1}, "x.h5", "",
)  # fmt: skip


@trap
def an_index_that_leads_out_of_its_folder(folder):
    there = folder / "model"
    there.mkdir()
    save_file({"w": torch.ones(1)}, there / "good.safetensors")
    save_file({"bad0": torch.ones(1)}, folder / "outside.safetensors")
    places = {"w": "good.safetensors", **{f"bad{i}": place for i, place in enumerate(PLACES)}}
    (there / "x.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    yield
    explorer = tnp.weights(there)
    assert list(explorer) == ["w"]
    assert explorer["w"].to_numpy().tolist() == [1]
    assert len(explorer.problems) == len(PLACES)
    assert all(f"'bad{i}' is refused" in one for i, one in enumerate(explorer.problems))
    assert all(one.isprintable() for one in explorer.problems)


@trap
def an_archive_of_arrays_stored_and_compressed(folder):
    values = np.zeros((1_000_000, 100), np.float32)
    values[-1] = 1
    np.savez(folder / "stored.npz", w=values)
    np.savez_compressed(folder / "packed.npz", w=values)
    del values
    yield
    stored, packed = (tnp.weights(folder / f"{name}.npz")["w"] for name in ("stored", "packed"))
    assert stored.nbytes == packed.nbytes == 400_000_000
    before = num_read()
    assert stored.to_numpy((-1, slice(2))).tolist() == [1, 1]
    assert num_read() - before < 20_000
    assert "compressed" in packed.note
    with pytest.raises(tnp.TooLargeError, match="unpack the file first"):
        packed.to_numpy((-1, slice(2)))


# P: pickles.


def canary(folder: Path) -> bytes:
    """Return opcodes of a pickle that import a module of its folder, run a command, and leave None."""
    command = b"c" + os.name.encode() + b"\nsystem\n" + text(f"echo > '{folder / 'sang'}'") + b"\x85R0"
    return command + b"ccanary\nsing\n0N"


def with_canary(folder: Path) -> bytes:
    return named(tensor())[:-1] + text("bad") + canary(folder) + b"s."


def told(explorer: Any) -> str:
    return "\n".join(explorer.problems)


WANTED = f"it wants to import '{os.name}.system'"


@trap
def a_pickle_that_runs_a_command(folder):
    pickled = with_canary(folder)
    written(folder / "zip.pt", pickled)
    written_legacy(folder / "legacy.pt", pickled, pickle.dumps(["0"], 2))
    (folder / "raw.pt").write_bytes(pickled)
    (folder / "text.pt").write_bytes(f"ccanary\nsing\n(Vecho > {folder / 'sang'}\ntR.".encode())
    with tarfile.open(folder / "tar.pt", "w") as archive:
        for name in ("pickle", "tensors", "storages", "sys_info"):
            member = tarfile.TarInfo(name)
            member.size = len(pickled)
            archive.addfile(member, io.BytesIO(pickled))
    yield
    for name in ("zip.pt", "legacy.pt"):
        explorer = tnp.weights(folder / name)
        assert explorer["w"].to_numpy().tolist() == [1]
        assert WANTED in told(explorer)
        assert "'canary.sing'" in told(explorer)
    for name in ("raw.pt", "text.pt", "tar.pt"):
        refused(folder / name, "")


@trap
def a_distributed_checkpoint_whose_metadata_runs_a_command(folder):
    there = save({"w": torch.ones(2, 3)}, folder / "dcp")
    data = (there / ".metadata").read_bytes()
    assert (data[:1], data[2:3]) == (b"\x80", b"\x95")
    # In the place of the frame's length: the command comes before all else.
    (there / ".metadata").write_bytes(data[:2] + canary(folder) + b"0" + data[11:])
    yield
    explorer = tnp.weights(there)
    assert explorer["w"].to_numpy().sum() == 6
    assert "system" in told(explorer)


@trap
def a_distributed_checkpoint_whose_value_runs_a_command(folder):
    there = save({"w": torch.ones(2, 3), "step": argparse.Namespace(a=1)}, folder / "dcp")
    (items,) = there.glob("*.distcp")
    data = items.read_bytes()
    assert data.count(b"cargparse\nNamespace\n") == 1
    # As long as before, so that all else stays where it is.
    items.write_bytes(data.replace(b"cargparse\nNamespace\n", b"ccanary\nsing_a_song\n"))
    yield
    explorer = tnp.weights(there)
    assert explorer["w"].to_numpy().sum() == 6
    assert "canary.sing_a_song" in repr(dict(explorer.metadata)) + told(explorer)


@trap
def whole_modules_namespaces_and_numbers_of_numpy(folder):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    saved = {"model": model, "args": argparse.Namespace(lr=0.1, w=torch.ones(2)), "best": np.float64(0.5)}
    torch.save(saved, folder / "x.pt")
    torch.save(saved, folder / "old.pt", _use_new_zipfile_serialization=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(model).save(folder / "script.pt")
    yield
    for name in ("x.pt", "old.pt"):
        explorer = tnp.weights(folder / name)
        assert {f"model.{key}" for key in model.state_dict()} <= set(explorer)
        assert explorer["args.w"].to_numpy().tolist() == [1, 1]
        assert "argparse.Namespace" in told(explorer)
        assert np.array_equal(explorer["model.0.weight"].to_numpy(), model[0].weight.detach().numpy())
    assert np.array_equal(tnp.weights(folder / "script.pt")["0.bias"].to_numpy(), model[0].bias.detach().numpy())


@trap
def an_old_torch_file_larger_than_memory(folder):
    numel = 10_000_000_000
    heads = [pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    pickled = named(tensor(numel=numel, shape=numel))
    data = b"".join([*heads, pickled, pickle.dumps(["0"], 2), struct.pack("<Q", numel)])
    path = sparse(folder / "x.pt", data, 4 * numel)
    yield
    before = num_read()
    entry = tnp.weights(path)["w"]
    assert entry.nbytes == 4 * numel
    assert entry.to_numpy(slice(-3, None)).tolist() == [0, 0, 0]
    assert num_read() - before < 3_000_000


@trap
def a_bomb_that_says_it_is_small(folder):
    # Without the time of now, whose bytes may be those of the size.
    pickled, storage = zipfile.ZipInfo("x/data.pkl"), zipfile.ZipInfo("x/data/0")
    with zipfile.ZipFile(folder / "x.pt", "w") as archive:
        archive.writestr(pickled, named(tensor(numel=1000, shape=1000)), zipfile.ZIP_STORED)
        archive.writestr(storage, bytes(2**29), zipfile.ZIP_DEFLATED, 1)
    data = (folder / "x.pt").read_bytes()
    (folder / "lie.pt").write_bytes(data.replace(struct.pack("<I", 2**29), struct.pack("<I", 4000)))
    with zipfile.ZipFile(folder / "pickle.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x/data.pkl", bytes(2**29))
    yield
    for name in ("x.pt", "lie.pt"):
        entry = tnp.weights(folder / name)["w"]
        assert entry.problem == "its storage is compressed"
    refused(folder / "pickle.pt", "cannot be looked through: its data.pkl is compressed")


@trap
def readers_that_run_pickles_are_never_called(folder):
    tree = {"w": torch.ones(2), "step": 3}
    torch.save(tree, folder / "zip.pt")
    torch.save(tree, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    there = save(tree, folder / "dcp")

    def called(*_: Any, **__: Any) -> Any:
        raise AssertionError("torch has read a file")

    torch.load = torch._C.PyTorchFileReader = called
    dcp.FileSystemReader.read_metadata = dcp.FileSystemReader.read_data = called
    pickle.load = pickle.loads = pickle.Unpickler = called
    yield
    for path in (folder / "zip.pt", folder / "legacy.pt", there):
        explorer = tnp.weights(path)
        assert explorer["w"].to_numpy().tolist() == [1, 1]
        assert explorer.metadata["step"] == 3
        assert explorer.scan()["w"].mean == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAPS)
@in_fork
def test_a_hostile_or_odd_file_does_no_harm(tmp_path, name):
    """Not to the process, nor to its memory, nor by what it says."""
    (tmp_path / "canary.py").write_text(f"open({str(tmp_path / 'sang')!r}, 'w')")
    sys.path.insert(0, str(tmp_path))
    if hasattr(signal, "setitimer"):
        # Of the processor; what hangs without it is ended by `Forked`.
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT_S)
    watch, steps = Watch(tmp_path), TRAPS[name](tmp_path)
    next(steps)
    if sys.platform == "linux":
        limit_memory(NBYTES)
    is_left = True
    while is_left:
        watch.is_on = not watch.is_on
        is_left = next(steps, steps) is not steps
    watch.is_on = False
    assert watch.seen == [], watch.seen
    assert not (tmp_path / "sang").exists()
    assert "canary" not in sys.modules


@in_fork
def test_what_a_trap_would_do_is_noticed(tmp_path):
    """A pickle that is run, an import, a file that is mapped or written to, and memory."""
    sys.path.insert(0, str(tmp_path))
    (tmp_path / "canary.py").write_text("def sing(): pass")
    watch = Watch(tmp_path)
    watch.is_on = True
    pickle.loads(b"\x80\x02" + canary(tmp_path) + b".")
    np.memmap(tmp_path / "canary.py")
    (tmp_path / "x").write_text("")
    watch.is_on = False
    noted = {event for event, _ in watch.seen}
    assert {"import", "os.system", "pickle.find_class", "mmap.__new__", "open"} <= noted, noted
    assert (tmp_path / "sang").exists()
    if sys.platform == "linux":
        limit_memory(NBYTES)
        with pytest.raises(MemoryError):
            np.ones(2 * NBYTES, np.uint8)
