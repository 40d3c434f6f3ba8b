"""A tensor is told again without a weak reference, which torch would take amiss."""

from __future__ import annotations

import gc

import pytest
import torch
from unchanged import unchanged

from tensornp.core.memory.identity import TensorReference

KINDS = {
    "float": lambda: torch.zeros(4),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(4)),
    "view": lambda: torch.zeros(4)[1:],
    "empty": lambda: torch.zeros(0),
    "meta": lambda: torch.zeros(4, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "inference": torch.inference_mode()(lambda: torch.zeros(4)),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_tensor_is_known_again_and_found(make):
    """By itself, among others, and among all objects there are; another one is not taken for it."""
    t, other = make(), make()
    with unchanged(t):
        reference = TensorReference(t)
        assert reference.is_of(t)
        assert not reference.is_of(other)
        assert reference.find() is t
        assert reference.find([None, other, t]) is t


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_torch_swaps_what_is_referred_to(make):
    """`swap_tensors`, and with it `Module.to` of subclass parameters, refuses what has a weak reference."""
    a, b = make(), make()
    kept = TensorReference(a)
    torch.utils.swap_tensors(a, b)
    assert kept


def test_a_tensor_that_moves_to_another_storage_is_still_the_same():
    """`.data =`, `set_` and `Module.half` replace the storage of a tensor that lives on."""
    m = torch.nn.Linear(2, 2)
    reference = TensorReference(m.weight)
    m.half()
    assert reference.is_of(m.weight)
    assert not reference.shares_storage(m.weight)


def test_no_tensor_and_no_memory_is_kept():
    """Once the last name is gone the storage is freed; a new tensor at the same place is another one."""
    t = torch.zeros(1000)
    reference = TensorReference(t)
    assert not reference.is_gone
    del t
    gc.collect()
    assert reference.is_gone
    assert reference.find() is None
    # One of these objects may well lie where the tensor lay.
    assert not any(reference.is_of(other) for other in [torch.zeros(1000) for _ in range(100)])
