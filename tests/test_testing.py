"""What authors of kinds and formats are given: a sound one passes, and each broken promise is told."""

from __future__ import annotations

import json
import math
import pickle
import zlib

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.fronts.ipython.completion import _paths
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.formats import table
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.table import Format
from tensornp.testing import check_format, check_kind

MAGIC = b"TNS1"
SUFFIX = ".tns"
ARRAYS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4), "b.c": np.array([1, -2, 3], dtype=np.int16),
    "flag": np.array(True), "none": np.empty((0, 3)), "odd": np.array([np.nan, np.inf, -0.0]),
}  # fmt: skip


def saved(path):
    """Write a file of a made-up format: a header in JSON, and the elements in their order."""
    told, data = [], b""
    for name, array in ARRAYS.items():
        told.append([name, list(array.shape), array.dtype.name, len(data)])
        data += array.tobytes()
    header = json.dumps(told).encode()
    path.write_bytes(MAGIC + len(header).to_bytes(4, "little") + header + data)
    return path


def read_tns(file):
    """Return what such a file holds: all that a contributor writes, besides the row."""
    try:
        with file.opened() as there:
            length = int.from_bytes(there.read(len(MAGIC), 4).tobytes(), "little")
            told = json.loads(there.read(8, min(length, file.nbytes - 8)).tobytes())
        rows = [(str(name), tuple(map(int, shape)), str(dtype), int(at)) for name, shape, dtype, at in told]
        sizes = [math.prod(shape) * stored_dtype(dtype).itemsize for _, shape, dtype, _ in rows]
        if any(min(shape, default=0) < 0 or at < 0 for _, shape, _, at in rows):
            raise ValueError("a size or an offset is negative")
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{file.path!r} is not a valid {SUFFIX} file: {str(error).splitlines()[0]}") from None
    entries = []
    for (name, shape, dtype, at), nbytes in zip(rows, sizes, strict=True):
        source = FileSource(shape, dtype, file, 8 + length + at)
        is_there = source.offset + nbytes <= file.nbytes
        problem = (
            "" if is_there and hasattr(torch, dtype) else "its bytes are not in the file, or its dtype is not known"
        )
        entries.append(weight_in(source, name, f"tns.load({file.path!r})[{name!r}]", nbytes=nbytes, problem=problem))
    return Contents(entries, {}, [])


def read_carelessly(file):
    """Return the same, and let out whatever a damaged header raises."""
    with file.opened() as there:
        length = int.from_bytes(there.read(len(MAGIC), 4).tobytes(), "little")
        told = json.loads(there.read(8, length).tobytes())
    entries = [weight_in(FileSource(tuple(s), d, file, 8 + length + at), name, "") for name, s, d, at in told]
    return Contents(entries, {}, [])


def read_by_pickle(file):
    """Return the same, and have a pickle look up a function."""
    pickle.loads(pickle.dumps(zlib.crc32))
    return read_tns(file)


def read_greedily(file):
    """Return the same, for which much memory is taken."""
    bytearray(2**24)
    return read_tns(file)


@pytest.fixture
def made_up(monkeypatch):
    """Return what puts the row of the made-up format into the table, with that reader."""

    def put(reader=read_tns):
        row = Format("made up", (SUFFIX,), (MAGIC,), f"{__name__}:{reader.__name__}")
        monkeypatch.setattr(table, "FORMATS", (row, *table.FORMATS))

    return put


def test_a_new_format_is_a_reader_and_a_row(tmp_path, made_up):
    """All else derives from the row: what opens, what is completed and suggested, what a folder holds, and refusals."""
    path = saved(tmp_path / f"model{SUFFIX}")
    with pytest.raises(tnp.CheckpointError):
        tnp.weights(path)
    made_up()
    check_format(path, ARRAYS)
    assert list(tnp.weights(tmp_path)) == list(ARRAYS)
    assert (str(path), "path") in _paths(str(tmp_path / "mod"))
    with pytest.raises(tnp.CheckpointError, match=f"the closest is '{path}'"):
        tnp.weights(tmp_path / f"modell{SUFFIX}")
    other = tmp_path / f"other{SUFFIX}"
    other.write_bytes(b"something else")
    with pytest.raises(tnp.CheckpointError, match=rf"does not begin as a \{SUFFIX} file does"):
        tnp.weights(other)
    with pytest.raises(tnp.CheckpointError, match="has several: "):
        tnp.weights(tmp_path)


@pytest.mark.parametrize(
    ("reader", "says"),
    [
        (read_carelessly, "a file of .* that is damaged at byte .* ends in .*Error"),
        (read_by_pickle, r"what is read imports or runs something: pickle.find_class"),
        (read_greedily, r"to list the weights takes 16,\d{3},\d{3} bytes of memory"),
    ],
)
def test_a_reader_that_breaks_a_promise_is_told(tmp_path, made_up, reader, says):
    """Which one, and where."""
    made_up(reader)
    with pytest.raises(AssertionError, match=says):
        check_format(saved(tmp_path / f"x{SUFFIX}"), ARRAYS)


def test_other_values_than_expected_are_told(tmp_path, made_up):
    """By name and index."""
    made_up()
    path = saved(tmp_path / f"x{SUFFIX}")
    with pytest.raises(AssertionError, match=r"a\[Ellipsis\] gives array"):
        check_format(path, ARRAYS | {"a": ARRAYS["a"] + 1})
    with pytest.raises(AssertionError, match="the weights are"):
        check_format(path, {"a": ARRAYS["a"]})


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors", "x.pt"])
def test_the_formats_that_are_read_pass(tmp_path, name):
    """Those of which a file is made here."""
    path, array = tmp_path / name, ARRAYS["a"]
    if name == "x.npy":
        np.save(path, array)
    elif name == "x.npz":
        np.savez(path, array=array)
    elif name == "x.pt":
        torch.save({"array": torch.from_numpy(array)}, path)
    else:
        from safetensors.numpy import save_file

        save_file({"array": array}, path)
    check_format(path, {"array": array}, num_damaged=30)


@pytest.mark.parametrize("row", table.FORMATS, ids=lambda row: row.name)
def test_each_row_has_a_reader_and_an_extra_that_is_there(row):
    """A name that is spelled wrong would be met by users alone."""
    from importlib.metadata import metadata

    assert callable(row.reader())
    assert not row.extra or row.extra in metadata("tensornp").get_all("Provides-Extra")


class Halves:
    """Stands for a tensor of which it holds the double."""

    def __init__(self, doubles):
        self.doubles = doubles

    def __tensornp__(self):
        return self.doubles / 2


class View(Halves):
    """Gives the same memory each time."""

    def __tensornp__(self):
        return self.doubles


class Wrong(Halves):
    """Changes what it holds when it is looked at."""

    def __tensornp__(self):
        self.doubles = self.doubles + 1
        return self.doubles


class Random(Halves):
    """Draws a random number, and throws it away."""

    def __tensornp__(self):
        torch.rand(1)
        return self.doubles / 2


VALUES = torch.tensor([[1.0, -2.5], [float("nan"), 4.0]])


def test_a_kind_that_keeps_the_promises_passes():
    """Computed anew, shared, and registered."""
    check_kind(lambda: Halves(VALUES * 2), VALUES.numpy())
    check_kind(lambda: View(VALUES.clone()), VALUES.numpy())
    check_kind(lambda: View(torch.arange(3)), np.arange(3))
    check_kind(VALUES.bfloat16, VALUES.numpy())

    class Registered:
        def __init__(self, values):
            self.values = values

    tnp.register_kind(Registered, values=lambda one: one.values, label="mine")
    try:
        check_kind(lambda: Registered(VALUES.clone()), VALUES.numpy())
    finally:
        tnp.unregister_kind(Registered)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Halves(VALUES), "to_numpy gives array"),
        (lambda: Halves(VALUES.double() * 2), "to_numpy gives float64, and not float32"),
        (lambda: Wrong(VALUES - 1), "the card does not print what NumPy prints"),
        (lambda: Random(VALUES * 2), "a look has changed the object, random numbers"),
    ],
)
def test_a_kind_that_breaks_a_promise_is_told(make, says):
    """Which one."""
    with pytest.raises(AssertionError, match=says):
        check_kind(make, VALUES.numpy())
