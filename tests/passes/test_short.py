"""Each record of a pass is one line that says what it is of."""

from __future__ import annotations

from dataclasses import replace

import torch
from made_passes import INF, NAN, figures, one_call, value, weight

from tensornp import follow
from tensornp.passes import short
from tensornp.passes.records import (
    RAISED,
    RECOMPUTED,
    Figures,
    Gradient,
    OperatorCall,
    Origin,
    PassRecord,
    SourceLine,
    Value,
)
from tensornp.passes.verdict.wording import span
from tensornp.render.passes.cells import between


def test_a_call_tells_its_module_which_call_it_is_and_what_went_in_and_out():
    """And what is not finite of what it gave."""
    first = one_call(0, "layers.5.gate", "Linear", got=[value(shape=(2, 8))], gave=[value(shape=(2, 3))])
    assert repr(first) == "<ModuleCall layers.5.gate (Linear): (2, 8) float32 → (2, 3)>"
    odd = replace(first, nth=23, outputs=(value((NAN,), shape=(2, 3), dtype="float16"),))
    assert repr(odd) == "<ModuleCall layers.5.gate (Linear), 24th call: (2, 8) float32 → (2, 3) float16, NaN>"
    gave = value((0, INF)), value(), value()
    several = replace(first, name="", phase=RECOMPUTED, inputs=(), outputs=gave)
    assert repr(several) == "<ModuleCall Linear, recomputed: → (3, 4) float32 and 2 others, Inf>"
    raised = one_call(0, "head", "Linear", got=[value()], status=RAISED, error="RuntimeError: no\nway")
    assert repr(raised).startswith("<ModuleCall head (Linear), raised RuntimeError: no")
    assert "\n" not in repr(raised) and repr(raised).endswith(": (3, 4) float32 →>")
    assert repr(one_call(0, "head", "Linear")) == "<ModuleCall head (Linear)>"


def test_values_and_figures_tell_their_extremes():
    """Or why there are none."""
    assert repr(value((-1.5, 2.0), "[0]", shape=(5,))) == "<Value [0] (5,) float32: −1.5 … 2, norm 3>"
    assert repr(weight((2.0, 2.0))) == "<Value weight (3, 4) float32: 2, norm 3>"
    assert repr(value(None, note="on meta")) == "<Value (3, 4) float32: on meta>"
    assert repr(value(relation="in place")) == "<Value (3, 4) float32, in place: −1 … 2, norm 3>"
    assert repr(figures(NAN)) == "<Figures of 12: NaN>"
    assert repr(Figures(NAN, NAN, 0.0, 0.0, 0)) == "<Figures of 0: no elements>"
    assert repr(Figures(0.0, 1.0, NAN, NAN, 3)) == "<Figures of 3: 0 … 1>"
    assert repr(Figures(-INF, 1.0, NAN, NAN, 3)) == "<Figures of 3: −Inf>"


def test_the_others_are_short_too():
    """Operators, gradients, where a NaN came from, and all of a pass."""
    operator = OperatorCall(0, "sqrt", phase="backward", node="SqrtBackward0", inputs=(value(),), outputs=(value(),))
    assert repr(operator) == "<OperatorCall sqrt, backward, SqrtBackward0: (3, 4) float32 → (3, 4)>"
    assert repr(Gradient("head.weight", figures(-1.0, 2.0))) == "<Gradient head.weight: −1 … 2, norm 3>"
    assert repr(Gradient("head.bias", None)) == "<Gradient head.bias: none>"
    born = Origin("nan", "forward", "norm", "", True, SourceLine("a.py", 1, "f"), "the first NaN was born in norm")
    assert repr(born) == "<Origin nan, forward: the first NaN was born in norm>"
    assert repr(PassRecord()) == "<PassRecord of 0 calls>"


def test_a_name_of_any_length_stays_in_a_line():
    """It keeps both of its ends."""
    long = repr(one_call(0, "a." * 500 + "last", "B" * 300, got=[Value("", (1,), "float32", "cpu")]))
    assert len(long) < 240 and "\n" not in long


def test_a_list_of_followed_calls_is_readable():
    """A line of some 80 characters each."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    with follow(model) as run:
        model(torch.ones(4, 2))
    assert [repr(call) for call in run.calls] == [
        "<ModuleCall Sequential: (4, 2) float32 → (4, 3)>",
        "<ModuleCall 0 (Linear): (4, 2) float32 → (4, 3)>",
        "<ModuleCall 1 (ReLU): (4, 3) float32 → (4, 3)>",
    ]


def test_numbers_that_read_alike_are_told_to_be_about_one():
    """Where they are the same they are one."""
    assert short.figures_told(figures(200.0)) == "200, norm 3"
    assert short.figures_told(figures(200.0, 200.001)) == "≈200, norm 3"
    assert between([figures(200.0)]) == "200" and between([figures(200.0), figures(200.001)]) == "≈200"
    assert span(200.0, 200.0) == "200 throughout" and span(-0.0, 0.0) == "0 throughout"
    assert span(200.0, 200.001) == "about 200 throughout" and span(-1.0, 200.0) == "from −1 to 200"
