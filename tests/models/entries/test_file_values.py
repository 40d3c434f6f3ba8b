"""What lies in a file is read wherever a tensor is, and an index reads little besides its bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.core.convert.plan import decide
from tensornp.core.tensor.strides import contiguous
from tensornp.core.values.shown.preview import preview
from tensornp.core.values.shown.window import read_window, subject_of, window_of
from tensornp.models.entries import take
from tensornp.models.entries.take import Reads, taken_by

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


SIZES = st.sampled_from([0, 1, 2, 3, 7, 40])


def reads_of(index, shape, itemsize):
    """Return the reads of an index of elements that lie in the order of their indices."""
    return Reads(taken_by(index, shape).ranges, tuple(n * itemsize for n in contiguous(shape)), itemsize)


@st.composite
def shapes_and_indices(draw):
    shape = tuple(draw(st.lists(SIZES, max_size=4)))
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        ends = st.none() | st.integers(-size - 2, size + 2)
        steps = st.sampled_from([None, 1, 2, 3, 9, -1, -2, -7])
        slices = st.builds(slice, ends, ends, steps)
        items.append(draw(slices | st.integers(-size, size - 1) if size else slices))
    for other in (None, ...):
        if draw(st.booleans()):
            items.insert(draw(st.integers(0, len(items))), other)
    return shape, tuple(items)


@given(shapes_and_indices(), st.sampled_from([0, 16, 4096]), st.sampled_from([8, 100, 2**22]))
@settings(max_examples=100, deadline=None)
def test_an_index_gives_what_numpy_gives(case, max_gap, max_span):
    """Reads of any shape bring NumPy's result, by as many bytes as they say."""
    shape, index = case
    array = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    data, num_read = array.reshape(-1).view(np.uint8), 0

    def read_into(target, offset):
        nonlocal num_read
        num_read += target.size
        target[:] = data[offset : offset + target.size]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(take, "MAX_GAP_NBYTES", max_gap)
        patch.setattr(take, "MAX_SPAN_NBYTES", max_span)
        try:
            expected = array[index]
        except IndexError:
            with pytest.raises(tnp.BadRequestError):
                taken_by(index, shape)
            return
        taken, chosen = taken_by(index, shape), reads_of(index, shape, 4)
        found = chosen.bring(read_into, np.dtype(np.int32)).reshape(taken.shape)
        assert num_read == sum(nbytes for _, nbytes, _ in chosen.runs())
    assert np.array_equal(found, expected)
    assert found.shape == np.shape(expected)


def test_rows_are_read_without_their_neighbours():
    """Four rows in one piece; a narrow part of each row in one piece each; a thin slice in pieces of some MiB."""
    assert [nbytes for _, nbytes, _ in reads_of(slice(4, 8), (4096, 4096), 2).runs()] == [4 * 4096 * 2]
    assert [nbytes for _, nbytes, _ in reads_of((slice(0, 3), slice(0, 8)), (4096, 4096), 4).runs()] == [32, 32, 32]
    assert [nbytes for _, nbytes, _ in reads_of(..., (10**6, 10**6), 4).runs()] == [4 * 10**12]
    thin = [nbytes for _, nbytes, _ in reads_of(slice(None, None, 2), (10**8,), 4).runs()]
    assert max(thin) <= 2**22
    assert sum(thin) <= 4 * 10**8
