"""What functions of tensornp return, as the value of a cell: the card of `tnp.card`, and what the magics show."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import tensornp as tnp


@pytest.fixture
def names(shell):
    """A tensor with a NaN, and another, in the shell."""
    t = torch.arange(12.0).reshape(3, 4)
    t[1, 2] = torch.nan
    shell.namespace.update({"t": t, "u": t + 1, "m": torch.nn.Linear(3, 2, bias=False), "tnp": tnp})
    return shell


RECORDS = (
    "tnp.stats(t)", "tnp.stats(t, axis=0)", "tnp.compare(t, u)", "tnp.compare(t, t)", "tnp.locate(t)",
    "tnp.locate(t, 'max')", "tnp.weights(m)", "tnp.weights(m)['weight']", "tnp.weights(m)['bias']",
    "tnp.weights(m).scan(progress=False)", "tnp.compare(m, m)", "tnp.plan(t)", "tnp.inspect(t)", "tnp.aliases(t)",
)  # fmt: skip


@pytest.mark.parametrize("expression", RECORDS)
def test_a_record_is_shown_as_its_card(names, expression):
    """In each MIME type; a list of them is left to IPython."""
    value = eval(expression, names.namespace)
    shown, card = names.show_within_modes(value), tnp.card(value)
    assert shown == {"text/plain": card.text, "text/html": card.html}
    assert "text/html" not in names.show_within_modes([value])


def numbers_in(html: str) -> list[str]:
    return re.findall(r">([^<>]*\d[^<>]*)<", html)


MAGICS = {"%tensorstats t": "tnp.stats(t)", "%tensordiff t u": "tnp.compare(t, u)"}


@pytest.mark.parametrize(("magic", "expression"), MAGICS.items())
def test_a_record_tells_the_figures_of_its_magic(names, magic, expression):
    """All of them but the places, and the picture of a tensor that the record does not have any more."""
    names.run(magic)
    (by_magic,) = [numbers_in(data["text/html"]) for data in names.displayed]
    shown = names.show(eval(expression, names.namespace))["text/html"]
    assert len(numbers_in(shown)) > 10
    assert {"12", "11"} <= set(" ".join(numbers_in(shown)).replace(",", " ").split())
    assert [one for one in numbers_in(shown) if one not in by_magic] in ([], ["TensorStats"])


def test_arrays_stay_as_numpy_shows_them(names):
    """Only `tnp.card` makes cards of them."""
    assert set(names.show(np.ones(3))) == {"text/plain"}


def test_looking_for_a_view_imports_nothing():
    """Neither torch nor the explorer of weights, before somebody has used them."""
    code = (
        "import sys; from tensornp.render.renderers import renderer_of; "
        "print(renderer_of(3), renderer_of([]), sorted({'torch', 'numpy', 'tensornp.models'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "None None []"
