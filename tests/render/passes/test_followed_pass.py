"""The card of a pass: the verdict over the tree, with the same words as text and as HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape

import pytest
import torch
from built_passes import ERROR, WIDE, Builder, figures, transformer, value

import tensornp as tnp
from tensornp.passes.records import (
    BACKWARD,
    BEFORE,
    FORWARD,
    LEFT,
    RAISED,
    Origin,
    PassRecord,
    SourceLine,
)
from tensornp.render.layout.document import Document
from tensornp.render.passes.followed_pass import followed_pass_document

SOURCE = SourceLine("/home/me/net.py", 11, "forward", "a = scores.softmax(-1)")
BORN = "the first NaN was born in layers.3.attn.drop (Dropout), net.py:11; its inputs were finite"
NAN = transformer(nan_in="layers.3.attn.drop")
RAISES = transformer(raised_in="layers.3.mlp.down")


def origin(phase: str = FORWARD, what: str = "nan") -> Origin:
    """Return that the NaN came from where it was planted."""
    call = next(call for call in NAN.calls if call.name == "layers.3.attn.drop")
    return Origin(what, phase, call.name, "", True, SOURCE, BORN, "", call.index)


def nan_document() -> Document:
    """Return the card of a pass with a NaN in its third layer."""
    return followed_pass_document(NAN, [BORN, "another problem"], "model", origin())


def one_call(**facts: object) -> PassRecord:
    """Return a pass of one call."""
    built = Builder()
    built.leaf("act", "ReLU", **facts)
    return PassRecord(tuple(built.calls))


def row(record: PassRecord, label: str) -> list[str]:
    """Return the columns of the first line that begins with a label."""
    lines = followed_pass_document(record, [], "model").text().split("\n")
    return next(re.split(r"\s{2,}", line.strip()) for line in lines if line.strip().startswith(f"{label} "))


def test_a_healthy_pass_is_told_in_lines_of_a_terminal():
    """That it is, how much there was, and its layers once."""
    text = followed_pass_document(transformer(), ["a finding"], "model").text()
    assert text.split("\n")[:3] == [
        "no NaN and no infinity in 148 calls",
        "a finding",
        "model · 148 calls forward · 148 gradients back · each gives float32",
    ]
    assert max(map(len, text.split("\n"))) <= 80
    assert row(transformer(), "layers.{0..11}") == [
        "layers.{0..11} Block", "(4, 128, 256)", "−6.30 … 6.30", "≤760", "≤7.60",
    ]  # fmt: skip
    assert row(transformer(), "qkv")[:2] == ["qkv Linear", "(4, 128, 256 → 768)"]


def test_the_verdict_is_an_alarm_up_to_what_explains_it_and_has_one_mark_in_the_tree():
    """After it, rows are paler, and say that they passed it on."""
    html = re.sub(r'<span class="tensornp-to-\d+">(.*?)</span>', r"\1", nan_document().html())
    alarms = re.findall(r'<span style="[^"]*background-color:rgba\(217,119,6[^"]*">([^<]*)</span>', html)
    assert alarms == [BORN.partition(";")[0], "first NaN"]
    assert "</span>; its inputs were finite</div>" in html
    assert (
        nan_document()
        .text()
        .startswith(
            f"{BORN}\n    a = scores.softmax(-1)\n"
            "%%follow --operators --only layers.3.attn.drop names the operator and its line\nanother problem\n"
        )
    )
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    pale = [one.startswith('<tr style="opacity') for one in rows]
    born = next(i for i, one in enumerate(rows) if "first NaN" in one)
    assert 0 < born < len(rows) - 1
    assert not any(pale[: born + 1]) and all(pale[born + 1 :])
    assert all("passed on" in one for one in rows[born + 1 :])


@pytest.mark.parametrize(
    ("phase", "what", "said"),
    [
        (FORWARD, "inf", "first Inf"),
        (FORWARD, "nonfinite", "first NaN"),
        (BACKWARD, "nan", "first NaN gradient"),
        (BEFORE, "nan", "NaN before"),
    ],
)
def test_the_mark_says_when_it_came(phase, what, said):
    """Of a backward, all of the sentence is the alarm."""
    sentence = "what modules gave was finite; NaN entered the gradients"
    document = followed_pass_document(NAN, [sentence], "model", origin(phase, what))
    assert f"drop Dropout · {said}  " in document.text()
    assert (sentence in document.html()) is (phase == BACKWARD)


def test_a_call_that_failed_is_marked_and_an_error_that_was_caught_is_quoted():
    """What it came through has raised as well."""
    document = followed_pass_document(RAISES, ["it takes 128 features"], "model", None, RAISES.calls[-1])
    assert document.text().startswith("it takes 128 features\nmodel · 50 calls forward · each gives float32\n")
    assert document.text().endswith("      down Linear · raised  (4, 128, 1024) →")
    assert ERROR not in document.text()
    assert [line.split()[0] for line in document.text().split("\n") if line.endswith("  raised")] == [
        "model", "layers.3", "mlp",
    ]  # fmt: skip
    assert row(one_call(status=RAISED, error=ERROR), "act")[-1].startswith("raised RuntimeError: mat1 and mat2")


def test_what_is_unusual_is_said_in_marks():
    """Of the relation to the input, the dtype, the phase, the parameters, the values."""
    assert row(one_call(inputs=(value(),), outputs=(value(relation="in place"),)), "act")[-1] == "in place"
    cast = one_call(inputs=(value(),), outputs=(value(dtype="torch.bfloat16"),))
    assert row(cast, "act")[-1] == "float32 → bfloat16"
    again = followed_pass_document(transformer(num_recomputed=12), [], "model").text()
    assert "model · 148 calls forward · 144 recomputed · " in again
    assert again.endswith("  recomputed, 132 calls inside")
    held = replace(value((3,), is_nan=True), path="weight")
    assert row(one_call(params=(held,), outputs=(value(),)), "act")[-1] == "weight holds NaN"
    assert row(one_call(outputs=(value(figures=None, sample=(), note="on meta"),)), "act")[-1] == "on meta"
    assert row(one_call(status=LEFT, notes=("a note",)), "act")[-1] == "did not return, a note"


def test_calls_of_one_module_are_counted_where_they_are_more_than_those_above():
    """A model that is called twice says so once."""
    built = Builder()
    for _ in range(2):
        with built.call("", "Net", outputs=(value(),)):
            for _ in range(3):
                built.leaf("cell", "Cell", outputs=(value(),))
            built.leaf("head", "Linear", outputs=(value(),))
    record = PassRecord(tuple(built.calls))
    assert [row(record, name)[-1] for name in ("Net", "cell", "head")] == ["2 calls", "3 calls", "362"]


def test_nothing_is_claimed_of_what_was_not_read_or_not_called():
    """Without figures, without calls, and where there is a NaN that nothing is said of."""
    assert "no NaN" not in followed_pass_document(one_call(outputs=(value(figures=None),)), [], "model").text()
    assert "no NaN" not in followed_pass_document(NAN, [], "model").text()
    empty = followed_pass_document(PassRecord(notes=("nothing was called",)), [], "model")
    assert empty.text() == "model\nnothing was called"
    assert "<table" not in empty.html()


def test_text_and_html_say_the_same():
    """But for pictures, which a text has where there is room."""
    for document in (nan_document(), followed_pass_document(transformer(3), [], "model")):
        html = re.sub(r"<style>.*?</style>", "", document.html())
        words = unescape(re.sub(r"<[^>]*>", " ", html)).replace(" ; ", "; ").split()
        left_out = {"sample", "·"}
        assert [word for word in words if word not in left_out] == [
            word for word in document.text().split() if word not in left_out and not set(word) <= set("▁▂▃▄▅▆▇█")
        ]


def test_a_sample_is_a_picture_in_a_page_and_blocks_in_a_text_that_has_room():
    """Not of what is constant, infinite, NaN or hardly anything."""
    record = one_call(outputs=(value(sample=(-3.0, *[0.0] * 6, 3.0)),))
    assert "  ▂▁  █▃▁▂  " in followed_pass_document(record, [], "model").text()
    html = followed_pass_document(record, [], "model").html()
    assert html.count("<img") == 1
    assert 'alt="histogram of 8 from -3 to 3 (sample of 8)' in html
    for given in (figures(0.0), figures(math.inf), figures(math.nan)):
        assert "<img" not in followed_pass_document(one_call(outputs=(value(figures=given),)), [], "").html()
    assert "<img" not in followed_pass_document(one_call(outputs=(value(sample=(1.0, 2.0)),)), [], "").html()


def test_all_that_a_program_names_is_escaped():
    """Names, classes, errors, notes, lines of source: in a page, and in a terminal."""
    evil = "<b>&\x1b[2J\u202e\n'\""
    built = Builder()
    built.leaf(
        evil, evil, status=RAISED, error=evil, notes=(evil,), inputs=(value(path=evil),),
        outputs=(value(dtype=evil, note=evil, relation=evil),), params=(value(is_nan=True, path=evil),),
    )  # fmt: skip
    built.leaf(f"{evil}2", evil)
    record = PassRecord(tuple(built.calls), notes=(evil,))
    found = Origin("nan", FORWARD, evil, "", None, SourceLine(evil, 1, evil, evil), evil, evil, 0)
    document = followed_pass_document(record, ["born", evil], evil, found, record.calls[1])
    for said in (document.text(), document.html()):
        assert "\x1b" not in said and "\u202e" not in said
    assert "<b>" not in document.html() and "&lt;b&gt;" in document.html()


@pytest.mark.slow
def test_a_pass_of_many_calls_is_a_short_card():
    """Under 100 rows, of which one tells how many more there are."""
    built = Builder()
    for i in range(300):
        with built.call("", "Net", outputs=(value((i + 1,)),)):
            for part in "abc":
                built.leaf(f"part.{part}", "Linear", inputs=(value(WIDE),), outputs=(value((i + 1,)),))
    document = followed_pass_document(PassRecord(tuple(built.calls)), [], "model")
    assert document.html().count("<tr") < 100
    assert re.search(r"\n… [\d,]+ more calls$", document.text())


def test_operators_of_a_call_stand_once_with_what_matters_before_their_line():
    """A live tree takes the place of the table; the panel of the call has the same."""

    class Log(torch.nn.Module):
        def forward(self, x):
            return torch.log(x - 2)

    with tnp.follow(model := torch.nn.Sequential(torch.nn.Linear(2, 2), Log()), level="operators") as run:
        model(torch.zeros(1, 2))
    html = tnp.card(run)._repr_html_()
    static = html[html.index('class="tensornp-static"') :]
    heads = static[static.rindex("<thead>") : static.rindex("</thead>")]
    assert html.count(">operator</th>") == static.count(">operator</th>") == 1
    assert heads.index(">min … max<") < heads.index(">line<")
