"""The card: NumPy's own text under badges that tell the truth, for every tensor, without changing any."""

from __future__ import annotations

import collections
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from display import array_in, without_figures
from hypothesis import HealthCheck, assume, given, settings
from strategies import PRINT_OPTIONS, converted, tensors

from tensornp.core.values.shown.preview import MAX_ELEMENTS


def words(html: str) -> str:
    """Return what is left of a page without any tag."""
    return unescape(re.sub(r"<[^>]+>", "", html))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tensors(), PRINT_OPTIONS)
def test_html_and_text_hold_what_numpy_prints(shell, t, options):
    """Promise 3 through the real formatter, and promise 1 at the same time."""
    # Of more than a card reads, it shows the outer ones and says so; with 0 edge items NumPy measures all elements.
    reads_all = t.numel() <= options.get("threshold", 1000) or options.get("edgeitems") == 0
    assume(not reads_all or t.numel() <= MAX_ELEMENTS)
    whole = converted(t)
    with np.printoptions(**options):
        data = shell.show(t)
        assume("only the outer ones are shown" not in data["text/plain"])
        assert array_in(data["text/html"]) == repr(whole)
        assert without_figures(data["text/plain"]).split("\n", 1)[1] == repr(whole)


def test_a_subclass_of_the_user_shows_a_card(shell):
    """Also one that was defined a moment ago, with a `__repr__` of its own."""

    class Mine(torch.Tensor):
        def __repr__(self, **_):
            raise RuntimeError("never called")

    data = shell.show(torch.ones(2).as_subclass(Mine))
    assert data["text/plain"].startswith("Mine | (2,)")
    assert "array([1., 1.]" in data["text/html"]


@pytest.mark.parametrize(
    ("make", "badges"),
    [
        (lambda: torch.ones(2), ["(2,)", "float32", "cpu", "shared"]),
        (lambda: torch.ones(2, requires_grad=True) * 2, ["from MulBackward0", "shared"]),
        (lambda: torch.ones(2).bfloat16(), ["bfloat16", "float32 copy 8 bytes"]),
        (lambda: torch.ones(2, dtype=torch.complex64).conj(), ["copy 16 bytes", "conj"]),
        (lambda: torch.ones(2, 3).T, ["non-contiguous"]),
        (lambda: torch.ones(1).expand(4), ["expanded"]),
        (lambda: torch.ones(2).share_memory_(), ["process-shared"]),
        (lambda: torch.empty(0, 3), ["(0, 3)", "empty"]),
        (lambda: torch.ones(2, device="meta"), ["meta", "no array"]),
        (lambda: torch.nn.LazyLinear(2).weight, ["no shape yet", "no array"]),
    ],
)
def test_badges_say_what_is_so(shell, make, badges):
    """Each badge is words, also where every tag and attribute is stripped."""
    data = shell.show(make())
    for badge in badges:
        assert badge in data["text/plain"].split("\n")[0].split(" | ")
        assert badge in words(data["text/html"])


def test_static_html_survives_every_sanitizer_and_theme(shell):
    """No style, script, svg, id, custom property or text colour, and under 3 KB for a small tensor."""
    for t in (torch.ones(3, 4), torch.nn.Parameter(torch.ones(2).bfloat16()), torch.ones(2, device="meta")):
        html = shell.show(t)["text/html"]
        assert not re.search(r"<style|<script|<svg|var\(|\sid=|[^-]color:", html.replace("background-color:", ""))
        assert len(html.encode()) < 3000


def test_names_and_values_are_escaped(shell):
    """A key of a dict, or a formatter of NumPy, may hold markup."""
    evil = "<script>alert(1)</script>"
    assert "<script>" not in shell.show({evil: torch.ones(2)})["text/html"]
    with np.printoptions(formatter={"float": lambda x: evil}):
        assert "<script>" not in shell.show(torch.ones(2))["text/html"]


def test_the_reason_for_no_values_is_a_sentence_on_the_page_too(shell):
    """Of each kind without values, the gallery has the text."""
    t = torch.ones(10)
    t.untyped_storage().resize_(0)
    data = shell.show(t)
    reason = data["text/plain"].split("\n", 1)[1]
    assert len(reason.split()) > 5
    assert reason in words(data["text/html"])


def test_a_transform_of_the_user_sees_nothing_of_a_display(shell):
    """Inside torch.func, plain tensors show as ever."""
    t = torch.arange(3.0)
    expected = shell.show(t)["text/plain"]
    torch.func.grad(lambda x: (x * (shell.show_within_modes(t)["text/plain"] == expected)).sum())(torch.ones(2))


def test_a_large_state_dict_is_folded_as_a_model_is(shell):
    """2,000 tensors stay under 100 KB of output, also if none is like another."""
    state = collections.OrderedDict((f"layer.{i}.weight", torch.ones(3, 3)) for i in range(2000))
    assert "layer.{0..1999}.weight" in shell.show(state)["text/plain"]
    state = collections.OrderedDict((f"layer.{i}.weight", torch.ones(3, i)) for i in range(2000))
    data = shell.show(state)
    assert len(data["text/html"].encode()) + len(data["text/plain"].encode()) < 100_000
    for text in (words(data["text/html"]), data["text/plain"]):
        assert "1,900 more weights left out" in text
        assert "OrderedDict · 2,000 weights · 5,997,000 elements · 22.9 MiB · all float32, cpu" in text
        assert "layer.0.weight" in text


def test_an_optimizer_is_a_table_of_its_states(shell):
    """Each parameter is a row with the sizes of its states; options have one line, and torch's text is a fold."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, i + 1) for i in range(9)])
    optimizer = torch.optim.AdamW(model.named_parameters())
    assert "text/html" not in shell.show(optimizer), "it has no state yet"
    sum(layer(torch.ones(4)).sum() for layer in model).backward()
    optimizer.step()
    data = shell.show(optimizer)
    assert "state.8.weight.{step,exp_avg,exp_avg_sq}" in data["text/plain"]
    assert "param_groups.0.lr: 0.001 · betas: 0.9, 0.999 · eps: 1e-08 · weight_decay: 0.01" in data["text/plain"]


def test_a_dict_whose_keys_are_tensors_never_prints_them(shell):
    """`optimizer.state` is keyed by parameters; the repr of a freed one ends the process."""
    p = torch.nn.Parameter(torch.ones(4))
    adam = torch.optim.Adam([p])
    p.sum().backward()
    adam.step()
    p.untyped_storage().resize_(0)
    text = shell.show(adam.state)["text/plain"]
    assert "[<Parameter>]['exp_avg']" in text


Point = collections.namedtuple("Point", "x y")


def test_containers_without_tensors_print_as_ever(shell):
    """Not a character differs, and there is no HTML."""
    for obj in ([1, 2], (), {"a": [1]}, Point(1, 2), collections.OrderedDict(a=1), [[]] * 3, list(range(2000))):
        bare = shell.ip.display_formatter.formatters["text/plain"]
        ours = shell.show(obj)
        shell.ip.run_line_magic("unload_ext", "tensornp")
        assert ours == {"text/plain": bare(obj)}
        shell.ip.run_line_magic("load_ext", "tensornp")


def test_a_tensor_inside_something_else_prints_in_one_line(shell):
    """An object's repr by IPython stays readable."""
    assert shell.show(SimpleNamespace(t=torch.ones(2)))["text/plain"] == "namespace(t=<Tensor (2,) float32: 1., 1.>)"


def test_every_mime_type_of_one_display_comes_from_one_summary(shell, monkeypatch):
    """The tensor is gathered once; a later display gathers anew."""
    from tensornp.core.summary import container

    calls = []
    whole = container.summarize
    monkeypatch.setattr(container, "summarize", lambda *args: calls.append(1) or whole(*args))
    t = torch.zeros(2)
    assert "0., 0." in shell.show(t)["text/html"]
    assert len(calls) == 1
    t += 1
    assert "1., 1." in shell.show(t)["text/html"]
    assert len(calls) == 2


def test_a_card_shows_the_mode_of_the_configuration(shell):
    """`%config TensorDisplay.mode`: copy and share show their own badges."""
    shell.run("%config TensorDisplay.mode = 'share'")
    assert "shared, writeable" in shell.show(torch.ones(2))["text/plain"]
    assert "shared, writeable" in shell.show(torch.ones(2).bfloat16())["text/plain"]
    shell.run("%config TensorDisplay.mode = 'copy'")
    assert "copy 8 bytes" in shell.show(torch.ones(2))["text/plain"]
