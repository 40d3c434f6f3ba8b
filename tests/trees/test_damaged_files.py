"""Small files of each format: damaged anywhere before they are listed, and changed in every way afterwards."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from child import in_fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from test_npy import limit_memory
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from watched import Watch

import tensornp as tnp
from tensornp.render.weights import weights_html, weights_text

NBYTES = 100_000_000
"""What a process may take to look at any of these files."""
TIMEOUT_S = 400
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


def torch_quantized(folder: Path) -> tuple[Path, Path]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = (torch.tensor([0.5, 0.25]), torch.tensor([1, 0]), 0, torch.qint8)
        rows = torch.quantize_per_channel(TENSORS["a"], *told)
        torch.save({"a": rows, "b": torch.quantize_per_tensor(TENSORS["a"].T, 0.5, 3, torch.quint8)}, folder / "x.pt")
    return (folder / "x.pt",) * 2


def torch_legacy(folder: Path) -> tuple[Path, Path]:
    torch.save({**TENSORS, "step": 3}, folder / "x.pt", _use_new_zipfile_serialization=False)
    return (folder / "x.pt",) * 2


def dcp_items(folder: Path) -> tuple[Path, Path]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save({**TENSORS, "step": 3}, storage_writer=FileSystemWriter(folder / "dcp"))
    return folder / "dcp", folder / "dcp" / "__0_0.distcp"


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


TOLD: dict[str, Save] = {
    "index": index,
    "torch index": torch_index,
    "config.json": config,
    "DCP metadata": dcp_metadata,
}
"""Those of which the damaged file holds no values."""
VALUES: dict[str, Save] = {
    "safetensors": safetensors, "torch zip": torch_zip, "torch legacy": torch_legacy,
    "torch quantized": torch_quantized, "DCP items": dcp_items, "npy": npy, "npz": npz,
    "npz compressed": npz_compressed, "GGUF": gguf_file,
}  # fmt: skip
FORMATS = TOLD | VALUES
ODD = [b"\xff" * 4, b"\xff" * 8, b"\0" * 8, b"/../", b"\\u202e", b"\x1b[2J", b"1e999", b"[" * 200, b"9" * 5000]
ODD += [struct.pack("<Q", 2**bits) for bits in (31, 32, 40, 62, 63)]
EDITS = st.tuples(
    st.floats(0, 1, exclude_max=True), st.integers(0, 9), st.one_of(st.binary(max_size=9), st.sampled_from(ODD))
)  # fmt: skip
"""Where, in parts of the whole, how many bytes are taken out, and what is put in."""


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, cut, put in edits:
        at = int(place * len(data))
        data = data[:at] + put + data[at + cut :]
    return data


def looked_at(path: Path) -> None:
    """Do all that one may do with a checkpoint; what is wrong with it ends in one sentence."""
    try:
        explorer = tnp.weights(path)
    except tnp.TensornpError as error:
        assert str(error).isprintable()
        return
    assert all(one.isprintable() for one in explorer.problems)
    assert all(line.isprintable() for line in weights_text(explorer).split("\n"))
    weights_html(explorer)
    dict(explorer.metadata)
    assert explorer.totals.nbytes >= 0
    for entry in explorer.values():
        for use in (lambda one: one.to_numpy((0, ...)), lambda one: one.to_numpy(), lambda one: one.stats()):
            try:
                use(entry)
            except tnp.TensornpError as error:
                assert str(error).isprintable()


@pytest.mark.parametrize("name", FORMATS)
@in_fork
def test_bytes_that_are_changed_anywhere_do_no_harm(tmp_path, name):
    """No crash, no hang, no import, nothing run or written, no 100 MB: a sentence, or what is sound."""
    if hasattr(signal, "alarm"):
        signal.alarm(TIMEOUT_S)
    path, file = FORMATS[name](tmp_path)
    data = file.read_bytes()
    looked_at(path)
    watch = Watch(tmp_path)
    if sys.platform == "linux":
        limit_memory(NBYTES)

    @settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(EDITS, min_size=1, max_size=3), st.one_of(st.just(1.0), st.floats(0, 1)))
    def check(edits: list[tuple[float, int, bytes]], kept: float) -> None:
        changed = edited(data, edits)
        file.write_bytes(changed[: int(kept * len(changed))])
        watch.is_on = True
        looked_at(path)
        watch.is_on = False
        assert watch.seen == [], watch.seen

    check()


def shrink(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def grow(file: Path) -> None:
    with open(file, "ab") as there:
        there.write(bytes(100))


def rewrite(file: Path) -> None:
    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(1, 1))


def replace(file: Path) -> None:
    (file.parent / "new").write_bytes(file.read_bytes())
    os.utime(file.parent / "new", ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    os.replace(file.parent / "new", file)


def remove(file: Path) -> None:
    file.unlink()


def pipe(file: Path) -> None:
    # What is still there keeps its inode, by which the pipe is told from it.
    file.rename(file.parent / "old")
    os.mkfifo(file)


CHANGES = {
    shrink: "shrank from", grow: "was written to", rewrite: "was written to", replace: "was replaced",
    remove: "cannot be opened any more", pipe: "was replaced",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", VALUES)
def test_a_file_that_changes_after_it_was_listed_is_not_read(tmp_path, name, change):
    """Each value, figure and scan says so, and none is of the other file; to open it anew does."""
    if change is pipe and not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    path, file = VALUES[name](tmp_path)
    explorer = tnp.weights(path)
    assert [entry.to_numpy().size for entry in explorer.values()] == [entry.numel for entry in explorer.values()]
    change(file)
    for entry in explorer.values():
        for use in (entry.to_numpy, lambda entry=entry: entry.to_numpy(0), entry.stats):
            with pytest.raises(tnp.ChangedFileError, match=CHANGES[change]):
                use()
    table = explorer.scan()
    assert (len(table), set(table.failed)) == (0, set(explorer))
    assert all(CHANGES[change] in why for why in table.failed.values())
    looked_at(path)
