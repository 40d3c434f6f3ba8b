"""Files of weights that are not read: each is named as what it is, whatever it is called, with what opens it."""

from __future__ import annotations

import gzip
import pickle
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest
import torch

import tensornp as tnp

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(600)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


def exported(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(Model(), (torch.ones(1, 2),)), path)


def packaged(path: Path) -> None:
    from torch.package import PackageExporter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with PackageExporter(str(path)) as exporter:
            exporter.save_pickle("model", "model.pkl", {"w": torch.ones(3)})


def of_keras(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": HDF5}.items():
            archive.writestr(name, data)


# As joblib 1.6 begins a dictionary of arrays, whose bytes lie in the pickle.
JOBLIB = (
    b"\x80\x04\x95\x9f\0\0\0\0\0\0\0}\x94(\x8c\x01w\x94\x8c\x13joblib.numpy_pickle\x94\x8c\x11NumpyArrayWrapper\x94\x93\x94"
    + bytes(100)
)
WRITERS = {
    "torch.export": (exported, "is an archive of torch.export (.pt2); give weights the state_dict of what"),
    "torch.package": (packaged, "is a torch.package; torch.package.PackageImporter opens it, and runs its code"),
    "Keras": (of_keras, "is a model of Keras (.keras); keras.saving.load_model opens it, and h5py its"),
    "HDF5": (lambda path: path.write_bytes(HDF5), "seems to be an HDF5 file, as of Keras (.h5); h5py opens it, and"),
    "joblib": (lambda path: path.write_bytes(JOBLIB), "seems to be a pickle of joblib; joblib.load opens it, and"),
    "joblib by zlib": (
        lambda path: path.write_bytes(zlib.compress(JOBLIB, 3)), "seems to be packed by zlib, as joblib does;"
    ),
    "gzip": (lambda path: path.write_bytes(gzip.compress(JOBLIB)), "seems to be a gzip file; unpack it first"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps({"w": 3})), "seems to be a pickle, but none of torch.save"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["x.pt", "x.safetensors", "x.pt2", "x.h5"])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_is_not_read_is_named_as_what_it_is(tmp_path, kind, name):
    """By what it holds, and not by what it is called."""
    write, says = WRITERS[kind]
    write(tmp_path / "written.pt2")
    (tmp_path / "written.pt2").rename(tmp_path / name)
    with pytest.raises(tnp.CheckpointError) as raised:
        tnp.weights(tmp_path / name)
    assert says in str(raised.value)
