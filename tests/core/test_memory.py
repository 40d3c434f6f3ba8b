"""Nothing absurd is tried: what an array would take is counted before, and refused above a limit."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.core.memory import free_nbytes
from tensornp.core.options import DisplayOptions
from tensornp.core.summary import plan_modes, summarize

TERA = torch.zeros(1).expand(2**20, 2**20)


def test_a_copy_past_the_limit_is_refused_with_the_bytes():
    """The limit is the caller's; one byte more would do."""
    t = torch.ones(1000)
    with pytest.raises(tnp.TooLargeError, match=r"4,000 bytes, more than the 3,999"):
        tnp.to_numpy(t, copy=True, max_nbytes=3999)
    assert tnp.to_numpy(t, copy=True, max_nbytes=4000).nbytes == 4000
    assert tnp.to_numpy(t, max_nbytes=0).nbytes == 4000, "sharing takes none"


def test_without_a_limit_the_machine_sets_it():
    """Four tebibytes are refused at once, not tried."""
    with pytest.raises(tnp.TooLargeError, match="4,398,046,511,104 bytes"):
        tnp.to_numpy(TERA, copy=True)
    assert tnp.to_numpy(TERA).shape == TERA.shape, "a view takes none"


def test_the_limit_counts_what_widening_takes():
    """bfloat16 doubles."""
    with pytest.raises(tnp.TooLargeError, match="4,000 bytes"):
        tnp.to_numpy(torch.ones(1000, dtype=torch.bfloat16), max_nbytes=3000)


def test_too_large_is_a_memory_error_too():
    """`except MemoryError` catches it, as it would NumPy's."""
    with pytest.raises(MemoryError):
        tnp.plan(TERA, copy=True)


def test_a_card_of_what_is_too_large_shows_its_corners_and_says_so():
    """No array, but values: the printed elements take no more than any others."""
    huge = torch.sparse_coo_tensor([[0], [9_999_999]], [7.0], (10**7, 10**7), check_invariants=True)
    summary = summarize(huge, DisplayOptions())
    assert summary.plan is None
    assert "7.]" in summary.preview.text
    assert "400,000,000,000,000 bytes" in summary.preview.note


def test_the_toggle_does_not_offer_a_copy_that_cannot_be():
    """The reason stands in its place."""
    offered = plan_modes(tnp.inspect(TERA), DisplayOptions())
    assert offered["view"].shares_memory
    assert "max_nbytes" in offered["copy"]


def test_small_arrays_are_made_without_asking(monkeypatch):
    """Only large ones are worth a look at the machine."""
    monkeypatch.setattr("tensornp.core.memory._free_nbytes_at", lambda second: 0)
    assert tnp.to_numpy(torch.ones(1000), copy=True).nbytes == 4000
    with pytest.raises(tnp.TooLargeError):
        tnp.plan(torch.ones(1).expand(2**27), copy=True)


def test_a_container_of_the_operating_system_has_less(tmp_path):
    """The limit of its control group counts, less what is used and more what can be dropped."""
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    (tmp_path / "memory.stat").write_text("anon 300000\ninactive_file 50000\n")
    assert free_nbytes(tmp_path) == 650_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_nbytes(tmp_path) > 650_000
    assert free_nbytes(tmp_path / "absent") > 650_000
