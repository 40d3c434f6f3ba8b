"""The printers in marimo's registry: what they give, that they come twice and go exactly, and what stays others'."""

from __future__ import annotations

import functools

import pytest
import torch
from child import in_fork

import tensornp as tnp


def states():
    """Return what marimo's registry of formatters holds, by the registry's own attributes."""
    from marimo._output.formatting import FORMATTERS

    return {name: dict(value) if isinstance(value, dict) else value for name, value in vars(FORMATTERS).items()}


def made(obj):
    """Return what marimo makes of an object, which must be no traceback."""
    from marimo._output.formatting import try_format

    formatted = try_format(obj)
    assert formatted.traceback is None, formatted.traceback
    return formatted.mimetype, formatted.data


@in_fork
def test_bare_tensors_modules_and_containers_show_as_in_jupyter():
    """The HTML of their cards, also of a subclass that marimo has met before."""
    from tensornp.fronts import marimo as formatters

    t, layer = torch.arange(6.0).reshape(2, 3), torch.nn.Linear(3, 2)
    before = made(layer)
    formatters.register()
    formatters.register()
    for obj in (t, torch.nn.Parameter(t), layer, [t, 1], {"a": {"b": t}}, layer.state_dict()):
        assert made(obj) == ("text/html", tnp.card(obj).html)
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    assert "the storage holds 0 bytes" in made(freed)[1]
    formatters.unregister()
    formatters.unregister()
    assert made(layer) == before


@in_fork
def test_what_is_registered_is_taken_out_again_exactly():
    """No entry is left, also not of the subclasses that were met meanwhile."""
    from marimo._output.formatting import get_formatter

    from tensornp.fronts import marimo as formatters

    class Own(torch.Tensor):
        """Met while the printers are there."""

    get_formatter([])
    before = states()
    for _ in range(3):
        formatters.register()
        assert made(torch.ones(2).as_subclass(Own))[1].startswith('<div class="tensornp')
        formatters.unregister()
    assert states() == before


@in_fork
def test_what_another_library_formats_stays_its_own():
    """A subclass of tensors, a list of numbers, and what it has put in the place of our look-up since."""
    from marimo._output import formatting

    from tensornp.fronts import marimo as formatters

    class Theirs(torch.Tensor):
        """Formatted by another library."""

    formatting.formatter(Theirs)(lambda _: ("text/plain", "theirs"))
    formatters.register()
    assert made(torch.ones(2).as_subclass(Theirs)) == ("text/plain", "theirs")
    assert "tensornp" not in str(made([1, 2]))
    ours = formatting.FORMATTERS.get_formatter
    formatting.FORMATTERS.get_formatter = later = functools.partial(ours)
    formatters.unregister()
    assert formatting.FORMATTERS.get_formatter is later
    assert "tensornp" not in str(made([torch.ones(2)]))


@pytest.mark.slow
@in_fork
def test_records_show_without_registering():
    """Records as their cards; outside of a notebook no part of them is live.

    By `_repr_html_`, so do sphinx-gallery and a Jupyter that has not loaded the extension.
    """
    t, model = torch.arange(6.0).reshape(2, 3), torch.nn.Sequential(torch.nn.Linear(3, 2))
    w = tnp.weights(model)
    with tnp.follow(model) as run:
        model(t)
    for record in (tnp.plan(t), tnp.aliases(t, {"t": t, "u": t[0]}), tnp.compare(run, run), run, run.calls[0], w):
        assert record._repr_html_() == tnp.card(record).html
        assert made(record) == ("text/html", tnp.card(record).html), type(record)
    assert made(tnp.TensorWidget(t)) == ("text/html", tnp.TensorWidget(t)._repr_html_())
    assert made(tnp.plot(t))[1]
    assert made(tnp.image(t)) == ("text/html", tnp.image(t)._repr_html_())
