"""Faults that were found by hunting for them, each with the line that showed it."""

from __future__ import annotations

import threading
import warnings
from itertools import islice

import numpy as np
import pytest
import torch
from older import since

import tensornp as tnp
from tensornp.core.summary.card import summarize, summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.containers import walk
from tensornp.render.text import container_text


def test_numpy_booleans_are_booleans():
    """`np.True_` is not `True`, and means it all the same."""
    t = torch.zeros(3)
    assert tnp.plan(t, copy=np.True_).nbytes_copied == 12
    a = tnp.to_numpy(t, copy=np.True_)
    t[0] = 1
    assert a[0] == 0
    assert not tnp.to_numpy(t, copy=True, writeable=np.False_).flags.writeable
    with pytest.raises(tnp.CopyRequiredError):
        tnp.to_numpy(t.bfloat16().conj(), copy=np.False_, dtype="float32")
    with pytest.raises(tnp.CopyRequiredError):
        tnp.to_tensor(np.zeros(3)[::-1], copy=np.False_)
    with pytest.raises(tnp.BadRequestError):
        tnp.to_tensor(np.zeros(3), copy="x")


@pytest.mark.parametrize("limit", ["5", float("nan"), -1])
def test_a_limit_that_is_no_number_of_bytes_is_refused(limit):
    """Bad input gets one clear sentence."""
    with pytest.raises(tnp.BadRequestError, match="max_nbytes"):
        tnp.to_numpy(torch.ones(3), max_nbytes=limit)


def test_many_short_dimensions_are_not_printed_for_minutes():
    """Twenty qubits: even the outermost elements are a million."""
    summary = summarize(torch.zeros([2] * 20), DisplayOptions())
    assert "t.flatten()" in summary.preview.note
    assert summary.plan.shares_memory


class Point(tuple):
    """A tuple with a constructor of its own."""

    def __new__(cls, x, y):
        return tuple.__new__(cls, (x, y))


class Named(list):
    """A list that must be given a name."""

    def __init__(self, name, items):
        super().__init__(items)
        self.name = name


def test_a_sequence_with_a_constructor_of_its_own_keeps_type_and_attributes():
    """Past the constructor, which wants other arguments."""
    t = torch.ones(2)
    out = tnp.to_numpy(Point(t, t))
    assert (type(out), len(out)) == (Point, 2)
    out = tnp.to_numpy(Named("batch", [t]))
    assert (type(out), out.name, out[0].tolist()) == (Named, "batch", [1, 1])


class OnlyTensors(dict):
    """A dict that takes tensors only."""

    def __setitem__(self, key, value):
        assert isinstance(value, torch.Tensor)
        super().__setitem__(key, value)


def test_a_dict_that_takes_no_arrays_becomes_a_plain_one():
    """Its arrays are still given."""
    d = OnlyTensors()
    d["a"] = torch.ones(2)
    out = tnp.to_numpy(d)
    assert type(out) is dict
    assert out["a"].tolist() == [1, 1]


def test_a_symbolic_zero_converts_to_another_dtype():
    """It has to be made real before it is cast."""
    zero = torch._efficientzerotensor((2, 3))
    plan = tnp.plan(zero, dtype="float64")
    assert tnp.to_numpy(zero, dtype="float64").tolist() == [[0, 0, 0], [0, 0, 0]]
    assert eval(plan.code, {"t": zero, "np": np, "torch": torch}).dtype == np.float64


def test_a_mask_over_a_dtype_that_torch_cannot_mask_is_refused():
    """A sentence, and not a TypeError from the depths."""
    array = np.ma.MaskedArray(np.ones(3, np.uint8), mask=[0, 1, 0])
    with pytest.raises(tnp.UnsupportedArrayError, match="MaskedTensor of uint8"):
        tnp.to_tensor(array)


class Broken(dict):
    """A dict that raises after its first item."""

    def __len__(self):
        raise RuntimeError("no length")

    def items(self):
        yield "a", torch.ones(2)
        raise RuntimeError("no more")


@pytest.mark.parametrize(
    "container",
    [{"a": torch.ones(2), "n": 10**5000}, {10**5000: torch.ones(2)}, Broken(), {"a": torch.ones(2), "s": "x" * 10**6}],
    ids=["digits", "key", "broken", "text"],
)
def test_a_container_that_cannot_be_walked_or_printed_still_shows(container):
    """Promise 2: what can be reached is shown."""
    text = container_text(summarize_container(container, DisplayOptions()))
    assert "1., 1." in text
    assert len(text) < 2000


@since("2.8", "float4 is there")
def test_read_only_float4_code_runs():
    """The array is longer than the tensor, so its shape is spelled out."""
    t = torch.arange(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    plan = tnp.plan(t, writeable=False)
    made = eval(plan.code, {"t": t, "np": np, "torch": torch})
    assert made.tolist() == tnp.to_numpy(t, writeable=False).tolist()


def test_denormals_of_a_sparse_tensor_survive_flushing():
    """`exact` means what it says."""
    t = torch.tensor([[0.0, 1e-40]]).to_sparse()
    torch.set_flush_denormal(True)
    try:
        bits = tnp.to_numpy(t).view(np.int32).tolist()
        assert np.float32(1e-45) * np.float32(1) == 0, "the setting is as it was"
    finally:
        torch.set_flush_denormal(False)
    assert bits == [[0, int(np.float32(1e-40).view(np.int32))]]


def test_threads_that_look_together_leave_the_warning_filters_alone():
    """Filters are global; each thread restoring its own would leave another's behind."""
    sparse, before = torch.eye(30).to_sparse(), list(warnings.filters)
    threads = [
        threading.Thread(target=lambda: [summarize(sparse, DisplayOptions()) for _ in range(40)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", 3.5])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(device):
    """Not with an AssertionError about a build."""
    with pytest.raises(tnp.BadRequestError, match="cannot be used here"):
        tnp.to_tensor(np.zeros(2), device=device)


def test_a_c_type_with_another_name_converts():
    """NumPy has two C types of eight bytes; torch knows one."""
    assert tnp.to_tensor(np.ones(3, np.ulonglong)).dtype == torch.uint64


def test_bool_to_a_dtype_without_zero_is_lossy():
    """float8_e8m0fnu holds powers of two only."""
    assert not tnp.plan(torch.ones(3, dtype=torch.bool), dtype="float8_e8m0fnu").exact


def test_a_list_of_empty_lists_is_left_to_ipython_at_once():
    """An empty container counts as a leaf, or the search for a tensor would see none, and never end."""
    assert sum(1 for _ in islice(walk([[] for _ in range(10**6)]), 1000)) == 1000
