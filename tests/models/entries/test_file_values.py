"""What lies in a file is read wherever a tensor is: printed, in the navigator, in statistics and comparisons."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.core.convert.plan import decide
from tensornp.core.values.shown.preview import preview
from tensornp.core.values.shown.window import read_window, subject_of, window_of

torch.manual_seed(0)
TENSORS = {
    "matrix": torch.randn(300, 500),
    "bfloat16": torch.randn(7, 50, 60).bfloat16(),
    "integers": torch.arange(5),
    "scalar": torch.tensor(3.0),
    "empty": torch.zeros(0, 3),
    "float8": torch.randn(100, 100).to(torch.float8_e4m3fn),
    "complex": torch.randn(1000, 4, dtype=torch.complex64),
    "bool": torch.rand(50) > 0.5,
}
GAPPED = {"transposed": TENSORS["matrix"].t(), "every second": TENSORS["bfloat16"][:, ::2]}


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The same tensors in a safetensors file, and with gaps in a torch file."""
    folder = tmp_path_factory.mktemp("values")
    save_file(TENSORS, folder / "model.safetensors")
    torch.save(GAPPED, folder / "model.pt")
    return {**tnp.weights(folder / "model.safetensors"), **tnp.weights(folder / "model.pt")}


@pytest.mark.parametrize("name", [*TENSORS, *GAPPED])
def test_a_file_tells_the_same_as_the_tensor(entries, name):
    """Text, window, figures and comparison."""
    values, tensor = entries[name]._values(), {**TENSORS, **GAPPED}[name]
    assert preview(values, values.info, decide(values.info), max_elements=5000).text == repr(tnp.to_numpy(tensor))
    subject, own = subject_of(values), subject_of(tensor)
    window = window_of(subject.shape, axes=None, corner=(), num_rows=5, num_columns=4)
    assert read_window(subject, window) == read_window(own, window)
    assert str(tnp.stats(values)) == str(tnp.stats(tensor.contiguous()))
    comparison = tnp.compare(values, tensor)
    assert comparison.equal
    assert comparison.same_bits
    if tensor.dim():
        assert str(tnp.stats(values, axis=-1)) == str(tnp.stats(tensor, axis=-1))
    if tensor.numel():
        assert tnp.locate(values, "absmax").indices == tnp.locate(tensor, "absmax").indices


def test_a_window_reads_no_more_than_its_rows(entries, monkeypatch):
    """Sixteen rows of a matrix, however long it is."""
    entry, read = entries["matrix"], []
    opened = type(entry._source.file).opened
    monkeypatch.setattr(
        type(entry._source.file), "opened", lambda file, **how: read.append(file) or opened(file, **how)
    )
    values = entry._values()
    subject = subject_of(values)
    read_window(subject, window_of(subject.shape, axes=None, corner=(), num_rows=16, num_columns=12))
    assert len(read) == 1
    assert entry.plan((slice(0, 16), slice(0, 12))).nbytes_read <= 16 * 500 * 4
