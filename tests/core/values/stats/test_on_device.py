"""Statistics on a device that is written in Python: computed there, with next to nothing allocated or moved."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from accelerator import Ledger, needs_card, register
from child import in_fork

import tensornp as tnp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor import kinds
from tensornp.core.tensor.info import inspect
from tensornp.core.values.reading.supply import nbytes_unasked

NUMEL = 300_000


def values(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    t = torch.randn(3, NUMEL // 3, generator=torch.Generator().manual_seed(0)) * 20
    t = t.to(dtype)
    if dtype.is_floating_point:
        t[1, 77], t[2, 5] = math.nan, -math.inf
    return t


def check_same(ledger: Ledger, host: torch.Tensor) -> None:
    """Hold the figures on the card to those on the host."""
    card, expected = host.to("card"), tnp.stats(host, histogram=None)
    ledger.clear()
    found = tnp.stats(card, histogram=None)
    for name in ("count", "nan", "posinf", "neginf", "zeros", "min", "max"):
        assert getattr(found, name) == getattr(expected, name), (host.dtype, name)
    for name in ("sum", "mean", "std", "norm"):
        assert math.isclose(getattr(found, name), getattr(expected, name), rel_tol=1e-9), (host.dtype, name)


@needs_card
@in_fork
def test_figures_are_computed_there_and_only_they_come_to_the_host():
    """Every dtype; a chunk of memory at a time, and some hundred bytes moved."""
    ledger = register()
    for name in ("float32", "float64", "bfloat16", "float16", "int32", "int8", "uint8"):
        check_same(ledger, values(getattr(torch, name)))
        num_blocks = -(-NUMEL // 2**17) * 2
        if name == "float32":
            assert ledger.to_host <= 10 * 8 * num_blocks + 2**17
    check_same(ledger, values()[:, ::2])
    check_same(ledger, values().T)


@needs_card
@in_fork
def test_a_card_leaves_the_device_alone():
    """No statistics unasked: only what is printed is read."""
    ledger = register()
    t = values().to("card")
    ledger.clear()
    summary = summarize(t, DisplayOptions())
    assert summary.stats is None
    assert ledger.to_host < 2000


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 48),
        ({"device": torch.device("cuda:0")}, 0),
        ({"device": torch.device("mps")}, 0),
        ({"data_state": "meta"}, 0),
        ({"data_state": "freed"}, 0),
        ({"kind": kinds.LAZY}, 0),
        ({"kind": kinds.PENDING, "detail": kinds.WRITING}, 0),
        ({"shape": (2**20, 12), "stride": (0, 1)}, 48),
    ],
)
def test_what_is_read_unasked_is_decided_by_facts_alone(changes, expected):
    """Never on an accelerator, never what is lazy or pending; of an expanded tensor what is stored."""
    t = torch.zeros(12)
    assert nbytes_unasked(t, replace(inspect(t), **changes)) == expected
