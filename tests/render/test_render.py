"""Renderers: words and markup from records alone."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.summary.card import TensorSummary, summarize
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.collections.container import container_document
from tensornp.render.tensor.badges import badges_of
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.render.tensor.receipt import receipt_text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**20 - 1, "1 MiB"),
     (2**40, "1 TiB"), (4 * 2**60, "4 EiB"), (2**80, "1048576 EiB")],
)  # fmt: skip
def test_bytes_read_well(nbytes, text):
    """In the unit that needs the fewest digits."""
    assert format_nbytes(nbytes) == text


def test_every_badge_explains_itself_in_a_sentence():
    """Title text: a capital, a full stop, more than the badge says."""
    with torch.inference_mode():
        inference = torch.ones(2)
    tensors = [
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, 2).T.bfloat16(),
        torch.ones(1).expand(3),
        torch.empty(0),
        torch.ones(2, device="meta"),
        torch.ones(2).share_memory_(),
        inference,
    ]
    for t in tensors:
        for badge in badges_of(summarize(t, DisplayOptions())):
            assert badge.title[0].isupper()
            assert badge.title.endswith(".")
            assert len(badge.title) > len(badge.kind)


def test_a_tensor_of_which_nothing_can_be_read_still_has_a_card():
    """At worst the type and the reason."""
    broken = TensorSummary("Odd", "view", None, None, "RuntimeError: no", None)
    assert tensor_text(broken) == "Odd\nRuntimeError: no"
    assert "RuntimeError: no" in tensor_html(broken, DisplayOptions())


def test_an_empty_place_in_the_middle_of_a_table_is_where_the_rows_are_left_out():
    """First and last rows stand around the line that says how many are missing, in text and HTML alike."""
    summary = summarize_container([torch.full((1,), float(i)) for i in range(100)], DisplayOptions(max_rows=8))
    lines = container_document(summary).text().splitlines()
    assert lines[7].startswith("[5]")
    assert "92 more left out" in lines[8]
    assert lines[9].startswith("[98]")
    html = container_document(summary).html()
    assert html.index("[5]") < html.index("92 more") < html.index("[98]")


def test_receipts_name_what_may_surprise():
    """Warnings of a plan are part of its receipt."""
    assert "note: autograd" in receipt_text(tnp.plan(torch.ones(1, requires_grad=True), writeable=True))


def test_a_type_with_markup_in_its_name_is_escaped():
    """Names are the user's, and may hold anything."""
    evil = type("<b>x</b>", (torch.Tensor,), {})
    assert "<b>" not in tensor_html(summarize(torch.ones(1).as_subclass(evil), DisplayOptions()), DisplayOptions())
