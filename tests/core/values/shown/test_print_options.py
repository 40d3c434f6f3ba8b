"""Print options of a card: compact ones unless the user has chosen NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensornp as tnp


@pytest.fixture(autouse=True)
def _numpys_defaults():
    with np.printoptions(linewidth=75):
        yield


def printed(array: np.ndarray, **options: object) -> str:
    with np.printoptions(precision=4, linewidth=100, **options):
        return repr(array)


@pytest.mark.parametrize("shape", [(), (12,), (3, 7), (384, 384), (2, 3, 600)])
def test_values_have_four_digits_in_long_lines(shape):
    t = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert printed(t.numpy().copy(), suppress=True) in tnp.card(t).text


@pytest.mark.parametrize("small", [1e-9, 4e-5])
def test_a_small_number_keeps_its_exponent(small):
    """With four decimals it would print as 0."""
    t = torch.tensor([small, 1.0])
    assert printed(t.numpy().copy()) in tnp.card(t, style="card").text
    assert "e-" in tnp.card(t).text


@pytest.mark.parametrize(("numbers", "text"), [([0.05, 6e-6], "[0.05   , 0.00001]"), ([0.0, 2e-3], "[0.   , 0.002]")])
def test_numbers_below_a_tenth_have_more_digits(numbers, text):
    """The weights of a layer are such numbers, and read worst with exponents."""
    assert text in tnp.card(torch.tensor(numbers)).text


def test_an_exponent_is_dropped_up_to_five_digits():
    assert "[    0., 99999.]" in tnp.card(torch.tensor([0.0, 99999.0])).text
    assert "1.e+05" in tnp.card(torch.tensor([1e-4, 1e5])).text


@pytest.mark.parametrize("options", [{"precision": 3}, {"suppress": True}, {"linewidth": 100}, {"floatmode": "fixed"}])
def test_print_options_of_the_user_count(options):
    t = torch.rand(30, generator=torch.Generator().manual_seed(0))
    with np.printoptions(**options):
        assert repr(t.numpy().copy()) in tnp.card(t).text


def test_precision_numpy_gives_numpys_text():
    t = torch.rand(30, generator=torch.Generator().manual_seed(0))
    assert repr(t.numpy().copy()) in tnp.card(t, precision="numpy").text
    assert repr(t.numpy().copy()) not in tnp.card(t).text
    assert printed(t.numpy().copy(), suppress=True) in tnp.card(t, precision="auto").text
