"""Files of `torch.save` with DTensor, tensors of torchao and numbers of NumPy: no class is imported."""

from __future__ import annotations

import logging
import pickle
import random
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from torch import nn

import tensornp as tnp
from tensornp.models.pickles.leaves import Leaves
from tensornp.models.pickles.torch_pickle import read_torch_pickle
from tensornp.render.models.weights import weights_document

FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


ON_THIS_RANK = r", [\d,]+ of [\d,]+ elements, [\d,]+ of [\d,]+ bytes on this rank"


def begin_group(world_size: int) -> Any:
    """Return a mesh of so many ranks, of which only this one is there."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
    return init_device_mesh("cpu", (world_size,))


def expect_listed_alike(live: Any, path: Path) -> tnp.WeightsExplorer:
    """Hold the file to what is listed of the objects that were saved, and return its explorer."""
    of_file, in_memory = tnp.weights(path), tnp.weights(live)
    facts = "name kind shape dtype nbytes _num_parameters note".split()
    listed, expected = (
        [[getattr(one, fact) for fact in facts] for one in explorer.values()] for explorer in (of_file, in_memory)
    )
    # A rank is one of a job, and no file is.
    assert listed == [[*rest, re.sub(ON_THIS_RANK, "", note)] for *rest, note in expected]
    assert of_file.totals.parameters == in_memory.totals.parameters
    return of_file


@pytest.mark.parametrize("kind", FORMATS)
@in_fork
def test_a_part_of_a_dtensor_is_never_taken_for_the_whole(tmp_path, kind):
    """Its shape is that of the whole, its bytes those that are there."""
    from torch.distributed import tensor as distributed

    mesh, part = begin_group(2), torch.ones(2, 4)
    made = {
        "shard": distributed.DTensor.from_local(part, mesh, [distributed.Shard(0)], run_check=False),
        "partial": distributed.DTensor.from_local(part, mesh, [distributed.Partial()], run_check=False),
    }
    torch.save(made, tmp_path / "x.pt", **FORMATS[kind])
    explorer = expect_listed_alike(made, tmp_path / "x.pt")
    assert explorer["shard"].shape == (4, 4) and explorer["shard"].nbytes == 32
    for name in made:
        for use in (explorer[name].to_numpy, explorer[name].stats):
            with pytest.raises(tnp.NoDataError, match=r"the part of one rank; save full_tensor\(\)"):
                use()
    assert set(explorer.scan(progress=False).failed) == {"shard", "partial"}


def quantized(name: str) -> dict[str, torch.Tensor]:
    """Return a state dict of torchao's weights of this kind."""
    for library in ("torchao", "torch.utils._pytree"):
        logging.getLogger(library).setLevel(logging.ERROR)
    pytest.importorskip("torchao", "0.13")
    quantization = pytest.importorskip("torchao.quantization")
    if name == "int4":
        # What is quantized to it on a CPU takes a library of its own.
        cls = getattr(quantization, "Int4Tensor", None) or pytest.skip("this torchao has no Int4Tensor")
        scales = [torch.ones(1, 256, dtype=torch.bfloat16) for _ in range(2)]
        codes = torch.zeros(256, 64, dtype=torch.int8)
        return {"0.weight": cls(codes, *scales, [1, 128], torch.Size([256, 128]))}
    config = {"int8": "Int8WeightOnlyConfig", "float8": "Float8WeightOnlyConfig", "intx": "IntxWeightOnlyConfig"}[name]
    if not hasattr(quantization, config):
        pytest.skip(f"this torchao has no {config}")
    model = nn.Sequential(nn.Linear(128, 256, dtype=torch.bfloat16), nn.Linear(256, 64, dtype=torch.bfloat16))
    quantization.quantize_(model, getattr(quantization, config)())
    return model.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int4", "int8", "float8", "intx"])
@in_fork
def test_weights_of_torchao_are_listed_as_in_memory(tmp_path, name):
    """Shape, dtype, bytes, what they consist of, and parameters; a reason stands for the values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = quantized(name)
        torch.save(made, tmp_path / "x.pt")
        explorer = expect_listed_alike(made, tmp_path / "x.pt")
    entry = explorer["0.weight"]
    cls = type(made["0.weight"]).__name__
    assert entry.shape == (256, 128) and entry.note == cls
    assert entry.problem.startswith(f"{cls} computes its values; give weights what torch.load returns")
    assert any("wants to import 'torchao." in one for one in explorer.problems)
    with pytest.raises(tnp.NoDataError, match="computes its values"):
        entry.to_numpy()


@pytest.mark.slow
@in_fork
def test_no_class_of_a_wrapper_is_imported():
    """Though a module of its name lies on the path."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trap.py").write_text(
            "import torch\n"
            "from torch.utils._python_dispatch import return_and_correct_aliasing\n"
            "class Wrapped(torch.Tensor):\n"
            "    @staticmethod\n"
            "    def __new__(cls, inner): return torch.Tensor._make_wrapper_subclass(cls, inner.shape)\n"
            "    def __init__(self, inner): self.inner = inner\n"
            "    @classmethod\n"
            "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
            "        return func(*[getattr(one, 'inner', one) for one in args], **(kwargs or {}))\n"
        )
        sys.path.insert(0, folder)
        import trap

        shared = trap.Wrapped(torch.arange(3.0))
        torch.save({"a": shared, "b": shared, "deep": trap.Wrapped(shared)}, Path(folder) / "x.pt")
        del sys.modules["trap"]
        explorer = tnp.weights(Path(folder) / "x.pt")
        assert explorer["a"].note == "Wrapped" and explorer["a"].nbytes == 12
        assert explorer["deep"].nbytes == 12 and explorer["a"].tied_to == ("b",)
        assert "trap" not in sys.modules


WRITTEN = {
    "zip": {},
    "zip, protocol 4": {"pickle_protocol": 4},
    "zip, protocol 5": {"pickle_protocol": 5},
    "before the zip": {"_use_new_zipfile_serialization": False},
    "before the zip, protocol 4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4},
}
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def told(value: Any, protocol: int) -> dict[str, Any]:
    """Return the plain values of a pickle, by the keys that reach them."""
    return {name: one for name, _, one in Leaves(read_torch_pickle(pickle.dumps(value, protocol), "it").root)}


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
    assert found == {"0": scalar.item(), "1": scalar.item(), "2": "then"}
    assert {type(found["0"]), type(found["1"])} == {type(scalar.item())}


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
