"""`.npy` and `.npz`: values are NumPy's, only the bytes of an index are read, and no header is believed or run."""

from __future__ import annotations

import io
import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from counted_reads import counted_reads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensornp as tnp

NUMBERS = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 >i2 >u4 >i8 >f2 >f4 >f8 >c8".split()
FORMATS = [(1, 0), (2, 0), (3, 0)]


def saved(array: Any, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version)
    return file.getvalue()


def headed(header: str | bytes, data: bytes = b"", version: bytes = b"\x01\x00", length: int | None = None) -> bytes:
    """Return a file of this header, whatever it says."""
    text = header.encode() if isinstance(header, str) else header
    count = len(text) if length is None else length
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", count) + text + data


def described(descr: str = "'<f4'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def opened(folder: Path, data: bytes) -> Any:
    path = folder / "x.npy"
    path.write_bytes(data)
    return tnp.weights(path)


@pytest.mark.slow
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_values_are_those_of_numpy(tmp_path, dtype, order, version):
    """With their statistics, and the dtype as this machine has it."""
    g = np.random.default_rng(0)
    array = np.asarray(g.integers(0, 90, (5, 6, 7)).astype(dtype), order=order)
    explorer = opened(tmp_path, saved(array, version))
    entry = explorer["array"]
    expected = np.load(tmp_path / "x.npy")
    assert (entry.shape, entry.dtype, entry.nbytes) == (array.shape, array.dtype.name, array.nbytes)
    assert explorer.totals == (210, 210, array.nbytes)
    assert explorer.problems == []
    for index in (..., 2, (slice(None, None, -2), 1), (..., slice(1, 5, 3)), (None, 4, ..., -1)):
        found = entry.to_numpy(index)
        assert np.array_equal(found, expected[index])
        assert found.dtype == array.dtype.newbyteorder("=")
        assert found.dtype.isnative
    assert entry.stats() == tnp.stats(array.astype(array.dtype.newbyteorder("="), order="K"))
    assert ("other byte order" in entry.note, "Fortran order" in entry.note) == (dtype.startswith(">"), order == "F")
    assert np.array_equal(eval(entry.code, {"numpy": np}), expected)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1)])
def test_single_numbers_and_empty_arrays(tmp_path, shape):
    """Are arrays like any other."""
    entry = opened(tmp_path, saved(np.full(shape, 2.5)))["array"]
    assert entry.to_numpy().shape == shape
    assert np.array_equal(entry.to_numpy(), np.full(shape, 2.5))
    assert entry.stats().count == np.prod(shape, dtype=int)


def test_only_the_bytes_of_an_index_are_read(tmp_path, monkeypatch):
    """Columns of an array in Fortran order lie together, as rows do of another one."""
    array = np.arange(3_000_000.0).reshape(1000, 3000)
    for order, index in (("C", slice(7, 9)), ("F", (slice(None), slice(7, 9)))):
        entry = opened(tmp_path, saved(np.asarray(array, order=order)))["array"]
        read = counted_reads(monkeypatch)
        assert np.array_equal(entry.to_numpy(index), array[index])
        assert sum(read) == entry.plan(index).nbytes_read == array[index].nbytes
        (extent,) = entry.extents
        assert (extent.nbytes, extent.offset) == (array.nbytes, (tmp_path / "x.npy").stat().st_size - array.nbytes)


ODD = {
    "objects": (np.array([1, "a", None], dtype=object), "object", "Python objects in a pickle, which is not run"),
    "structures": (np.zeros(3, [("a", "f4"), ("b", "i2", (2,))]), "structured", "its elements are structures"),
    "strings": (np.array(["ab", "c"]), "<U2", "its elements are strings"),
    "bytes": (np.array([b"ab", b"c"]), "|S2", "its elements are strings of bytes"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "<M8[D]", "its elements are dates"),
    "times": (np.array([5], "m8[s]"), "<m8[s]", "its elements are times"),
    "bfloat16": (np.ones(3, ml_dtypes.bfloat16), "|V2", "such as those of bfloat16"),
    "float8": (np.ones(3, ml_dtypes.float8_e4m3fn), "|V1", "such as those of bfloat16 and float8"),
    "voids": (np.zeros(3, "V5"), "|V5", "structures, or bytes"),
    "long doubles": (np.zeros(3, np.longdouble), np.dtype(np.longdouble).name, "which not every machine has"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_has_no_numbers_is_listed(tmp_path, name):
    """With the reason why it has no values; a pickle is not run."""
    array, dtype, says = ODD[name]
    if name == "long doubles" and array.itemsize == 8:
        pytest.skip("they are as long as others here")
    explorer = opened(tmp_path, saved(array))
    entry = explorer["array"]
    assert (entry.shape, entry.dtype) == (array.shape, dtype)
    assert says in entry.problem
    assert bool(entry.code) == (name != "objects"), "NumPy refuses a pickle as well"
    assert explorer.problems == [f"'array': {entry.problem}"]
    if name != "objects":
        assert entry.nbytes == array.nbytes
    for use in (entry.to_numpy, entry.stats, entry.plan):
        with pytest.raises(tnp.NoDataError, match="'array' has no values to read: its elements are"):
            use()
    assert "array" in explorer.scan().failed or len(explorer.scan()) == 0


REFUSED = {
    "only the magic": b"\x93NUMPY",
    "no length": b"\x93NUMPY\x01\x00",
    "version 4": headed(described(), bytes(8), b"\x04\x00"),
    "a header past the end": headed(described(), length=9000),
    "a header of 4 GB": headed(b"", version=b"\x02\x00", length=2**32 - 1),
    "a call": headed("__import__('os').mkdir('made')"),
    "a shape that is computed": headed(described(shape="(2**70,)")),
    "nested": headed("[" * 9000),
    "nested signs": headed("-" * 9000 + "1"),
    "nested sums": headed("1" + "+1j" * 3000),
    "a number of 9000 digits": headed(described(shape=f"({'9' * 9000},)")),
    "no header": headed(b""),
    "NUL": headed(b"\0\0"),
    "an escape": headed("{'\\l': 1}"),
    "another literal": headed("[1]"),
    "another key": headed("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"),
    "a dtype that NumPy lacks": saved(np.ones(3, ml_dtypes.float8_e5m2)),
    "a negative size": headed(described(shape="(-1,)"), bytes(8)),
    "a list": headed(described(shape="[2]"), bytes(8)),
    "an order of 1": headed(described(order="1"), bytes(8)),
    "a shape of 10**12": headed(described(shape=f"({10**12},)"), bytes(8)),
    "an endless shape": headed(described(shape=f"({2**62}, {2**62})"), bytes(8)),
    "cut off": saved(np.ones(5))[:-1],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_sound_is_refused(tmp_path, name, monkeypatch):
    """In one sentence, and nothing of it is run; NumPy refuses it too, or would not have the memory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tnp.CheckpointError) as raised:
        opened(tmp_path, REFUSED[name])
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400 + len(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@given(st.integers(0, 200), st.binary(min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_the_file_ends_in_a_sentence(tmp_path, at, put, cut):
    """And what is read is what NumPy reads."""
    data = saved(np.arange(6, dtype=np.int16).reshape(2, 3))
    changed = data[:at] + put + data[at + cut :]
    try:
        entry = opened(tmp_path, changed)["array"]
        found = entry.to_numpy()
    except tnp.TensornpError as error:
        assert str(error)
        return
    assert np.array_equal(found, np.load(io.BytesIO(changed)), equal_nan=True)


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
def test_the_values_of_an_archive_are_those_of_numpy(tmp_path, kind):
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
