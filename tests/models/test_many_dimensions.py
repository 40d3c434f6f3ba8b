"""A tensor of more dimensions than NumPy has: it is listed with the reason, and hides nothing else of its file."""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.render.models.weights import weights_document

NUMPY_MAX = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
DEEP = (1,) * 65
TENSORS = {"ok": torch.arange(2.0), "deep": torch.ones(DEEP)}


def in_safetensors(folder: Path) -> Path:
    save_file(TENSORS, folder / "x.safetensors")
    return folder / "x.safetensors"


def in_float8(folder: Path) -> Path:
    """Codes with scales beside them, which are put together."""
    told = {"deep": torch.ones(DEEP).to(torch.float8_e4m3fn), "deep_scale_inv": torch.ones(DEEP)}
    save_file({"ok": TENSORS["ok"], **told}, folder / "x.safetensors")
    return folder / "x.safetensors"


def in_zip(folder: Path) -> Path:
    torch.save(TENSORS, folder / "x.pt")
    return folder / "x.pt"


def in_legacy(folder: Path) -> Path:
    torch.save(TENSORS, folder / "x.pt", _use_new_zipfile_serialization=False)
    return folder / "x.pt"


def in_dcp(folder: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(dict(TENSORS), checkpoint_id=folder / "x")
    return folder / "x"


def in_npz(folder: Path) -> Path:
    """NumPy writes none itself: an array of one dimension, whose header tells of more."""
    np.save(folder / "deep.npy", np.ones((1,)))
    written = (folder / "deep.npy").read_bytes()
    first = 10 + struct.unpack_from("<H", written, 8)[0]
    text = str({"descr": "<f8", "fortran_order": False, "shape": DEEP}).encode() + b"\n"
    np.savez(folder / "x.npz", ok=np.arange(2.0, dtype=np.float32))
    with zipfile.ZipFile(folder / "x.npz", "a") as archive:
        archive.writestr("deep.npy", written[:8] + struct.pack("<H", len(text)) + text + written[first:])
    return folder / "x.npz"


def in_gguf(folder: Path) -> Path:
    writer = gguf.GGUFWriter(folder / "x.gguf", "llama")
    writer.add_tensor("ok", np.arange(2.0, dtype=np.float32))
    writer.add_tensor("deep", np.ones((1,) * 32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    # More sizes in front of those, which move what comes behind by a multiple of the alignment, 32.
    data, name = (folder / "x.gguf").read_bytes(), b"deep"
    at = data.index(struct.pack("<Q", len(name)) + name + struct.pack("<I", 32)) + 8 + len(name)
    more = struct.pack("<36Q", *(1,) * 36)
    (folder / "x.gguf").write_bytes(data[:at] + struct.pack("<I", 68) + more + data[at + 4 :])
    return folder / "x.gguf"


WRITERS: dict[str, Callable[[Path], Path]] = {
    "safetensors": in_safetensors, "float8 with scales": in_float8, "zip": in_zip, "legacy": in_legacy, "DCP": in_dcp,
    "npz": in_npz, "GGUF": in_gguf,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_tensor_of_too_many_dimensions_is_a_problem_of_its_own(tmp_path, name):
    """It is counted and listed with its shape; the others have their values, and each view is whole."""
    explorer = tnp.weights(WRITERS[name](tmp_path))
    num = 68 if name == "GGUF" else 65
    assert explorer["deep"].shape == (1,) * num
    assert explorer["deep"].problem == f"it has {num} dimensions, and NumPy has {NUMPY_MAX} at most"
    assert any("'deep': it has" in one for one in explorer.problems)
    assert explorer["ok"].to_numpy().tolist() == [0, 1]
    assert explorer.totals.parameters == 3 and "3 elements" in repr(explorer)
    assert "deep" in weights_document(explorer).text() and "deep" in weights_document(explorer).html()
    table = explorer.scan(progress=False)
    assert set(table.failed) >= {"deep"} and table["ok"].sum == 1
    for use in (lambda one: one.to_numpy(), lambda one: one.to_numpy(0), lambda one: one.stats(), tnp.compare):
        with pytest.raises(tnp.NoDataError, match="dimensions"):
            use(explorer["deep"]) if use is not tnp.compare else use(explorer["deep"], explorer["deep"])


def test_an_array_of_as_many_dimensions_as_numpy_has_is_read(tmp_path):
    """Not fewer, for the sake of older ones."""
    np.save(tmp_path / "x.npy", np.full((1,) * NUMPY_MAX, 7.0))
    assert tnp.weights(tmp_path / "x.npy")["array"].to_numpy().tolist() == np.full((1,) * NUMPY_MAX, 7.0).tolist()


def test_a_shape_of_a_hundred_thousand_dimensions_is_shown_in_a_line(tmp_path):
    """It is cut in each view."""
    facts = {"dtype": "F32", "shape": [1] * 100_000, "data_offsets": [0, 4]}
    header = json.dumps({"deep": facts, "ok": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    explorer = tnp.weights(tmp_path / "x.safetensors")
    assert explorer["deep"].problem.startswith("it has 100,000 dimensions")
    assert explorer.totals.parameters == 2
    assert max(map(len, (repr(explorer["deep"]), weights_document(explorer).text()))) < 3000
    assert len(weights_document(explorer).html()) < 30_000
