"""Files of `torch.save` with DTensor and tensors of torchao: listed as in memory, and no class is imported."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import distributed
from torch import nn

import tensornp as tnp

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
    assert of_file.totals == in_memory.totals
    return of_file


@pytest.mark.parametrize("kind", FORMATS)
@in_fork
def test_a_dtensor_of_which_this_rank_has_all_gives_its_values(tmp_path, kind):
    """Sharded over one rank, or replicated; nothing that it wants to import is unknown."""
    from torch.distributed.tensor import Replicate, Shard

    mesh, whole = begin_group(1), torch.arange(12.0).view(3, 4)
    made = {
        "w": distributed(whole, mesh, [Shard(0)]),
        "b": distributed(whole.bfloat16(), mesh, [Replicate()]),
        "p": nn.Parameter(distributed(whole.T, mesh, [Shard(1)])),
    }
    torch.save(made, tmp_path / "x.pt", **FORMATS[kind])
    explorer = expect_listed_alike(made, tmp_path / "x.pt")
    assert explorer.problems == []
    assert np.array_equal(explorer["w"].to_numpy(), whole.numpy())
    assert np.array_equal(explorer["b"].to_numpy(slice(1, 2)).astype(np.float32), whole.numpy()[1:2])
    assert np.array_equal(explorer["p"].to_numpy(), whole.numpy().T)


@in_fork
def test_a_part_of_a_dtensor_is_never_taken_for_the_whole(tmp_path):
    """Its shape is that of the whole, its bytes those that are there, and the reason names the shape of the part."""
    from torch.distributed import tensor as distributed

    mesh, part = begin_group(2), torch.ones(2, 4)
    made = {
        "shard": distributed.DTensor.from_local(part, mesh, [distributed.Shard(0)], run_check=False),
        "partial": distributed.DTensor.from_local(part, mesh, [distributed.Partial()], run_check=False),
        "same": distributed.DTensor.from_local(part, mesh, [distributed.Replicate()], run_check=False),
    }
    torch.save(made, tmp_path / "x.pt")
    explorer = expect_listed_alike(made, tmp_path / "x.pt")
    assert explorer["shard"].shape == (4, 4) and explorer["shard"].nbytes == 32
    assert explorer["shard"].problem.startswith(
        "the file holds the part of one rank, of shape (2, 4); save full_tensor()"
    )
    assert explorer["partial"].problem.startswith("its part of it is not told, or is to be added")
    assert explorer["same"].to_numpy().tolist() == part.tolist()
    for name in ("shard", "partial"):
        for use in (explorer[name].to_numpy, explorer[name].stats):
            with pytest.raises(tnp.NoDataError):
                use()
    assert set(explorer.scan(progress=False).failed) == {"shard", "partial"}


@in_fork
def test_a_state_dict_of_fsdp2_lists_all_its_parameters(tmp_path):
    """And the state of its optimizer."""
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard"):
        pytest.skip("FSDP2 is public since torch 2.6")
    begin_group(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6))
    try:
        fsdp.fully_shard(model)
    except RuntimeError:
        pytest.skip("FSDP2 is tried on a CPU since torch 2.8")
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    made = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(made, tmp_path / "x.pt")
    of_file, in_memory = tnp.weights(tmp_path / "x.pt"), tnp.weights(made)
    assert {one.name: (one.shape, one.kind) for one in of_file.values()} == {
        one.name: (one.shape, one.kind) for one in in_memory.values()
    }
    assert of_file.totals == in_memory.totals
    assert of_file["model"].totals.parameters == 4 * 6 + 6 + 6 + 6


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
    assert entry.problem.startswith(
        f"{cls} computes its values, and no class that a file names is imported; give weights"
    )
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
        assert explorer.totals.nbytes == 12 and explorer.totals.elements_stored == 3
        assert "trap" not in sys.modules
