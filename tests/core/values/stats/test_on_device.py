"""Statistics of tensors on a device that is written in Python, and what is read of them unasked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from accelerator import needs_card, register
from child import in_fork

import tensornp as tnp
from tensornp.core.tensor import kinds
from tensornp.core.tensor.info import inspect
from tensornp.core.values.sources import nbytes_unasked

NUMEL = 300_000


def values(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    t = torch.randn(3, NUMEL // 3, generator=torch.Generator().manual_seed(0)) * 20
    t = t.to(dtype)
    if dtype.is_floating_point:
        t[1, 77], t[2, 5] = math.nan, -math.inf
    return t


def check_same(host: torch.Tensor) -> None:
    """Hold the figures of a tensor on the card to those on the host."""
    expected = tnp.stats(host, histogram=None)
    found = tnp.stats(host.to("card"), histogram=None)
    for name in ("count", "nan", "posinf", "neginf", "zeros", "min", "max"):
        assert getattr(found, name) == getattr(expected, name), (host.dtype, name)
    for name in ("sum", "mean", "std", "norm"):
        assert math.isclose(getattr(found, name), getattr(expected, name), rel_tol=1e-9), (host.dtype, name)


@needs_card
@in_fork
def test_figures_are_those_on_the_host():
    """Whatever the dtype and the strides."""
    register()
    for name in ("float32", "float64", "bfloat16", "float16", "int32", "int8", "uint8"):
        check_same(values(getattr(torch, name)))
    check_same(values()[:, ::2])
    check_same(values().T)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 48),
        ({"device": torch.device("cuda:0")}, 0),
        ({"device": torch.device("mps")}, 0),
        ({"data_state": "meta"}, 0),
        ({"data_state": "freed"}, 0),
        ({"kind": kinds.PENDING, "detail": kinds.WRITING}, 0),
        ({"shape": (2**20, 12), "stride": (0, 1)}, 48),
    ],
)
def test_what_is_read_unasked_is_decided_by_facts_alone(changes, expected):
    """Never on an accelerator, never what is lazy or pending; of an expanded tensor what is stored."""
    t = torch.zeros(12)
    assert nbytes_unasked(replace(inspect(t), **changes)) == expected
