"""Files of `torch.save` with DTensor and tensors of torchao: listed as in memory, and no class is imported."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from child import in_fork
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
