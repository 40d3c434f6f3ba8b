"""Files of `torch.save`: the values are torch's, and nothing that a file says is imported, run or believed."""

from __future__ import annotations

import argparse
import io
import os
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from written_torch import named, tensor, written

import tensornp as tnp
from tensornp.models.pickles.leaves import WantedImport
from tensornp.models.pickles.reader import Import
from tensornp.render.layout.style import ALARM_TEXT
from tensornp.render.models.weights import weights_document

FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


class Runs:
    """Makes a folder, should anybody unpickle it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def tree() -> dict[str, Any]:
    large = torch.arange(1000.0)
    made: dict[str, Any] = {
        "a": torch.arange(35.0).view(5, 7), "turned": torch.arange(24.0).view(4, 6).T, "part": large[10:20],
        "every third": large[::3], "nested": {"list": [torch.arange(6), torch.tensor(2.5)]}, "none": torch.zeros(0, 3),
        "expanded": torch.ones(1).expand(4, 5), "turned twice": torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
        "trained": torch.nn.Parameter(torch.ones(3)), "ordered": OrderedDict(w=torch.ones(2)),
        "object": argparse.Namespace(w=torch.ones(2), lr=0.1), "step": 3, "name": "x",
    }  # fmt: skip
    for name in ("bfloat16", "float16", "float8_e4m3fn", "uint16", "int64", "complex64", "bool", "float64"):
        one = torch.arange(5).float().to(getattr(torch, name))
        try:
            torch.save(one, io.BytesIO(), _use_new_zipfile_serialization=False)
        except KeyError:
            # Before torch 2.5 it writes no uint16.
            continue
        made[name] = one
    return made


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, torch.Tensor):
        yield ".".join(map(str, path)), value
    value = vars(value) if isinstance(value, argparse.Namespace) else value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        yield from leaves(child, (*path, key))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_values_are_those_that_torch_loads(tmp_path, kind):
    """Views, strides, dtypes, nested containers; parts of them; statistics."""
    path, made = tmp_path / "x.pt", tree()
    torch.save(made, path, **FORMATS[kind])
    explorer = tnp.weights(path)
    expected = dict(leaves(made))
    assert list(explorer) == list(expected)
    for name, value in expected.items():
        entry, array = explorer[name], tnp.to_numpy(value)
        assert entry.shape == tuple(value.shape)
        assert np.array_equal(entry.to_numpy(), array), name
        assert entry.to_numpy().dtype == array.dtype
        if value.dim():
            assert np.array_equal(entry.to_numpy((slice(None, None, -2), ...)), array[::-2])
        found, wanted = entry.stats(), tnp.stats(value)
        assert (found.count, found.min, found.max, found.sum) == (wanted.count, wanted.min, wanted.max, wanted.sum)
    assert explorer["part"].note == "view of a larger storage: 10 of 1,000 elements used, 3.9 KiB on disk"
    assert explorer["trained"].kind == "parameter"
    assert explorer["expanded"].nbytes == 4
    assert explorer.metadata == {"step": 3, "name": "x", "object.lr": 0.1}
    assert explorer.problems == ["it wants to import 'argparse.Namespace', and nothing was imported"]
    assert explorer["a"].wanted_imports == ("argparse.Namespace",)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_loading_would_do_is_the_one_amber_line(tmp_path, kind):
    """What is called, and what is merely imported; classes of torch's own and such as hold values are small print."""
    made = {"a": Runs(tmp_path / "made"), "b": os.getcwd, "c": torch.nn.ReLU(), "d": argparse.Namespace(lr=0.1)}
    torch.save({"w": torch.ones(2), **made}, tmp_path / "x.pt", **FORMATS[kind])
    document = weights_document(tnp.weights(tmp_path / "x.pt"))
    module = os.mkdir.__module__
    said = f"Loading it would call {module}.mkdir and import {module}.getcwd"
    rest = " · nothing was imported or run; the weights are read without it"
    assert document.text().split("\n")[1] == said + rest
    assert f'<span style="{ALARM_TEXT}">{said}</span>{rest}' in document.html()
    assert document.text().count("getcwd") == 1
    assert "it wants to import 'argparse.Namespace', and nothing was imported" in document.text()
    module = torch.nn.Sequential(torch.nn.MultiheadAttention(4, 1), torch.nn.LayerNorm(4))
    torch.save({"w": torch.ones(2), "d": made["d"], "m": module}, tmp_path / "y.pt", **FORMATS[kind])
    document = weights_document(tnp.weights(tmp_path / "y.pt"))
    assert ALARM_TEXT not in document.html() and " more; nothing was imported" in document.text()
    assert "wants to import" not in document.text() and ": None" not in document.text()


@pytest.mark.parametrize(
    ("module", "name", "is_alarm"),
    [
        ("torch.nn.modules.linear", "Linear", False),
        ("torch.optim.adamw", "AdamW", False),
        ("argparse", "Namespace", False),
        ("torch.hub", "load", True),
        ("torch.nn.modules.utils", "_pair", True),
        ("torch.nn.modules.x", "A.__init__", True),
        ("torch.nn.modules.x", "", True),
        ("torchx.nn.modules.linear", "Linear", True),
        ("builtins", "eval", True),
    ],
)
def test_an_import_is_an_alarm_unless_it_is_known(module, name, is_alarm):
    """A prefix alone makes nothing harmless."""
    assert WantedImport("", Import(module, name), True).is_alarm is is_alarm


def rewritten(path: Path, change: Any) -> None:
    """Write a zip anew, with each member as `change` gives it: its bytes, and whether they are compressed."""
    with zipfile.ZipFile(path) as old:
        members = [(one, old.read(one)) for one in old.infolist()]
    with zipfile.ZipFile(path, "w") as new:
        for one, data in members:
            for made, is_compressed in change(one.filename, data):
                new.writestr(one.filename, made, zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED)


HOSTILE = {
    "compressed": (lambda name, data: [(data, "/data/" in name)], "its storage is compressed"),
    "shorter": (lambda name, data: [(data[:-4] if "/data/" in name else data, False)], "bytes, and 4,000 are declared"),
    "missing": (lambda name, data: [] if "/data/" in name else [(data, False)], "its storage is not in the file"),
    "twice": (lambda name, data: [(data, False)] * (2 if "/data/" in name else 1), "is there more than once"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_storage_that_is_not_as_declared_is_not_read(tmp_path, name):
    """Not one byte of it; torch, reading by offsets, gives garbage for some of these."""
    change, says = HOSTILE[name]
    path = tmp_path / "x.pt"
    torch.save({"w": torch.ones(1000)}, path)
    rewritten(path, change)
    explorer = tnp.weights(path)
    assert says in explorer["w"].problem
    with pytest.raises(tnp.NoDataError):
        explorer["w"].to_numpy()


def test_members_that_overlap_are_not_read(tmp_path):
    """Two names of the same bytes, one of them a lie."""
    path = tmp_path / "x.pt"
    torch.save({"a": torch.ones(1000), "b": torch.zeros(1000)}, path)
    data = bytearray(path.read_bytes())
    first, second = (data.rfind(f"/data/{i}".encode()) - 46 for i in (0, 1))
    while data[first : first + 4] != b"PK\x01\x02":
        first -= 1
    while data[second : second + 4] != b"PK\x01\x02":
        second -= 1
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)
    problems = [tnp.weights(path)[name].problem for name in "ab"]
    assert "its storage overlaps another one" in problems


BEYOND = {
    "it reaches beyond its storage": {"numel": 10, "shape": 11},
    f"it repeats 1 stored elements as {2**61:,}": {"shape": 2**61, "stride": 0},
}


@pytest.mark.parametrize("says", BEYOND)
def test_a_view_beyond_its_storage_is_not_read(tmp_path, says):
    """Nor one of endless shape."""
    assert tnp.weights(written(tmp_path / "x.pt", named(tensor(**BEYOND[says])), bytes(40)))["w"].problem == says


@pytest.mark.parametrize("obj", [torch.nn.Sequential(torch.nn.Linear(2, 2)), {"model": torch.nn.Linear(2, 2)}])
def test_the_code_of_a_pickled_module_runs(obj, tmp_path):
    """torch would refuse the file, whose weights are attributes there."""
    path = tmp_path / "m.pt"
    torch.save(obj, path)
    for entry in tnp.weights(path).values():
        assert eval(entry.code, {"tnp": tnp}).tolist() == entry.to_numpy().tolist()
