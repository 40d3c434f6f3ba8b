"""The shown array text is, character for character, what NumPy prints of the fully converted array."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from older import needs_override_repr
from strategies import PRINT_OPTIONS, converted, tensors

import tensornp as tnp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.shown.preview import preview


def shown(t: torch.Tensor, max_elements: int = 10**7) -> str:
    return preview(t, tnp.inspect(t), tnp.plan(t), max_elements=max_elements, printoptions={}).text


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(tensors(), PRINT_OPTIONS)
def test_text_equals_repr_of_the_whole_array(t, options):
    """Promise 3, for random shapes, strides, dtypes, values and print options."""
    with np.printoptions(**options):
        assert shown(t) == repr(converted(t))


def test_a_formatter_of_the_user_is_obeyed():
    """`np.set_printoptions(formatter=...)` shapes the card too."""
    t = torch.arange(2000.0)
    with np.printoptions(formatter={"float": lambda x: f"<{x:.0f}]"}):
        assert shown(t) == repr(t.numpy())


def test_more_elements_than_a_page_holds_are_cut_with_a_note():
    """A threshold of 10**6 must not print 10**6 elements unasked."""
    t = torch.arange(300_000)
    with np.printoptions(threshold=10**6):
        result = preview(t, tnp.inspect(t), tnp.plan(t), max_elements=1000)
    assert len(result.text) < 20_000
    assert "1,000" in result.note


@needs_override_repr
def test_a_repr_of_the_user_does_not_take_the_corners_for_the_whole():
    """`override_repr` gets small arrays; a big one is printed by NumPy itself."""
    with np.printoptions(override_repr=lambda a: f"mine {a.shape}"):
        assert shown(torch.zeros(3)) == "mine (3,)"
        text = shown(torch.zeros(5000))
    assert text == repr(np.zeros(5000, np.float32))


def raising(*_: object, **__: object) -> str:
    """Print nothing, as a formatter that knows only other values."""
    raise ValueError("no such value")


def test_figures_stand_beside_an_array_that_cannot_be_printed(monkeypatch):
    """Whatever the reason, which stands in its place."""
    monkeypatch.setattr("tensornp.core.values.shown.preview._preview", raising)
    monkeypatch.setattr("tensornp.core.values.shown.preview.texts_of", raising)
    t = torch.tensor([[1.0, float("nan")]] * 20)
    text, page = str(tnp.card(t)), tnp.card(t)._repr_html_()
    for one in (text, page):
        assert "20 NaN" in one
        assert "finite: all 1" in one
        assert "ValueError: no such value" in one
    assert "[0] · 20 NaN" in str(tnp.card([t]))


@pytest.mark.parametrize("size", [10**5, 10**7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_is_allocated_in_proportion_to_the_tensor(size, dtype):
    """The bytes that torch's own profiler sees allocated do not grow with the tensor."""
    t = torch.ones(1, dtype=dtype).expand(size).view(10, -1).T
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        shown(t)
    assert sum(max(0, event.self_cpu_memory_usage) for event in seen.events()) < 20_000


def test_many_short_dimensions_are_not_printed_for_minutes():
    """Twenty qubits: even the outermost elements are a million."""
    summary = summarize(torch.zeros([2] * 20), DisplayOptions())
    assert "t.flatten()" in summary.preview.note
    assert summary.plan.shares_memory


def test_what_is_too_large_to_be_laid_out_shows_its_stored_parts():
    """1e12 elements, of which two are stored."""
    t = torch.sparse_coo_tensor([[5, 9], [7, 9]], [1.5, 2.5], (10**6, 10**6))
    seen = summarize(t, DisplayOptions(max_nbytes=10**15)).preview
    assert seen.text == "indices = array([[5, 9],\n                 [7, 9]])\nvalues = array([1.5, 2.5], dtype=float32)"
