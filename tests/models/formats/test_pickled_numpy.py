"""What pickles have of NumPy: scalars are values, an array is one line, and nothing of its pickle is told as a fact."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from written_dcp import save

import tensornp as tnp
from tensornp.errors import CheckpointError
from tensornp.models.pickles.contents import MAX_AGAIN, PickledValue, Unlisted, values_of
from tensornp.models.pickles.look_through import xray
from tensornp.render.models.weights import weights_document

WRITTEN = {
    "zip": {},
    "zip, protocol 4": {"pickle_protocol": 4},
    "zip, protocol 5": {"pickle_protocol": 5},
    "before the zip": {"_use_new_zipfile_serialization": False},
    "before the zip, protocol 4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4},
}
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def told(value: Any, protocol: int) -> dict[tuple[Any, ...], Any]:
    """Return the plain values of a pickle, by the keys that reach them."""
    found = values_of(xray(pickle.dumps(value, protocol)).root)
    return {one.path: one.value for one in found if isinstance(one, PickledValue)}


@pytest.mark.parametrize("how", WRITTEN)
def test_scalars_are_values_and_arrays_are_one_line(tmp_path, how):
    """A training loop saves its best figure as NumPy gave it, and the states of random number generators."""
    saved = {
        "w": torch.ones(2),
        "best": np.float32(0.5),
        "n": np.int64(3),
        "cfg": {"lr": np.float64(1e-3)},
        "hist": np.ones((2, 3)),
        "numpy": np.random.RandomState(0).get_state(),
        "python": random.Random(0).getstate(),
        "short": (1, 2.0),
        "raw": b"\x00\xff",
    }
    torch.save(saved, tmp_path / "c.pt", **WRITTEN[how])
    explorer = tnp.weights(tmp_path / "c.pt")
    assert [*explorer] == ["w"]
    assert {name: str(value) for name, value in explorer.metadata.items()} == {
        "best": "0.5",
        "n": "3",
        "cfg.lr": "0.001",
        "hist": "<NumPy array (2, 3) float64>",
        "numpy.0": "MT19937",
        "numpy.1": "<NumPy array (624,) uint32>",
        "numpy.2": "624",
        "numpy.3": "0",
        "numpy.4": "0.0",
        "python.0": "3",
        "python.1": "<tuple of 625 numbers>",
        "python.2": "None",
        "short.0": "1",
        "short.1": "2.0",
        "raw": str(b"\x00\xff"),
    }
    assert "2 NumPy arrays in it are not listed" in explorer.problems
    text = weights_document(explorer).text()
    assert "best: 0.5" in text
    assert "hist: <NumPy array (2, 3) float64>" in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("?", True), ("i1", -3), ("i2", -300), ("i4", -(2**31)), ("i8", 2**63 - 1), ("u1", 200), ("u2", 2**16 - 1),
        ("u4", 2**32 - 1), ("u8", 2**64 - 1), ("f2", 1.5), ("f4", 0.1), ("f8", -0.1), ("f8", np.inf), ("c8", 1 - 2j),
        ("c16", 0.1 + 1e300j), ("U3", "äx"), ("U0", ""), ("S3", b"ab"),
    ],
)  # fmt: skip
def test_a_scalar_is_the_very_number(code, number, order, protocol):
    """Of each plain dtype and byte order, in every protocol, as NumPy's own `item` gives it."""
    scalar = np.dtype(f"{order}{code}").type(number)
    function, (dtype, _) = scalar.__reduce__()
    swapped = np.array(scalar, dtype=dtype.newbyteorder(order))
    found = told([scalar, _Scalar(function, swapped.dtype, swapped.tobytes()), "then"], protocol)
    assert found == {(0,): scalar.item(), (1,): scalar.item(), (2,): "then"}
    assert {type(found[0,]), type(found[1,])} == {type(scalar.item())}


class _Scalar:
    """Is pickled as a scalar of NumPy, in a byte order that NumPy's own no longer have."""

    def __init__(self, *told: Any) -> None:
        self._told = told

    def __reduce__(self) -> Any:
        return self._told[0], self._told[1:]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros((0, 2), ">i4"), "<NumPy array (0, 2) >i4>"),
        (np.array(["ab"]), "<NumPy array (1,) U2>"),
        (np.zeros(3, bool), "<NumPy array (3,) bool>"),
        (np.asfortranarray(np.ones((2, 2), "c8")), "<NumPy array (2, 2) complex64>"),
        (np.zeros(2, ml_dtypes.bfloat16), "<NumPy array (2,) bfloat16>"),
        (np.zeros(2, [("a", "f4")]), "<NumPy array (2,) V4>"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "<masked NumPy array (2,) float64>"),
        (np.dtype("f4"), "<NumPy dtype float32>"),
        (np.datetime64("2020-01-01"), "<NumPy scalar datetime64>"),
        (np.zeros(1, np.longdouble), f"<NumPy array (1,) {np.dtype(np.longdouble).name}>"),
        (np.void(b"ab"), "<NumPy scalar V2>"),
        (tuple(range(17)), "<tuple of 17 numbers>"),
    ],
)
def test_what_is_no_plain_value_is_said_in_one_line(value, said, protocol):
    """Nothing of how it is pickled is told as what the file holds."""
    assert {path: str(one) for path, one in told({"it": value}, protocol).items()} == {("it",): said}


def test_long_bytes_are_counted():
    """Protocols that have no bytes make them of a text."""
    assert str(told([bytes(100_000)], 2)[0,]) == "<100,000 bytes>"


def test_what_lies_in_arrays_of_objects_is_listed_by_its_index_or_counted(tmp_path):
    """In one dimension, an index reaches it in what torch loads."""
    flat, square = np.empty(2, object), np.empty((2, 2), object)
    flat[:], square[:] = [torch.ones(2), 5], [[torch.ones(3), 1], [2, 3]]
    torch.save({"flat": flat, "square": square}, tmp_path / "c.pt")
    explorer = tnp.weights(tmp_path / "c.pt")
    assert [*explorer] == ["flat.0"]
    assert {name: str(value) for name, value in explorer.metadata.items()} == {
        "flat": "<NumPy array (2,) object>",
        "flat.1": "5",
        "square": "<NumPy array (2, 2) object>",
    }
    assert "a tensor in NumPy arrays is not listed" in explorer.problems


def test_options_of_optimizers_can_be_scalars_of_numpy(tmp_path):
    """A schedule that NumPy computed leaves them in the groups."""
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    optimizer.param_groups[0]["lr"] = np.float64(0.25)
    weight.sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "o.pt")
    assert tnp.weights(tmp_path / "o.pt").metadata["param_groups.0.lr"] == 0.25


def test_dcp_says_the_same(tmp_path):
    """Each value is a pickle of its own."""
    saved = {"best": np.float32(0.5), "hist": np.ones((2, 3)), "both": (np.int64(3), np.ones(2), tuple(range(625)))}
    save({"w": torch.ones(2), **saved}, FileSystemWriter(tmp_path))
    explorer = tnp.weights(tmp_path)
    metadata = explorer.metadata
    assert {"1 NumPy array in 'hist' is not listed", "1 NumPy array in 'both' is not listed"} <= {*explorer.problems}
    assert not tnp.compare(tmp_path, tmp_path).equal
    assert metadata["best"] == 0.5
    assert str(metadata["hist"]) == "<NumPy array (2, 3) float64>"
    assert str(metadata["both"]) == "(3, <NumPy array (2,) float64>, <tuple of 625 numbers>)"


@pytest.mark.parametrize(
    "told_of",
    [
        ("f8", (3, "<", None), b"1234567"),
        ("f8", (3, "<", ("f8", (1,))), b"12345678"),
        ("f8", (3, "@", None), b"12345678"),
        ("f8", (3, [], None), b"12345678"),
        ("f8", None, b"12345678"),
        ("f99", (3, "<", None), b"12345678"),
        (["f8"], (3, "<", None), b"12345678"),
        ("f8", (3, "<", None), "\u2000" * 8),
        ("U2", (3, "<", None), b"\xff" * 8),
        ("f8", (3, "<", None), 7),
    ],
)
def test_a_scalar_that_is_not_sound_is_no_value(told_of):
    """What its bytes, its dtype or its byte order do not tell is not guessed."""
    code, state, data = told_of
    dtype = b"cnumpy\ndtype\n(" + _pushed(code) + b"tR" + _pushed(state) + b"b"
    [found] = values_of(xray(b"cnumpy.core.multiarray\nscalar\n(" + dtype + _pushed(data) + b"tR.").root)
    assert isinstance(found, PickledValue)
    assert str(found.value).startswith("<NumPy scalar")


def _pushed(value: Any) -> bytes:
    """Return the opcodes that put a value on the stack."""
    return pickle.dumps(value, 2)[2:-1]


def test_a_text_is_not_made_into_bytes_again_and_again():
    """Each call is of seven bytes, and would make 60,000."""
    head = b"(c_codecs\nencode\np0\n(V" + b"a" * 60_000 + b"\nVlatin1\ntp1\nR"
    tracemalloc.start()
    with pytest.raises(CheckpointError, match="more containers"):
        xray(head + b"g0\ng1\nR" * 20_000 + b"l.")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_long_tuple_that_is_reached_again_and_again_ends():
    """All of its numbers are looked at each time."""
    long = tuple(range(1000))
    left = Unlisted()
    found = list(values_of(xray(pickle.dumps([[long] for _ in range(1000)])).root, left))
    assert len(found) <= MAX_AGAIN / len(long) + 2
    assert left.is_repeated


def test_what_the_file_would_import_is_still_said(tmp_path):
    """A value that is told was not made by what the file names."""
    torch.save({"best": np.float32(0.5), "raw": b"ab", "none": b""}, tmp_path / "c.pt")
    problems = tnp.weights(tmp_path / "c.pt").problems
    assert {one.wanted.name for one in problems} == {"scalar", "dtype", "encode", "bytes"}
    assert not any(one.is_alarm for one in problems)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_complex_number_of_python_is_the_very_number(tmp_path, protocol):
    """It is a plain value, as in memory, and no alarm; nothing is called for it."""
    torch.save({"c": 1.5 - 2j, "w": torch.ones(1)}, tmp_path / "c.pt", pickle_protocol=protocol)
    explorer = tnp.weights(tmp_path / "c.pt")
    assert dict(explorer.metadata) == {"c": 1.5 - 2j}
    assert not any(one.is_alarm for one in explorer.problems)
