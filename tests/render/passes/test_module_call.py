"""The card of one call, and of where a NaN came from: the same words as text and as HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import torch
from built_passes import ERROR, WIDE, value
from torch import nn

import tensornp as tnp
from tensornp.passes.records import RAISED, RECOMPUTED, Figures, ModuleCall, Origin, SourceLine
from tensornp.render.passes.module_call import module_call_document

SOURCE = SourceLine("/home/me/net.py", 11, "forward", "h = self.gate(x)")
CALL = ModuleCall(
    30, "layers.5.gate", "Linear", "model.layers[5].gate", nth=23, num_calls=24, source=SOURCE,
    inputs=(value((2, 8), path="[0]", made_by="layers.5.norm", maker=29),),
    outputs=(value((2, 3), is_nan=True, grad=Figures(-1.0, 1.0, 0.0, 2.0, 6)),),
    params=(replace(value((3, 8), path="weight"), sample=()),),
)  # fmt: skip


def lines_of(call: ModuleCall) -> list[str]:
    """Return the lines of the text."""
    return module_call_document(call).text().split("\n")


def test_a_card_tells_what_was_called_and_each_value():
    """Which call of how many, the line, and rows of inputs, outputs and weights."""
    lines = lines_of(CALL)
    assert lines[:3] == [
        "layers.5.gate (Linear)",
        "    net.py:11  h = self.gate(x)",
        "24th of 24 calls · forward · model.layers[5].gate · all float32",
    ]
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[3:]]
    assert rows[0] == ["value", "shape", "made by", "sample", "min … max", "mean", "‖·‖", "‖grad‖"]
    assert rows[1][:3] == ["input [0]", "(2, 8)", "layers.5.norm"]
    assert rows[2] == ["output · NaN", "(2, 3)", "nan", "2.00"]
    assert rows[3] == ["weight", "(3, 8)", "−3.00 … 3.00", "0", "4.90"]
    assert max(map(len, lines)) <= 80


def test_the_norm_of_a_gradient_that_is_finite_is_not_told_as_nan():
    """Near the end of float32's range, it is known what it is at least."""
    grad = Figures(-1e22, 1e22, 0.0, math.nan, 6)
    lines = lines_of(replace(CALL, outputs=(value((2, 3), grad=grad),)))
    assert any("≥1.00e+22" in line for line in lines) and not any("nan" in line for line in lines)


def test_a_page_says_the_same_and_has_pictures():
    """With one alarm a row, and no colour of text, so that every theme reads it."""
    html = module_call_document(CALL).html()
    assert "<b>layers.5.gate</b> (Linear)" in html and "net.py:11" in html and "<img" in html
    assert re.findall(r"background-color:rgba\(217,119,6,.28\)[^>]*>([^<]*)<", html) == ["NaN"]
    assert not re.search(r"(?<![-\w])color:", html)


def test_a_line_of_a_cell_is_told_by_the_cell_alone():
    """Its file is one of this kernel, and of the next one another."""
    in_cell = replace(CALL, source=replace(SOURCE, file="/tmp/ipykernel_1/2.py", cell="In[3]"))
    assert lines_of(in_cell)[1] == "    In[3] line 11  h = self.gate(x)"
    assert "ipykernel" not in module_call_document(in_cell).html()
    assert 'title="/home/me/net.py:11"' in module_call_document(CALL).html()


def test_what_ended_a_call_is_said():
    """And its phase, its thread and its device, where these are not what they always are."""
    raised = replace(CALL, status=RAISED, error=ERROR, outputs=(), nth=0, num_calls=1, source=None)
    assert lines_of(raised)[1] == f"raised {ERROR}"
    assert "background-color" in module_call_document(raised).html().partition("<table")[0]
    odd = replace(CALL, phase=RECOMPUTED, thread="worker", notes=("a note",), inputs=(value(device="cuda:0"),))
    assert "recomputed · model.layers[5].gate · cuda:0, cpu · thread worker" in "\n".join(lines_of(odd))
    assert lines_of(odd)[-1] == "a note"
    assert lines_of(ModuleCall(0, "", "Net")) == ["Net", "forward"]


def test_many_values_are_few_rows_and_nothing_of_a_program_gets_through():
    """Names, classes, errors, notes, lines of source."""
    evil = "<b>&\x1b[2J\u202e\n'\""
    many = tuple(value(WIDE, path=f"[{i}]{evil}", note=evil, made_by=evil, dtype=evil) for i in range(100))
    call = ModuleCall(
        0, evil, evil, evil, status=RAISED, error=evil, source=SourceLine(evil, 1, evil, evil), thread=evil,
        inputs=many, outputs=many, params=many, notes=(evil,),
    )  # fmt: skip
    document = module_call_document(call)
    assert document.text().count("… 76 more values") == 3
    for said in (document.text(), document.html()):
        assert "\x1b" not in said and "\u202e" not in said
    assert document.html().count("<b>") == 1 and "&lt;b&gt;" in document.html()


def test_a_call_and_an_origin_have_cards():
    """In `tnp.card`, and as a cell's value by the same table."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    with tnp.follow(model) as run:
        model(torch.tensor([[1.0, float("nan")]])).sum().backward()
    assert tnp.card(run["0"]).text.startswith("0 (Linear)\n")
    assert "input [0] · NaN" in tnp.card(run["0"]).text and "weight" in tnp.card(run["0"]).html
    origin = run.first("nan")
    assert origin is not None and origin.call is not None
    assert tnp.card(origin).text.split("\n")[0] == origin.sentence
    assert tnp.card(run[origin.call]).text == tnp.card(run.calls[origin.call]).text


def test_an_origin_quotes_its_line_only_where_it_is_the_line():
    """Which stands under the sentence, and the call behind it."""
    born = Origin("nan", "forward", "norm", "", True, SOURCE, "the first NaN was born in norm; it was finite", "", 7)
    assert tnp.card(born).text == (
        "the first NaN was born in norm; it was finite\n    net.py:11  h = self.gate(x)\nits call is number 7: run[7]"
    )
    assert "net.py" not in tnp.card(replace(born, is_exact=False)).text
    assert ">the first NaN was born in norm</span>; it was finite" in tnp.card(born).html
