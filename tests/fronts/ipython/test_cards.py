"""What a card looks like and says: its size, its words, the code that a person would write."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
import torch
from display import array_in
from older import needs_what_is_saved


@pytest.fixture
def set_option(shell):
    def set_option(**options):
        for name, value in options.items():
            shell.run(f"%config TensorDisplay.{name} = {value!r}")

    return set_option


def page(shell, obj):
    return html.unescape(shell.show(obj)["text/html"])


def array(shell, obj):
    return array_in(shell.show(obj)["text/html"])


def seen(shown):
    """Return the lines of an array that are seen without a click."""
    return re.search(r"<pre[^>]*>(.*?)</pre>", shown, re.DOTALL)[1].split("\n")


@pytest.mark.slow
def test_a_long_array_is_folded_between_lines_and_its_lines_do_not_break(shell, set_option):
    """The style says so itself, since the page's would break numbers; the fold counts lines that say something."""
    weight = torch.nn.Conv2d(3, 16, 3).weight
    whole = repr(weight.detach().numpy())
    shown = page(shell, weight)
    assert re.search(r'<pre style="[^"]*white-space:pre;', shown)
    assert len(seen(shown)) == 7
    num_more = sum(bool(line) for line in whole.split("\n")[7:])
    assert f">{num_more} more lines</summary>" in shown
    assert array(shell, weight) == whole, "whole, so that it can be copied"
    for number, num_seen in ((12, 12), (13, 7)):
        assert len(seen(page(shell, torch.ones(number, 2)))) == num_seen, "two lines are not worth a fold"
    set_option(max_height=0)
    assert "more lines" not in page(shell, weight)


@pytest.mark.slow
def test_nan_stands_out_of_what_is_printed(shell):
    """And in front of all badges; a mask's infinities are no alarm, and an array full of NaN is not painted over."""
    marks = re.compile(r'<span style="background-color:rgba\(217,119,6,[^"]*">(-?nanj?|-?infj?)</span>')
    odd = torch.tensor([[1, float("nan")], [float("-inf"), 2]])
    shown = page(shell, odd)
    assert marks.findall(shown) == ["nan", "-inf"]
    assert shell.show(odd)["text/plain"].startswith("1 NaN | 1 -Inf | (2, 2) | float32")
    assert shell.show(torch.tensor(float("nan")))["text/plain"].startswith("NaN | () | float32")
    mask = torch.full((3, 3), float("-inf")).triu(1)
    assert not marks.search(page(shell, mask))
    assert shell.show(mask)["text/plain"].startswith("(3, 3) | float32")
    assert "3 -Inf" in shell.show(mask)["text/plain"].splitlines()[-1]
    assert marks.findall(page(shell, mask + torch.eye(3))) == ["-inf"] * 3, "beside other numbers"
    full = page(shell, torch.full((30, 30), float("nan")))
    assert ">all NaN</span>" in full
    assert not marks.search(full)
    assert marks.findall(page(shell, torch.tensor([complex("nan+infj")]))) == ["nan", "infj"]


@pytest.mark.parametrize(
    "own",
    [{"precision": 2}, {"precision": 0}],
    ids=str,
)
def test_the_card_has_print_options_of_its_own(shell, set_option, own):
    """The array is then what NumPy prints under those, and NumPy's own stay what they are."""
    t = torch.linspace(-1e-5, 1234.5, 30).reshape(3, 10)
    before = np.get_printoptions()
    set_option(**own)
    with np.printoptions(**own):
        assert array(shell, t) == repr(t.numpy())
    assert np.get_printoptions() == before
    set_option(precision="numpy")
    assert array(shell, t) == repr(t.numpy())


def test_a_tiny_tensor_takes_a_row_and_style_decides(shell, set_option):
    """By itself what prints in one line; as a line, anything, by its first values."""
    scalar, vector, matrix = torch.tensor(0.5), torch.arange(9.0), torch.zeros(2, 2)
    in_row = re.compile(r'</details><pre style="margin:0;')
    assert in_row.search(page(shell, scalar))
    assert not in_row.search(page(shell, vector))
    assert not in_row.search(page(shell, matrix))
    assert ">code</u></summary>" in page(shell, scalar), "the receipt is there all the same"
    set_option(style="card")
    assert not in_row.search(page(shell, scalar))
    set_option(style="line")
    badges = "(9,) | float32 | cpu | shared"
    assert shell.show(vector)["text/plain"] == f"{badges} | 0., 1., 2., 3., 4., 5., 6., 7., 8."
    assert in_row.search(page(shell, matrix))
    figures = "(3, 4) | float32 | cpu | shared | mean 5.5 ± 3.45 · 0 … 11 · 1 zero"
    assert shell.show(torch.arange(12.0).view(3, 4))["text/plain"].startswith(figures)
    assert "<pre" not in page(shell, torch.arange(12.0).view(3, 4)), "figures in the place of values"
    set_option(stats="off")
    assert shell.show(torch.arange(12.0))["text/plain"].endswith("| 0., 1., 2., 3., 4., 5., …")
    set_option(stats="line")
    assert shell.show(torch.empty(2, device="meta"))["text/plain"].count("\n") == 1, "a reason has a line of its own"


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("--view", "made = w.detach().numpy(); made.flags.writeable = False"),
        ("--share", "made = w.detach().numpy()"),
        ("--copy", "made = w.detach().clone().numpy()"),
    ],
)
def test_the_code_is_what_a_person_would_write(shell, option, code):
    """With the tensor's own name; it does what it says."""
    shell.run(f"w = torch.zeros(2, requires_grad=True)\n%tonumpy {option} -o made w")
    (receipt,) = shell.displayed
    assert receipt["text/plain"].splitlines()[1].strip() == code
    shell.run(code)
    array = shell.namespace["made"]
    assert array.flags.writeable == (option != "--view")
    assert np.shares_memory(array, shell.namespace["w"].detach().numpy()) == (option != "--copy")


def test_the_card_knows_the_name_and_a_magic_the_expression(shell):
    """A name that reaches it, the one that the user typed first of all."""
    shell.run("import types; layer = types.SimpleNamespace(weight=torch.zeros(5))")
    assert "a = layer.weight.numpy(); a.flags.writeable = False" in page(shell, shell.namespace["layer"].weight)
    assert "a = t.numpy()" in page(shell, torch.zeros(5))
    shell.run("a, b = torch.zeros(5), torch.ones(5)")
    assert "b = a.numpy(); b.flags" in page(shell, shell.namespace["a"])
    shell.run("made = %tonumpy a + b  # the sum")
    assert "c = (a + b).numpy(); c.flags" in shell.displayed[0]["text/plain"]
    shell.run("%tonumpy -c -o mine layer.weight * 2")
    (receipt,) = shell.displayed
    assert receipt["text/plain"].splitlines()[1] == "  mine = (layer.weight * 2).clone().numpy()"


def test_unusual_badges_say_what_they_mean_behind_the_fold(shell):
    """For who has no mouse to point with; a shape, a dtype and a device say it themselves."""
    shown = page(shell, torch.zeros(5, requires_grad=True))
    folded = shown[shown.index("</summary>") :]
    assert "requires grad – Autograd tracks this leaf and .grad is empty." in folded
    assert "Shape: " not in folded


@needs_what_is_saved
def test_only_what_backward_would_use_unnoticed_is_amber(shell):
    """Every training loop writes, and some of it is unseen by autograd."""
    shell.namespace["w"] = w = torch.zeros(5)
    shell.namespace["y"] = y = torch.zeros(5, requires_grad=True).exp()
    tone = r"background-color:rgba\((\d+,\d+,\d+),[.\d]+\)[^>]*>changed"
    page(shell, w), page(shell, y)
    w += 1
    assert re.search(tone, page(shell, w))[1] == "128,128,128"
    w.numpy()[0] = 7
    assert re.search(tone, page(shell, w))[1] == "128,128,128"
    y.detach().numpy()[0] = 7
    assert re.search(tone, page(shell, y))[1] == "217,119,6"


def test_other_names_and_history_stand_behind_the_fold(shell):
    """The line is for news: other objects on the same bytes."""
    shell.run("w = torch.zeros(5); also = w; first = w[:2]")
    shown = shell.show(shell.namespace["w"])
    assert "also" not in shown["text/plain"]
    assert "overlaps first" in shown["text/plain"]
    before, _, folded = shown["text/html"].partition("</summary>")
    assert "also named also" in folded
    assert "also named" not in before


def test_a_tied_weight_names_its_modules(shell):
    """The name of a variable, or of the list of an optimizer, is no news."""
    shell.run("head, embedding = torch.nn.Linear(3, 3), torch.nn.Embedding(3, 3); head.weight = embedding.weight")
    shell.run("optimizer = torch.optim.SGD(head.parameters()); bias = head.bias; both = [*head.parameters()]")
    text = shell.show(shell.namespace["head"].weight)["text/plain"]
    assert re.search(r"^also named (head|embedding)\.weight$", text, re.MULTILINE)
    assert "also named" not in shell.show(shell.namespace["bias"])["text/plain"]


def test_a_container_is_explained_by_names_and_alike_ones_once(shell):
    """Which tensor each plan is of."""
    shell.run("d = {'a': torch.zeros(5), 'b': torch.zeros(5), 'c': [torch.zeros(2).bfloat16()]}")
    shell.run("%tonumpy --explain d")
    first, *_ = shell.printed.splitlines()
    assert first == "['a'], ['b']"
    assert "\n\n['c'][0]\nfloat32 array, copies 8 bytes" in shell.printed
    assert shell.fail("%tonumpy [1, 2]") == "there is no tensor in this list"
