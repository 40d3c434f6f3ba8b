"""`%tensorstats` and `%tensordiff` in a real shell."""

from __future__ import annotations

import math
import re
from html import unescape

import pytest
import torch
from unchanged import unchanged


@pytest.fixture
def tensors(shell):
    """A layer with an outlier channel and a NaN, and a copy that differs in one row."""
    w = torch.randn(16, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    w[5] *= 20
    w[3, 1, 2, 4] = math.nan
    other = torch.randn(40, 30, generator=torch.Generator().manual_seed(1))
    changed = other.clone()
    changed[7] += 1
    shell.namespace.update(w=w, a=other, b=changed)
    return w, other, changed


def test_all_figures_and_where_the_nan_is(shell, tensors):
    """As text and as HTML, and nothing is changed."""
    with unchanged(tensors[0]):
        text, html = shell.shown("%tensorstats w")
    assert text.startswith("w: Tensor (16, 3, 5, 5) float32\n")
    for said in ("NaN       1", "[3, 1, 2, 4]", "of 1,199 finite", "÷ n", "99%", "█"):
        assert said in text
    assert html.count("<img") == 2
    assert "plane [3, 1] of 16 × 3" in html


def test_by_axis_the_outlier_stands_out(shell, tensors):
    """The channel with a NaN comes first, and that with the largest element after it."""
    text, _ = shell.shown("%tensorstats --axis 0 w")
    rows = text.split("axis 0")[1].split("\n")
    assert (rows[1].split()[0], rows[2].split()[0]) == ("3", "5")
    assert rows[-1] == "the 10 of 16 that stand out: by NaN and infinities, then by size"


def test_what_differs(shell, tensors):
    """The verdict, the first difference and the figures; of what is the same, the verdict alone."""
    text, html = shell.shown("%tensordiff a b")
    assert text.startswith("a and b: 30 of 1,200 differ, first at [7, 0]\n")
    assert "largest difference" in text
    assert html.count("<img") == 1
    text, html = shell.shown("%tensordiff a (a + 0)")
    assert text.split("\n")[0] == "a and (a + 0): same bits"
    assert "<img" not in html


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said", "opened"),
    [
        ("%tensordiff a b", r"; (tnp.*?) names them all", "tnp.compare(a, b)"),
        ("%weights a", r", such as (tnp[^\s<]*)", "tnp.weights(a)"),
    ],
)
def test_what_a_magic_says_to_type_runs_in_that_notebook(shell, line, said, opened):
    """Where more differs, or is there, than is shown: it takes no name for granted that nobody has bound."""
    names = [f"{a}{b}_attn" for a in "abcdefghijklmno" for b in "pqrstuvwxy"]
    shell.run("import tensornp as tnp")
    shell.namespace["a"] = {name: torch.zeros(i + 1) for i, name in enumerate(names)}
    shell.run("b = {name: t + 1 for name, t in a.items()}")
    for text in shell.shown(line):
        (code,) = re.findall(said, unescape(text))
        assert opened in code.replace("(...)", opened[opened.index("(") :])
        assert len(shell.run(code.replace("(...)", opened[opened.index("(") :]))) == 150


def test_statistics_of_a_model_are_a_scan(shell):
    """As `tnp.weights(model).scan()` finds; a container, too."""
    shell.namespace["model"] = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    shell.namespace["model"][1].weight.data[1, 2] = torch.inf
    for name in ("model", "model.state_dict()", "list(model.parameters())"):
        assert "1 weight has infinities" in shell.shown(f"%tensorstats {name}")[0]


def test_pictures_can_be_turned_off(shell, tensors):
    """The figures stay."""
    shell.run("%config TensorDisplay.stats = 'text'")
    assert "<img" not in shell.shown("%tensorstats w")[1]
    assert "<img" not in shell.shown("%tensordiff a b")[1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%tensorstats", "there is no expression; usage: %tensorstats"),
        ("%tensorstats nothing", "name 'nothing' is not defined; define it first"),
        ("%tensorstats [0][1]", "[0][1] has no value (IndexError: list index out of range)"),
        ("%tensornp --mode copy", "option --mode not recognized; there are no options"),
        ("%tensorstats [1]", "stats takes a tensor or an array, not 'list'"),
        ("%tensorstats -a 7 w", "axis must be a dimension of shape (16, 3, 5, 5)"),
        ("%tensorstats -a x w", "--axis must be the number of a dimension, got 'x'"),
        ("%tensorstats w w", "is not an expression"),
        ("%tensordiff a", "%tensordiff takes two expressions or paths, got 1; usage: %tensordiff A B"),
        ("%tensordiff a b w", "%tensordiff takes two expressions or paths, got 3"),
        ("%tensordiff a 'text'", "there is no 'text'"),
    ],
)
def test_bad_input_gets_a_sentence(shell, tensors, line, says):
    """What, where, the cure; no traceback."""
    assert says in shell.fail(line)
