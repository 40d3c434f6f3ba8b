"""The card of two passes side by side."""

from __future__ import annotations

import re

from built_passes import transformer, value

from tensornp.passes.records import ModuleCall, PassRecord
from tensornp.passes.verdict.comparison import compared
from tensornp.render.passes.comparison import pass_comparison_document

EQUAL = compared(transformer(), transformer())
BORN = compared(transformer(), transformer(nan_in="layers.3.attn.drop"))


def test_equal_figures_are_called_so_and_no_more():
    """With what was read, and without a table."""
    text = pass_comparison_document(EQUAL, ("run_a", "run_b")).text()
    assert text == (
        "run_a and run_b: figures equal\n148 calls in both · shapes, dtypes, the least and the greatest element, "
        "sum and norm were compared; single elements were not"
    )


def test_the_first_difference_is_an_alarm_and_a_marked_row():
    """What it was passed on to is paler, and of many rows the first are shown."""
    document = pass_comparison_document(BORN)
    lines = document.text().split("\n")
    assert lines[0] == "the first and the second: the first call that differs is layers.3.attn.drop (Dropout)"
    assert lines[1].startswith(
        "layers.3.attn.drop (Dropout) came out otherwise: NaN in the second alone; the figures of its inputs were"
    )
    assert any(line.startswith("layers.3.attn.drop (Dropout) · first difference") for line in lines)
    assert any(re.fullmatch(r"… \d+ more calls", line) for line in lines)
    html = document.html()
    assert html.count("<tr") < 120
    alarms = re.findall(r"background-color:rgba\(217,119,6,.28\)[^>]*>([^<]*)<", html)
    assert alarms == ["layers.3.attn.drop (Dropout) came out otherwise: NaN in the second alone", "first difference"]
    assert '<tr style="opacity' in html and not re.search(r"(?<![-\w])color:", html)


def test_nothing_of_a_program_gets_through():
    """Names, classes and errors."""
    evil = "<b>&\x1b[2J\u202e\n'\""
    first = PassRecord((ModuleCall(0, evil, evil, outputs=(value(dtype=evil, path=evil),)),))
    second = PassRecord(
        (ModuleCall(0, evil, evil, outputs=(value((1,), dtype=evil),)), ModuleCall(1, evil + "2", evil))
    )
    document = pass_comparison_document(compared(first, second), (evil, evil))
    for said in (document.text(), document.html()):
        assert "\x1b" not in said and "\u202e" not in said
    assert document.html().count("<b>") == 2 and "&lt;b&gt;" in document.html()
