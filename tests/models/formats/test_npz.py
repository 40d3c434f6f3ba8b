"""`.npz`: stored arrays are read where they lie, compressed ones as a whole, and a bad one hides no other."""

from __future__ import annotations

import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_npy import described, headed, saved

import tensornp as tnp

SAVERS = {"stored": np.savez, "compressed": np.savez_compressed}


def arrays() -> dict[str, Any]:
    g = np.random.default_rng(0)
    return {
        "w": g.standard_normal((40, 50)).astype(np.float32), "turned": np.asfortranarray(g.standard_normal((30, 20))),
        "big": np.arange(60, dtype=">i4").reshape(3, 4, 5), "flags": np.array([True, False]), "number": np.array(2.5),
        "empty": np.zeros((0, 3)), "a/b.c": np.arange(3), "zeros": np.zeros(100_000, np.float16),
    }  # fmt: skip


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


@pytest.mark.parametrize("kind", SAVERS)
def test_the_values_are_those_of_numpy(tmp_path, kind):
    """Whole, in parts, and their statistics, by whatever engine."""
    path, made = tmp_path / "x.npz", arrays()
    SAVERS[kind](path, **made)
    explorer = tnp.weights(path)
    assert list(explorer) == list(made)
    assert explorer.problems == []
    with np.load(path) as library:
        for name, entry in explorer.items():
            expected = library[name]
            for index in (..., *([0, slice(None, None, -3), (..., slice(1, 3))] if expected.size > 1 else [])):
                assert np.array_equal(entry.to_numpy(index), expected[index])
            native = expected.astype(expected.dtype.newbyteorder("="), order="K")
            assert entry.to_numpy().dtype == native.dtype
            told, own = entry.stats(), tnp.stats(native)
            assert (told.count, told.max, told.std) == (own.count, own.max, pytest.approx(own.std, nan_ok=True))
            assert eval(entry.code, {"numpy": np}).shape == entry.shape
            assert entry._source.file.is_packed == (kind == "compressed")
    with ThreadPoolExecutor(2) as pool:
        assert dict(explorer.scan()) == dict(explorer.scan(pool)) == {n: e.stats() for n, e in explorer.items()}


def test_a_compressed_array_says_what_it_costs(tmp_path):
    """The bytes of the file, not those of the array."""
    np.savez_compressed(tmp_path / "x.npz", zeros=np.zeros(100_000))
    entry = tnp.weights(tmp_path / "x.npz")["zeros"]
    (extent,) = entry.extents
    assert extent.nbytes < 1000 < entry.nbytes == 800_000
    assert entry.plan(slice(3)) == (extent.nbytes, 1, (3,))
    assert entry.note.startswith("compressed ")


def test_a_bad_member_hides_no_other(tmp_path):
    """Each reason has a sentence of its own."""
    good = saved(np.arange(3))
    members = {
        "good.npy": good, "text.txt": b"hello", "short.npy": good[:-1], "no.npy": b"abc", "none.npy": b"",
        "object.npy": saved(np.array([None])), "lies.npy": headed(described(shape="(1000000000000,)"), bytes(8)),
    }  # fmt: skip
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        explorer = tnp.weights(archive(tmp_path / "x.npz", members, compression))
        assert list(explorer) == ["good", "short", "no", "none", "object", "lies"]
        assert explorer["good"].to_numpy().tolist() == [0, 1, 2]
        assert explorer.problems == [
            "its member 'text.txt' is no array",
            "'short': its shape (3,) of 'int64' needs 24 bytes, and 23 follow its header",
            "'no' and 1 more: it does not begin as NumPy's files do",
            "'object': its elements are Python objects in a pickle, which is not run",
            "'lies': its shape (1000000000000,) of 'float32' needs 4,000,000,000,000 bytes, and 8 follow its header",
        ]  # fmt: skip


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_read(tmp_path, method):
    """As `numpy.load` reads them."""
    path = archive(tmp_path / "x.npz", {"w.npy": saved(np.arange(9))}, method)
    assert tnp.weights(path)["w"].to_numpy(slice(2, 4)).tolist() == [2, 3]


@pytest.mark.parametrize(("nbytes", "says"), [(2**26, "damaged compressed"), (70_000, "needs 80,000 bytes")])
def test_wrong_sizes_of_compressed_arrays_are_refused(tmp_path, nbytes, says):
    path = archive(tmp_path / "x.npz", {"w.npy": saved(np.zeros(10_000))}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.find(b"PK\x01\x02") + 24, nbytes)
    path.write_bytes(data)
    with pytest.raises((tnp.CheckpointError, tnp.NoDataError), match=says):
        tnp.weights(path)["w"].to_numpy()


@pytest.mark.parametrize("damage", ["checksum", "bytes", "cut"])
def test_damaged_compressed_bytes_are_no_values(tmp_path, damage):
    """They end in a sentence, when they are read."""
    g = np.random.default_rng(0)
    path = archive(tmp_path / "x.npz", {"w.npy": saved(g.integers(0, 9, 100_000))}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    directory = data.find(b"PK\x01\x02")
    if damage == "checksum":
        data[directory + 16] ^= 1
    elif damage == "bytes":
        data[2000:2100] = b"\xff" * 100
    else:
        (packed,) = struct.unpack_from("<I", data, directory + 20)
        struct.pack_into("<I", data, directory + 20, packed - 500)
    path.write_bytes(data)
    entry = tnp.weights(path)["w"]
    for use in (entry.to_numpy, entry.stats):
        with pytest.raises(tnp.CheckpointError, match="compressed bytes"):
            use()
