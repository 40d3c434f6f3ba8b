"""GGUF: names, shapes, metadata and values are those of the library `gguf`, and no file ends the process."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from counted_reads import counted_reads
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian
from gguf.quants import dequantize, quantize

import tensornp as tnp
from tensornp.models.formats.gguf import PLAIN, QUANTIZED

KNOWN = {one.name: one for one in GGMLQuantizationType}
"""The types that the installed library has."""


def is_read(name: str) -> bool:
    """Return whether the installed library has values of a type."""
    try:
        dequantize(np.zeros(GGML_QUANT_SIZES[KNOWN[name]][1], np.uint8), KNOWN[name])
    except NotImplementedError:
        return False
    return True


READ = sorted(codec.name for codec in QUANTIZED.values() if codec.name in KNOWN and is_read(codec.name))


def codes_of(name: str, num_rows: int, num_blocks: int) -> np.ndarray:
    """Return codes whose scales are no NaN, and whose bits are whatever comes."""
    numel, nbytes = GGML_QUANT_SIZES[KNOWN[name]]
    g = np.random.default_rng(sum(map(ord, name)))
    try:
        return quantize(g.standard_normal((num_rows, num_blocks * numel)).astype(np.float32), KNOWN[name])
    except NotImplementedError:
        # The exponents of 16-bit floats stay small.
        return g.integers(0, 0x40, (num_rows, num_blocks * nbytes), dtype=np.uint8)


def written(
    path: Path, tensors: dict[str, Any], order: GGUFEndian = GGUFEndian.LITTLE, most: int = 0, **keys: Any
) -> Path:
    """Write arrays, or pairs of codes and the name of their type, in files of so many."""
    writer = gguf.GGUFWriter(path, "llama", endianess=order, split_max_tensors=most)
    for key, (kind, value) in keys.items():
        getattr(writer, f"add_{kind}")(key.replace("_", "."), value)
    for name, value in tensors.items():
        array, kind = value if isinstance(value, tuple) else (value, None)
        writer.add_tensor(name, array, raw_dtype=KNOWN[kind] if kind else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_the_parts_of_a_file_are_one_model(tmp_path):
    """They are named as llama.cpp splits a file."""
    written(tmp_path / "m.gguf", {f"blk.{i}.weight": np.full((4, 32), i, np.float32) for i in range(5)}, most=2)
    explorer = tnp.weights(tmp_path)
    assert explorer.problems == []
    assert [entry.to_numpy()[0, 0] for entry in explorer.values()] == [0, 1, 2, 3, 4]


def plain() -> dict[str, Any]:
    kinds = (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64)
    return {np.dtype(kind).name: np.arange(-12, 12).astype(kind).reshape(2, 3, 4) for kind in kinds}


def test_the_table_of_types_is_that_of_the_library():
    """Numbers, names and sizes; those without values are those that the library does not dequantize."""
    ours = {number: (codec.name, *codec.packing) for number, codec in QUANTIZED.items()}
    theirs = {int(one): (one.name, *GGML_QUANT_SIZES[one]) for one in GGMLQuantizationType}
    assert {number: facts for number, facts in ours.items() if number in theirs} == {
        number: facts for number, facts in theirs.items() if number not in PLAIN
    }
    names = {number: {"F": "float", "I": "int", "B": "bfloat"}[facts[0][0]] + facts[0].lstrip("BFI")
             for number, facts in theirs.items() if number in PLAIN}  # fmt: skip
    assert names == PLAIN
    assert {"Q4_0", "Q8_0", "Q4_K", "Q6_K", "IQ4_XS"} <= set(READ)


def test_plain_types_are_read_as_any_tensor(tmp_path):
    """In the shape of NumPy."""
    path, made = written(tmp_path / "x.gguf", plain()), plain()
    explorer = tnp.weights(path)
    assert explorer.problems == []
    assert {tensor.name for tensor in gguf.GGUFReader(path).tensors} == set(explorer)
    for name, entry in explorer.items():
        assert (entry.dtype, entry.shape, entry.kind, entry.nbytes) == (name, (2, 3, 4), "tensor", made[name].nbytes)
        assert np.array_equal(entry.to_numpy(), made[name])
        assert np.array_equal(entry.to_numpy((0, slice(None, None, -1), 1)), made[name][0, ::-1, 1])
        assert entry.to_numpy().dtype == made[name].dtype
        assert entry.stats() == tnp.stats(made[name])
    assert explorer.metadata["general.architecture"] == "llama"
    # bfloat16 is widened, as everywhere.
    values = torch.randn(4, 64).bfloat16()
    codes = values.view(torch.uint8).numpy()
    entry = tnp.weights(written(tmp_path / "x.gguf", {"w": (codes, "BF16")}))["w"]
    assert (entry.dtype, entry.shape) == ("bfloat16", (4, 64))
    assert np.array_equal(entry.to_numpy(), values.float().numpy())
    assert np.array_equal(evaluated(entry.code), entry.to_numpy())
    assert entry.stats() == tnp.stats(values)


def evaluated(code: str) -> Any:
    return eval(code, {"gguf": gguf})


@pytest.mark.parametrize("name", READ)
def test_quantized_types_give_what_they_mean(tmp_path, name):
    """The library's values, whole and in parts, and their statistics."""
    codes = codes_of(name, 6, 5)
    expected = dequantize(codes, KNOWN[name])
    stacked = codes.reshape(2, 3, -1)
    path = written(tmp_path / "x.gguf", {"w": (codes, name), "stacked": (stacked, name)})
    explorer = tnp.weights(path)
    entry = explorer["w"]
    library = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert (entry.dtype, entry.shape, entry.nbytes) == (name, expected.shape, codes.nbytes)
    (extent,) = entry.extents
    assert (extent.offset, extent.nbytes) == (library["w"].data_offset, library["w"].n_bytes)
    assert explorer.problems == []
    for index in (
        ..., 3, slice(4, 1, -1), (2, 5), (slice(None), 7), (slice(1, 5, 2), slice(30, 70)),
        (..., slice(None, None, -9)), (None, slice(2), ...), slice(0), (slice(None), slice(3, 3)),
        (slice(None), slice(-1, None)),
    ):  # fmt: skip
        found = entry.to_numpy(index)
        assert found.dtype == np.float32
        assert np.array_equal(found, expected[index], equal_nan=True), index
        assert found.flags.c_contiguous
        assert entry.plan(index).shape == expected[index].shape
    index = (1, slice(None, None, -1), slice(3, None, 11))
    assert np.array_equal(explorer["stacked"].to_numpy(index), expected.reshape(2, 3, -1)[index], equal_nan=True)
    assert entry.stats() == tnp.stats(expected)
    assert np.array_equal(evaluated(entry.code), expected, equal_nan=True)
    assert entry.to_numpy(dtype="float16").dtype == np.float16


@pytest.mark.slow
def test_only_the_blocks_of_an_index_are_read(tmp_path, monkeypatch):
    """Rows of a large weight, and few columns of it."""
    codes = quantize(np.random.default_rng(0).standard_normal((64, 256 * 1000)).astype(np.float32), KNOWN["Q8_0"])
    entry = tnp.weights(written(tmp_path / "x.gguf", {"w": (codes, "Q8_0")}))["w"]
    for index, nbytes in ((slice(4, 6), 2 * 8000 * 34), ((slice(4, 6), slice(40, 60)), 2 * 34), ((63, -1), 34)):
        read = counted_reads(monkeypatch)
        assert entry.to_numpy(index).size
        monkeypatch.undo()
        assert sum(read) == entry.plan(index).nbytes_read == nbytes


@pytest.mark.slow
def test_metadata_is_told_and_long_arrays_are_not(tmp_path):
    """Every type of value; of a vocabulary, how long it is and how it begins."""
    words = [f"word {i}" * (i % 7) for i in range(50_000)]
    path = written(
        tmp_path / "x.gguf", {"w": np.ones(3, np.float32)}, a_text=("string", "hällo"), a_uint8=("uint8", 7),
        a_int8=("int8", -7), a_uint16=("uint16", 700), a_int16=("int16", -700), a_uint32=("uint32", 7),
        a_int32=("int32", -7), a_uint64=("uint64", 2**63), a_int64=("int64", -(2**62)), a_float32=("float32", 0.5),
        a_float64=("float64", 0.1), a_bool=("bool", True), few=("array", [1, 2, 3]),
        many=("array", list(range(1000))), words=("array", words), last=("string", "x" * 2_000_000),
    )  # fmt: skip
    after = written(tmp_path / "y.gguf", {}, words=("array", words), after=("float64", 0.1))
    assert tnp.weights(after).metadata["after"] == 0.1
    with pytest.raises(tnp.CheckpointError, match="or another byte order"):
        tnp.weights(written(tmp_path / "z.gguf", plain(), GGUFEndian.BIG))
    said = tnp.weights(path).metadata
    assert said.pop("last") == "x" * 2_000_000
    assert said == {
        "GGUF.version": 3, "general.architecture": "llama", "a.text": "hällo", "a.uint8": 7, "a.int8": -7,
        "a.uint16": 700, "a.int16": -700, "a.uint32": 7, "a.int32": -7, "a.uint64": 2**63, "a.int64": -(2**62),
        "a.float32": 0.5, "a.float64": 0.1, "a.bool": True, "few": [1, 2, 3], "many": "1,000 int32: 0, 1, 2, …",
        "words": "50,000 strings: '', 'word 1', 'word 2word 2', …",
    }  # fmt: skip


@pytest.mark.slow
def test_listing_is_quick_and_takes_no_library(tmp_path):
    """A vocabulary of 400,000 words, and a body of 40 GB that takes no disk."""
    path = tmp_path / "x.gguf"
    words = b"".join(struct.pack("<Q", 6) + b"%06d" % i for i in range(400_000))
    key = text("words") + struct.pack("<IIQ", 9, 8, 400_000) + words
    shape, count = (2**15, 2**12), 400
    nbytes = shape[0] * shape[1] // 256 * 144
    infos = b"".join(info(f"blk.{i}.w", shape, 12, i * nbytes) for i in range(count))
    path.write_bytes(header(count, 1, key + infos))
    os.truncate(path, -(-path.stat().st_size // 32) * 32 + count * nbytes)
    code = (
        "import sys, time, tensornp as tnp; "
        "import tensornp.models.weights; start = time.process_time(); w = tnp.weights(sys.argv[1]); "
        "took = time.process_time() - start; assert 'gguf' not in sys.modules; print(len(w), took)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    num, took = out.split()
    assert int(num) == count
    assert float(took) < 3
    entry = tnp.weights(path)["blk.399.w"]
    start = time.process_time()
    assert not entry.to_numpy(slice(-4, None)).any()
    assert time.process_time() - start < 3


def test_without_the_library_all_is_listed(tmp_path, monkeypatch):
    """Values of quantized types name the extra that brings it."""
    path = written(tmp_path / "x.gguf", {"w": (codes_of("Q4_K", 2, 2), "Q4_K"), "n": np.arange(3, dtype=np.float32)})
    for name in [name for name in sys.modules if name.split(".")[0] == "gguf"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gguf", None)
    explorer = tnp.weights(path)
    assert (explorer["w"].dtype, explorer["w"].shape, explorer["w"].problem) == ("Q4_K", (2, 512), "")
    assert explorer["n"].to_numpy().tolist() == [0, 1, 2]
    for use in (explorer["w"].to_numpy, explorer["w"].stats):
        with pytest.raises(tnp.MissingLibraryError, match=r"the values of Q4_K need .*'tensornp\[gguf\]'"):
            use()
    table = explorer.scan()
    assert "n" in table
    assert "need the library gguf" in table.failed["w"]


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def info(name: str, sizes: tuple[int, ...], kind: int, offset: int) -> bytes:
    """Return what the header says of a tensor; sizes in GGML's order."""
    return text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


def header(num_tensors: int = 0, num_keys: int = 0, rest: bytes = b"", version: int = 3, data: int = -1) -> bytes:
    """Return a file, with so many bytes after the header if they are told."""
    made = b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys) + rest
    return made if data < 0 else made + bytes(-len(made) % 32 + data)


REFUSED = {
    "only the magic": (b"GGUF", "its header is cut off"),
    "version 1": (header(version=1), "it is of version 1 or"),
    "version 4": (header(version=4), "it is of version 4"),
    "no version": (header(version=0), "it is of version 0"),
    "2**63 tensors": (header(2**63), "9,223,372,036,854,775,808 tensors"),
    "2**63 keys": (header(0, 2**63), "9,223,372,036,854,775,808 keys"),
    "cut off": (header(1), "its header is cut off"),
    "a name of 2**63 bytes": (header(0, 1, struct.pack("<Q", 2**63)), "is cut off"),
    "a text of 2**63 bytes": (header(0, 1, text("a") + struct.pack("<IQ", 8, 2**63)), "is cut off"),
    "an array of 2**63": (header(0, 1, text("a") + struct.pack("<IIQ", 9, 4, 2**63)), "is cut off"),
    "2**63 texts": (header(0, 1, text("a") + struct.pack("<IIQ", 9, 8, 2**63) + text("b") * 9), "is cut off"),
    "a text past the end": (
        header(0, 1, text("a") + struct.pack("<IIQ", 9, 8, 20) + text("b") * 5 + struct.pack("<Q", 2**63) + bytes(99)),
        "is cut off",
    ),
    "an unknown type": (header(0, 1, text("a") + struct.pack("<I", 99)), "a value is of type 99, which is not known"),
    "arrays of arrays": (header(0, 1, text("a") + struct.pack("<IIQ", 9, 9, 1)), "a value is of type 9"),
    "a key twice": (header(0, 2, (text("a") + struct.pack("<IB", 7, 1)) * 2), "its key 'a' is there twice"),
    "alignment 3": (header(0, 1, text("general.alignment") + struct.pack("<II", 4, 3)), "power of two"),
    "alignment 0": (header(0, 1, text("general.alignment") + struct.pack("<II", 4, 0)), "power of two"),
    "a text for alignment": (header(0, 1, text("general.alignment") + struct.pack("<I", 8) + text("32")), "power"),
    "two of one name": (header(2, 0, info("w", (4,), 0, 0) * 2, data=64), "'w' is there twice"),
    "2**32 dimensions": (header(1, 0, text("w") + struct.pack("<I", 2**32 - 1) + bytes(99)), "295 dimensions"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_header_that_is_not_sound_is_refused(tmp_path, name):
    """In one sentence; the library refuses it too, in whatever words."""
    data, says = REFUSED[name]
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    start = time.process_time()
    with pytest.raises(tnp.CheckpointError, match=r"is not a valid GGUF file: ") as raised:
        tnp.weights(path)
    assert time.process_time() - start < 2
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (info("bad", (4,), 99, 0), "its type 99 is not known"),
        (info("bad", (2**40, 2**40), 0, 0), "its bytes would end at"),
        (info("bad", (0, 2**64 - 1), 0, 0), "its shape is too large for any memory"),
        (info("bad", (40,), 0, 32), "its bytes would end at"),
        (info("bad", (4,), 0, 2**63), "its bytes would end at"),
        (info("bad", (40,), 2, 0), "its rows are no blocks of 32, which Q4_0 takes"),
        (info("bad", (), 2, 0), "its rows are no blocks of 32, which Q4_0 takes"),
        (info("bad", (32,), 9, 32), "it is of Q8_1, of which the library gguf has no values"),
        (info("bad", (4,), 0, 48), "its bytes overlap those of another one"),
    ],
)
def test_a_bad_tensor_hides_no_other(tmp_path, told, says):
    """It is listed with what is wrong."""
    path = tmp_path / "x.gguf"
    path.write_bytes(header(2, 0, told + info("good", (5,), 0, 32), data=80))
    explorer = tnp.weights(path)
    assert explorer["good"].to_numpy().tolist() == [0, 0, 0, 0, 0]
    bad = next(entry for entry in explorer.values() if entry.problem)
    assert says in bad.problem
    assert explorer.problems == [f"'{bad.name}': {bad.problem}"]
    for use in (bad.to_numpy, bad.stats, bad.plan):
        with pytest.raises(tnp.NoDataError):
            use()
