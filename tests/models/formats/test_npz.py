"""`.npz`: stored arrays are read where they lie, compressed ones by streaming, and a bad one hides no other."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import in_fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_limit import limit_memory, on_linux
from test_npy import described, headed, saved

import tensornp as tnp
from tensornp.core.values.stats import fast
from tensornp.models.entries import in_file

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
            assert entry.stats() == tnp.stats(native)
            assert eval(entry.code, {"numpy": np}).shape == entry.shape
            assert entry._source.file.is_stream == (kind == "compressed")
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


def test_a_part_of_a_compressed_array_takes_what_lies_before_it(tmp_path, monkeypatch):
    """Listing inflates the header, and the first rows little more."""
    made: list[int] = []

    decompressobj = zlib.decompressobj

    class Counting:
        def __init__(self, *args: Any) -> None:
            self._inner = decompressobj(*args)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def decompress(self, *args: Any) -> bytes:
            piece = self._inner.decompress(*args)
            made.append(len(piece))
            return piece

    array = np.arange(1_000_000.0).reshape(1000, 1000)
    np.savez_compressed(tmp_path / "x.npz", w=array)
    monkeypatch.setattr("tensornp.models.files.deflate.zlib.decompressobj", Counting)
    entry = tnp.weights(tmp_path / "x.npz")["w"]
    assert sum(made) == 128
    made.clear()
    assert np.array_equal(entry.to_numpy((slice(2, 4), 5)), array[2:4, 5])
    assert sum(made) < 128 + 4 * 8000
    made.clear()
    assert np.array_equal(entry.to_numpy(), array)
    assert sum(made) == array.nbytes + 128


def test_a_bad_member_hides_no_other(tmp_path):
    """Each has a sentence of its own."""
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
            "'no': it does not begin as NumPy's files do", "'none': it does not begin as NumPy's files do",
            "'object': its elements are Python objects in a pickle, which is not run",
            "'lies': its shape (1000000000000,) of 'float32' needs 4,000,000,000,000 bytes, and 8 follow its header",
        ]  # fmt: skip


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_arrays_by_what_they_begin_with(tmp_path, kind):
    """As NumPy takes them: the ending is no part of the name, unless another member has just that name."""
    members = {
        "a.npy": saved(np.zeros(2)), "a": saved(np.ones(3)), "b": saved(np.arange(4)), "c": b"text", "d.npy": b"text",
        "e.npy": saved(np.ones(1)), "e.npy.npy": saved(np.zeros(1)),
    }  # fmt: skip
    explorer = tnp.weights(archive(tmp_path / "x.npz", members, kind))
    assert list(explorer) == ["a.npy", "a", "b", "d", "e", "e.npy.npy"]
    assert explorer.problems == ["its member 'c' is no array", "'d': it does not begin as NumPy's files do"]
    with np.load(tmp_path / "x.npz") as library:
        for name in explorer.keys() - {"d"}:
            assert np.array_equal(explorer[name].to_numpy(), library[name])
            assert np.array_equal(eval(explorer[name].code, {"numpy": np}), library[name])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_cannot_be_told_apart_are_not_read(tmp_path):
    """Two of one name; two that share their bytes; other methods of compression."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a.npy", saved(np.ones(2)))
        made.writestr("a.npy", saved(np.zeros(2)))
        made.writestr("b.npy", saved(np.ones(3)))
        made.writestr("c.npy", saved(np.ones(3)), zipfile.ZIP_BZIP2)
    explorer = tnp.weights(path)
    assert explorer["a"].problem == "its member is there more than once"
    assert explorer["b"].to_numpy().tolist() == [1, 1, 1]
    assert explorer["c"].problem == "its member is compressed by method 12, which is not read"
    archive(path, {"a.npy": saved(np.ones(200)), "b.npy": saved(np.ones(200))})
    data = bytearray(path.read_bytes())
    first = data.find(b"PK\x01\x02")
    second = data.find(b"PK\x01\x02", first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)
    assert [entry.problem for entry in tnp.weights(path).values()] == ["", "its member overlaps another one"]


def test_an_empty_archive_is_one(tmp_path):
    """As NumPy writes it."""
    np.savez(tmp_path / "x.npz")
    assert len(tnp.weights(tmp_path / "x.npz")) == 0


def test_a_bomb_is_told_by_its_sizes(tmp_path):
    """What deflate cannot have made is refused, and what it did not make ends the reading."""
    path = archive(tmp_path / "x.npz", {"w.npy": saved(np.zeros(10_000))}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    place = data.find(b"PK\x01\x02") + 24
    assert struct.unpack_from("<I", data, place) == (80_128,)
    struct.pack_into("<I", data, place, 2**31)
    path.write_bytes(data)
    assert "would become 2,147,483,648 bytes of" in tnp.weights(path)["w"].problem
    struct.pack_into("<I", data, place, 70_000)
    path.write_bytes(data)
    assert "needs 80,000 bytes, and 69,872 follow" in tnp.weights(path)["w"].problem


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
        with pytest.raises(tnp.CheckpointError, match=r"do not give their checksum|cannot be inflated|end before byte"):
            use()
    assert entry.to_numpy(slice(0, 5)).shape == (5,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_damaged_stored_bytes_are_no_values(tmp_path, order):
    """Where all are asked for, as NumPy has it; a window is given, and what is not damaged."""
    arrays = {name: np.asarray(np.random.default_rng(0).random((500, 400)), order=order) for name in "ab"}
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    data = bytearray(path.read_bytes())
    data[1_000_000] ^= 1
    path.write_bytes(data)
    explorer = tnp.weights(path)
    assert (explorer["b"].to_numpy() == arrays["b"]).all()
    with pytest.raises(tnp.CheckpointError, match=r"'.*x.npz' has stored bytes, from byte \d+ on, that do not give"):
        explorer["a"].to_numpy()
    assert (explorer["a"].to_numpy(slice(0, 2)) == arrays["a"][:2]).all()


def test_a_file_that_changes_is_not_read(tmp_path):
    """Compressed or not."""
    for kind, save in SAVERS.items():
        save(tmp_path / f"{kind}.npz", w=np.random.default_rng(0).standard_normal(1000))
        entry = tnp.weights(tmp_path / f"{kind}.npz")["w"]
        os.truncate(tmp_path / f"{kind}.npz", 3000)
        for use in (entry.to_numpy, entry.stats):
            with pytest.raises(tnp.ChangedFileError, match="shrank from"):
                use()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@given(put=st.binary(max_size=6), at=st.integers(0, 2000), cut=st.integers(0, 6))
@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_in_the_file_ends_in_a_sentence(tmp_path, compression, put, at, cut):
    """Bytes are put in, and others are cut out, anywhere."""
    path = tmp_path / "x.npz"
    made = {"a.npy": saved(np.arange(6).reshape(2, 3)), "b.npy": saved(np.asfortranarray(np.ones((3, 3), ">f4")))}
    data = archive(path, made, compression).read_bytes()
    at %= len(data)
    path.write_bytes(data[:at] + put + data[at + cut :])
    try:
        for entry in tnp.weights(path).values():
            if not entry.problem:
                entry.to_numpy()
    except tnp.TensornpError as error:
        assert str(error)


@pytest.mark.slow
@on_linux
@in_fork
def test_a_bomb_takes_no_memory():
    """A gigabyte of zeros in a megabyte is listed, read in parts, and counted block by block."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made, made.open("w.npy", "w") as member:
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<f4", "fortran_order": False, "shape": (200_000_000,)}
            )
            member.write(header.getvalue())
            for _ in range(100):
                member.write(bytes(8_000_000))
        tnp.stats(np.ones(300_000, np.float32))
        limit_memory(150_000_000)
        entry = tnp.weights(path)["w"]
        assert entry.nbytes == 800_000_000
        assert entry.to_numpy(slice(3_000_000, 3_000_002)).tolist() == [0, 0]
        assert entry.stats().zeros == 200_000_000


@pytest.fixture
def close_marks(monkeypatch):
    """Have places be kept every thousand bytes, four of them, and nothing be read whole."""
    monkeypatch.setattr(in_file, "_MAX_WHOLE_NBYTES", -1)


@pytest.mark.parametrize("name", ["w", "turned", "big", "zeros", "flags", "number", "empty"])
def test_values_that_are_inflated_some_at_a_time_are_those_of_numpy(tmp_path, close_marks, name):
    """In any order of boxes, of several threads, and whoever reads them block by block."""
    made = arrays()[name]
    np.savez_compressed(tmp_path / "x.npz", **{name: made})
    entry = tnp.weights(tmp_path / "x.npz")[name]
    values = entry._values()
    g = np.random.default_rng(1)

    def box_of(_: int) -> None:
        low = [int(g.integers(0, n + 1)) for n in made.shape]
        box = tuple(slice(a, int(g.integers(a, n + 1))) for a, n in zip(low, made.shape, strict=True))
        assert np.array_equal(tnp.to_numpy(values.read_box(box)), made[box])

    for number in range(60):
        box_of(number)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(box_of, range(60)))
    native = made.astype(made.dtype.newbyteorder("="))
    assert tnp.stats(values).sum == tnp.stats(np.ascontiguousarray(native)).sum
    assert tnp.compare(entry, native).same_bits
    if made.dtype != bool and made.size:
        assert tnp.locate(values, "max").indices == tnp.locate(native, "max").indices


def test_what_cannot_be_inflated_says_so_each_time(tmp_path, close_marks):
    """A byte that was changed: the first values are read, and nothing that follows it, however often."""
    made = np.random.default_rng(0).standard_normal(20_000)
    np.savez_compressed(tmp_path / "x.npz", w=made)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "x.npz").write_bytes(data)
    values = tnp.weights(tmp_path / "x.npz")["w"]._values()
    for _ in range(3):
        assert np.array_equal(tnp.to_numpy(values.read_box((slice(0, 10),))), made[:10])
        with pytest.raises(tnp.CheckpointError, match=r"inflated|checksum|end before"):
            values.read_box((slice(19_000, 20_000),))
    with pytest.raises(tnp.CheckpointError):
        tnp.compare(tnp.weights(tmp_path / "x.npz")["w"], made)


@pytest.mark.slow
@in_fork
def test_a_compressed_array_of_64_mib_is_compared_in_less_than_32():
    """And located, and counted, whichever way it lies."""
    import tempfile
    import tracemalloc

    with tempfile.TemporaryDirectory() as folder:
        made = np.zeros((4096, 4096), np.float32)
        made[4000, 7] = 3
        np.savez_compressed(Path(folder) / "x.npz", a=made, f=np.asfortranarray(made[:1024]))
        part = made[:1024].copy()
        del made
        explorer = tnp.weights(Path(folder) / "x.npz")
        uses = {
            "compare": lambda: tnp.compare(explorer["a"], explorer["a"]).same_bits,
            "compare turned": lambda: tnp.compare(explorer["f"], part).same_bits,
            "locate": lambda: tnp.locate(explorer["a"]._values(), "max").indices[0] == (4000, 7),
            "stats": lambda: tnp.stats(explorer["a"]._values()).max == 3,
            "models": lambda: tnp.compare(explorer.find("a"), explorer.find("a")).equal,
        }
        # What numba takes is not told of the file.
        fast.load()
        for name, use in uses.items():
            tracemalloc.start()
            assert use(), name
            assert tracemalloc.get_traced_memory()[1] < 32 * 2**20, name
            tracemalloc.stop()


@pytest.mark.slow
def test_an_archive_of_more_members_than_the_old_end_record_counts_is_read(tmp_path):
    """Its end tells them in 64 bits."""
    data = saved(np.zeros(1, np.int8))
    explorer = tnp.weights(archive(tmp_path / "x.npz", {f"{i}.npy": data for i in range(2**16 + 1)}))
    assert len(explorer) == 2**16 + 1


def test_members_that_are_no_arrays_are_never_called_equal(tmp_path):
    """They are not read: nobody knows whether they are."""
    for name, text in (("a.npz", "one"), ("b.npz", "two")):
        np.savez(tmp_path / name, w=np.ones(3))
        with zipfile.ZipFile(tmp_path / name, "a") as archive:
            archive.writestr("notes.txt", text)
    found = tnp.compare(tmp_path / "a.npz", tmp_path / "b.npz")
    assert not found.equal
    assert found._not_listed == ("both: its member 'notes.txt' is no array",)
