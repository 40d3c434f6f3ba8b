"""`tnp.card`: the static card as an object."""

from __future__ import annotations

import gc
import re
import weakref
from html import escape, unescape
from importlib import import_module

import numpy as np
import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from unchanged import unchanged

import tensornp as tnp
from tensornp.render.renderers import RENDERERS


@pytest.mark.parametrize("obj", [torch.zeros(5, 5), {"a": torch.zeros(2), "n": 3}, torch.nn.Linear(2, 2)], ids=type)
def test_a_card_shows_wherever_something_asks_for_html_or_text(obj):
    """In IPython without the extension, in marimo, in print."""
    card = tnp.card(obj)
    assert isinstance(card, tnp.Card)
    bundle, _ = DisplayFormatter().format(card)
    assert bundle["text/html"] == card._mime_()[1] == card.html
    assert card._mime_()[0] == "text/html"
    assert bundle["text/plain"] == str(card) == repr(card) == card.text
    assert card.html.startswith('<div class="tensornp')
    assert "<script" not in card.html


def test_it_is_what_it_was_and_keeps_nothing_alive():
    """Making it changes nothing either."""
    t = torch.zeros(5)
    gone = weakref.ref(t)
    with unchanged(t):
        card = tnp.card(t)
    t += 1
    assert "0., 0., 0., 0., 0." in card.text
    del t
    gc.collect()
    assert gone() is None


def test_options_are_those_of_the_display():
    """By the same names, with the same bounds."""
    t = torch.full((40, 3), 1 / 3)
    assert "<summary" not in tnp.card(t, max_height=0, receipt="hidden").html
    assert "[0.33, 0.33, 0.33]" in tnp.card(t, precision=2).text
    assert tnp.card(t, style="line").text.count("\n") == 0
    assert tnp.card(t, precision="numpy").text == tnp.card(t).text
    for options, said in [
        ({"colour": 1}, "no display option 'colour'; choose from mode, "),
        ({"style": "big"}, "style must be one of auto, card, line, got 'big'"),
        ({"max_rows": 3}, "max_rows must be an integer from 4 to 500, got 3"),
        ({"max_height": True}, "max_height must be an integer, 0 or more, got True"),
    ]:
        with pytest.raises(tnp.BadRequestError, match=said):
            tnp.card(t, **options)
    with pytest.raises(tnp.NotATensorError, match="not 'int'"):
        tnp.card(3)


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(20, 3), torch.nn.Linear(3, 2, bias=False))


def values() -> torch.Tensor:
    t = torch.arange(12.0).reshape(3, 4)
    t[1, 2] = torch.nan
    return t


RECORDS = {
    "explorer": (lambda: tnp.weights(model()), ["3 weights", "69 parameters"]),
    "part": (lambda: tnp.weights(model())["1"], ["1 weight", "6 parameters"]),
    "entry": (lambda: tnp.weights(model())["1.weight"], ["1.weight", "(2, 3)", "24 (6 elements)", "array([["]),
    "entry without values": (lambda: tnp.weights(model())["1.bias"], ["1.bias", "it is registered as None"]),
    "scan": (lambda: tnp.weights(model()).scan(progress=False), ["3 weights", "0 findings"]),
    "models compared": (lambda: tnp.compare(model(), model()), ["Sequential", "same bits"]),
    "compared": (
        lambda: tnp.compare(values(), values() + 1),
        ["many elements differ", "11 (91.67%)", "largest difference"],
    ),
    "stats": (lambda: tnp.stats(values()), ["12", "norm", "8.33%"]),
    "stats by axis": (lambda: tnp.stats(values(), axis=0), ["3 indices", "1.118"]),
    "located": (lambda: tnp.locate(values()), ["1 NaN at [1, 2]"]),
    "many located": (lambda: tnp.locate(torch.zeros(99), "zero"), ["99 zero", "the first 10: [0], [1]"]),
    "none located": (lambda: tnp.locate(torch.ones(3), "zero"), ["no zero"]),
    "plan": (lambda: tnp.plan(values()), ["float32", "exact"]),
    "facts": (lambda: tnp.inspect(values()), ["(3, 4)", "float32"]),
    "image": (lambda: tnp.image(torch.rand(3, 4, 5)), ["4", "as they are"]),
    "live card": (lambda: tnp.TensorWidget(values()), ["(3, 4)", "float32", "array([["]),
    "card": (lambda: tnp.card(values()), ["(3, 4)", "float32", "array([["]),
    "arrays": (lambda: [np.arange(4.0), np.ones(2)], ["list of 2 arrays · 48 bytes · all float64", "0., 1., 2., …"]),
    "an array beside a tensor": (lambda: [values(), np.ones(2)], ["list of 2 · 1 tensor · 1 array", "1., 1."]),
    "an empty list": (list, ["list of 0 · 0 tensors · 0 bytes"]),
    "aliases": (lambda: tnp.aliases(values(), {}), ["nothing else sees these bytes"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECORDS)
def test_what_a_function_returns_has_its_view_as_a_card(kind):
    """In text as in HTML."""
    make, says = RECORDS[kind]
    card = tnp.card(make())
    assert card.html.startswith('<div class="tensornp')
    alt = re.findall('alt="([^"]*)"', card.html)
    seen = unescape(" ".join([re.sub("<[^>]+>", " ", card.html), *alt]))
    for part in says:
        assert part in card.text
        assert part in seen


ARRAYS = {
    "plain": (np.arange(6.0).reshape(2, 3), ["(2, 3)", "float64", "48 bytes", "C-contiguous, strides (24, 8)"]),
    "transposed": (np.arange(6).reshape(2, 3).T, ["(3, 2)", "int64", "Fortran-contiguous, strides (8, 24)"]),
    "sliced": (np.arange(40)[::2], ["(20,)", "not contiguous, strides (16,)"]),
    "backwards": (np.arange(3)[::-1], ["strides (-8,)"]),
    "a number": (np.array(3), ["()", "strides ()"]),
    "empty": (np.zeros((0, 3)), ["(0, 3)", "0 bytes"]),
    "large": (np.zeros(100_000), ["(100000,)", "781.2 KiB"]),
    "text": (np.array(["<b>", "c"]), ["<U3"]),
    "records": (np.zeros(2, "i4,f4"), ["16 bytes"]),
    "masked": (np.ma.array([1, 2], mask=[False, True]), ["(2,)", "int64"]),
    "dates": (np.array(["2024-01-01"], "M8[D]"), ["datetime64[D]"]),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_has_a_card_of_what_numpy_prints_of_it(kind):
    """Under its facts."""
    array, says = ARRAYS[kind]
    card = tnp.card(array)
    assert card.text.endswith(f"\n{array!r}")
    assert f">{escape(repr(array))}</pre>" in card.html
    for part in [*says, "writeable", "who else sees it: not known"]:
        assert part in card.text
        assert escape(part) in card.html
    if not isinstance(array, np.ma.MaskedArray):
        array = array.view()
        array.flags.writeable = False
        assert "read-only" in tnp.card(array).text
    with np.printoptions(threshold=3, precision=2):
        assert tnp.card(array).text.endswith(f"\n{array!r}")


def test_the_card_of_an_array_runs_nothing_of_its_own():
    """Neither of its elements nor of its class, and prints no more than a bound."""

    class Odd(np.ndarray):
        def __repr__(self) -> str:
            raise AssertionError("a method ran")

        __str__ = __getitem__ = __array_ufunc__ = __repr__

    class Element:
        def __repr__(self) -> str:
            raise AssertionError("a method ran")

    assert tnp.card(np.ndarray.__new__(Odd, (2,), buffer=np.ones(2))).text.endswith("array([1., 1.])")
    assert "the values are not shown" in tnp.card(np.array([Element()])).text
    with np.printoptions(formatter={"float": lambda value: 1 / 0}):
        assert "division by zero" in tnp.card(np.ones(2)).text


def test_each_renderer_is_there():
    """Each class of the table exists, and each function."""
    for path, renderer in RENDERERS.items():
        module, _, name = path.rpartition(".")
        assert isinstance(getattr(import_module(module), name), type)
        module, _, name = renderer.partition(":")
        assert not name or callable(getattr(import_module(module), name))


def test_rows_of_arrays_run_nothing_of_theirs():
    """Objects in an array are not printed, and what a subclass overrides is not asked."""
    assert "(1,)   object   8 bytes  the values are not shown" in tnp.card([np.array([object()]), np.ones(1)]).text
    masked = tnp.card({"m": np.ma.MaskedArray([1, 2], mask=[True, False])}).text
    assert masked.endswith("--, 2")
    assert tnp.card([]).text.count("\n") == 0


def test_it_is_saved_as_a_page_that_stands_alone_or_as_its_text(tmp_path):
    """In UTF-8, whatever the locale; the page needs nothing else."""
    card = tnp.card(torch.ones(2, dtype=torch.bfloat16))
    card.save(tmp_path / "card.html")
    card.save(str(tmp_path / "card.TXT"))
    page = (tmp_path / "card.html").read_bytes().decode("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<html") == page.count("</html>") == page.count('<meta charset="utf-8">') == 1
    assert card.html in page
    assert "http" not in page.replace(card.html, "")
    assert (tmp_path / "card.TXT").read_bytes().decode("utf-8").splitlines() == card.text.splitlines()
