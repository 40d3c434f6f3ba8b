"""What pickles have of NumPy: scalars are values, an array is one line, and nothing of its pickle is told as a fact."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.models.pickles.leaves import Leaves
from tensornp.models.pickles.torch_pickle import read_torch_pickle
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
    return dict(Leaves(read_torch_pickle(pickle.dumps(value, protocol), "it").root))


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
        "hist": "<NumPy array>",
        "numpy.0": "MT19937",
        "numpy.1": "<NumPy array>",
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
    assert "hist: <NumPy array>" in text


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


def test_options_of_optimizers_can_be_scalars_of_numpy(tmp_path):
    """A schedule that NumPy computed leaves them in the groups."""
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    optimizer.param_groups[0]["lr"] = np.float64(0.25)
    weight.sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "o.pt")
    assert tnp.weights(tmp_path / "o.pt").metadata["param_groups.0.lr"] == 0.25


def test_what_the_file_would_import_is_still_said(tmp_path):
    """A value that is told was not made by what the file names."""
    torch.save({"best": np.float32(0.5), "raw": b"ab", "none": b""}, tmp_path / "c.pt")
    problems = tnp.weights(tmp_path / "c.pt").problems
    assert {one.wanted.name for one in problems} == {"scalar", "dtype", "encode", "bytes"}
    assert not any(one.is_alarm for one in problems)
