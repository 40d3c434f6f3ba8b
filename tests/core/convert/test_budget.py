"""Nothing absurd is tried: what an array would take is counted before, and refused above a limit."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.core.summary.card import plan_modes, summarize
from tensornp.core.summary.options import DisplayOptions

TERA = torch.zeros(1).expand(2**20, 2**20)


def test_a_copy_past_the_limit_is_refused_with_the_bytes():
    """The limit is the caller's; one byte more would do."""
    t = torch.ones(1000)
    with pytest.raises(
        tnp.TooLargeError, match=r"4,000 bytes, and 3,999 bytes are allowed; .*, or pass a larger max_n"
    ):
        tnp.to_numpy(t, copy=True, max_nbytes=3999)
    assert tnp.to_numpy(t, copy=True, max_nbytes=4000).nbytes == 4000
    assert tnp.to_numpy(t, max_nbytes=0).nbytes == 4000, "sharing takes none"


def test_without_a_limit_the_machine_sets_it():
    """Four tebibytes are refused at once, not tried."""
    with pytest.raises(tnp.TooLargeError, match=r"4 TiB, and .* are free; slice the tensor first$"):
        tnp.to_numpy(TERA, copy=True)
    with pytest.raises(tnp.TooLargeError, match=r"slice the tensor first$"):
        tnp.weights({"a": TERA})["a"].to_numpy(copy=True)
    assert tnp.to_numpy(TERA).shape == TERA.shape, "a view takes none"


def test_a_card_of_what_is_too_large_shows_its_corners_and_says_so():
    """No array, but values: the printed elements take no more than any others."""
    huge = torch.sparse_coo_tensor([[0], [9_999_999]], [7.0], (10**7, 10**7), check_invariants=True)
    summary = summarize(huge, DisplayOptions())
    assert summary.plan is None
    assert "7.]" in summary.preview.text
    assert "363.8 TiB" in summary.preview.note


def test_the_toggle_does_not_offer_a_copy_that_cannot_be():
    """The reason stands in its place."""
    offered = plan_modes(tnp.inspect(TERA), DisplayOptions())
    assert offered["view"].shares_memory
    assert "are free; slice the tensor first" in offered["copy"]


def test_the_limit_is_that_of_a_container_as_a_whole():
    """Four arrays of which each would fit; what shares takes none."""
    many = {"a": torch.ones(250), "b": [torch.ones(250), torch.ones(250, dtype=torch.float64)[::2]]}
    assert tnp.to_numpy(many, copy=True, max_nbytes=3000)["b"][1].nbytes == 1000
    with pytest.raises(tnp.TooLargeError, match="together take 3,000 bytes and more, and 2,999 bytes are"):
        tnp.to_numpy(many, copy=True, max_nbytes=2999)
    assert tnp.to_numpy(many, max_nbytes=0)["a"].nbytes == 1000
    with pytest.raises(tnp.TooLargeError, match="together take 2 KiB"):
        tnp.to_numpy([torch.ones(250, dtype=torch.bfloat16)] * 9, max_nbytes=1500)


@pytest.mark.parametrize("limit", ["5", float("nan"), -1])
def test_a_limit_that_is_no_number_of_bytes_is_refused(limit):
    """Bad input gets one clear sentence."""
    with pytest.raises(tnp.BadRequestError, match="max_nbytes"):
        tnp.to_numpy(torch.ones(3), max_nbytes=limit)
