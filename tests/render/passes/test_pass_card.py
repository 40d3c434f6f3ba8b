"""The cards of a pass, of one call and of two passes: the same words as text and as HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape

import pytest
import torch
from built_passes import ERROR, NAN, Built, Run, transformer, value

import tensornp as tnp
from tensornp.passes.compare import compared
from tensornp.passes.records import LEFT, RAISED, Figures, Finding, SourceLine, Step
from tensornp.render.layout.document import Document
from tensornp.render.passes.call import call_document, finding_document, panel_html
from tensornp.render.passes.card import pass_document
from tensornp.render.passes.comparison import pass_comparison_document

EVIL = "<b>&\x1b[2J\u202e\n'\""
SOURCE = SourceLine("/home/me/net.py", 11, "a = scores.softmax(-1)")
TROUBLED = transformer(nan_in="layers.3.attn.drop")
DROP = next(call for call in TROUBLED.calls if call.name == "layers.3.attn.drop")
FACT, REASON = f"NaN was first produced in {DROP.title}, net.py:11", "its input went from 0 to 1"
FINDING = Finding("nan", f"{FACT} `{SOURCE.text}`", REASON, DROP.index, SOURCE)


def troubled() -> Document:
    """Return the card of a pass with a NaN in its third layer, and another finding."""
    return pass_document(Run(TROUBLED, [FINDING, Finding("growth", "norms grow")]))


def marks(**facts: object) -> str:
    """Return the marks of a call with these facts."""
    built = Built()
    built.leaf("act", "ReLU", **facts)
    line = pass_document(Run(built.record(), [])).text().split("\n")[-1]
    return re.split(r"\s{2,}", line.strip())[-1]


def words(text: str) -> list[str]:
    """Return the words of a text or a page, without pictures and their heading."""
    text = re.sub(r"<style>.*?</style>", "", text)
    text = re.sub(r"<[^>]*>", " ", re.sub(r"</?(span|b|wbr)\b[^>]*>", "", text))
    left = [word for word in unescape(text).split() if not set(word) <= set("▁▂▃▄▅▆▇█")]
    return [word for word in left if word not in ("sample", "·")]


def test_a_healthy_pass_fits_a_terminal_and_shows_its_layers_once():
    text = pass_document(Run(transformer())).text()
    lines = text.split("\n")
    assert lines[0].startswith("no NaN and no Inf in 148 calls; the loss was not read")
    assert lines[1] == "outputs are float32"
    assert max(map(len, lines)) <= 80 and len(lines) == 19
    layer = next(line for line in lines if "layers." in line)
    assert re.split(r"\s{2,}", layer.strip()) == [
        "layers.{0..11} Block", "(4, 128, 256)", "-6.30 … 6.30", "≤760", "≤7.60",
    ]  # fmt: skip


def test_a_nan_that_reaches_no_result_is_named():
    built = Built()
    built.leaf("act", "ReLU", outputs=value(is_nan=True))
    assert pass_document(Run(built.record(), [])).text().startswith("act (ReLU) returned NaN or Inf\n")


def test_a_troubled_pass_has_one_alarm_one_line_and_the_next_command():
    text, html = troubled().text(), troubled().html()
    assert text.startswith(
        f"{FACT}; {REASON}\n    a = scores.softmax(-1)\n"
        "%%follow --operators --only layers.3.attn.drop shows the operator and its line\nnorms grow\n"
    )
    alarms = re.findall(r'<span style="[^"]*background-color:rgba\(217,119,6[^"]*">(.*?)</span>(?!,)', html)
    assert [re.sub("<.*?>", "", one) for one in alarms] == [FACT, "first NaN"]
    assert f'<span class="tensornp-to-{DROP.index}">{DROP.title}</span>' in html
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    at = next(i for i, one in enumerate(rows) if "first NaN" in one)
    is_pale = [one.startswith('<tr style="opacity') for one in rows]
    assert not any(is_pale[: at + 1]) and all(is_pale[at + 1 :]) and "passed on" in rows[at + 1]


@pytest.mark.parametrize(
    ("facts", "finding", "command"),
    [
        ({"outputs": value(is_nan=True)}, Finding("nan", "fact", call=1), "%%follow --operators --only act shows"),
        ({"outputs": value(grad=NAN)}, Finding("nan", "fact", call=1), "%%follow --operators shows"),
        ({"params": {"w": value(is_nan=True)}, "outputs": value(is_nan=True)}, Finding("nan", "fact", call=1), ""),
        ({"outputs": value()}, Finding("inf", "fact"), "%%follow --operators shows"),
        ({"status": RAISED}, Finding("failed", "fact", call=1), ""),
    ],
)
def test_the_next_command_leads_to_the_operator(facts, finding, command):
    built = Built()
    built.leaf("act", "ReLU", **facts)
    second = pass_document(Run(built.record(), [finding])).text().split("\n")[1]
    assert second.startswith(command) and bool(command) == ("%%follow" in second)
    if "params" in facts:
        # What a step has spoiled may come from a loss before it.
        stepped = built.record(steps=[Step("SGD", None, 2, 1, 1)])
        assert "%%follow --operators shows" in pass_document(Run(stepped, [finding])).text()
    with_operators = built.record(has_operators=True)
    assert "%%follow" not in pass_document(Run(with_operators, [finding])).text()


def test_an_error_is_marked_where_it_was_raised():
    record = transformer(raised_in="layers.3.mlp.down")
    text = pass_document(Run(record)).text()
    assert text.startswith("layers.3.mlp.down (Linear) raised RuntimeError")
    assert text.endswith("      down Linear · failed  (4, 128, 1024) →") and text.count(ERROR) == 1
    raised = [line.split()[0] for line in text.split("\n") if line.endswith("  raised")]
    assert raised == ["model", "layers.3", "mlp"]


def test_marks_say_what_is_unusual():
    assert marks(inputs=value(), outputs=value(relation="in place")) == "in place"
    assert marks(inputs=value(), outputs=value(dtype="bfloat16")) == "float32 → bfloat16"
    assert marks(params={"weight": value((3,), is_nan=True)}, outputs=value()) == "weight contains NaN"
    assert marks(outputs=value(figures=None, sample=(), note="on meta")) == "on meta"
    assert marks(status=LEFT, detail="a note") == "did not return, a note"
    assert marks(status=RAISED, error=ERROR).startswith("raised RuntimeError: mat1 and mat2")
    assert "recomputed, 132 calls inside" in pass_document(Run(transformer(num_recomputed=12))).text()


def test_text_and_html_have_the_same_words():
    for document in (troubled(), pass_document(Run(transformer(3))), call_document(DROP)):
        assert words(document.html()) == words(document.text())


def test_an_operator_is_a_row_with_its_line():
    built = Built()
    with built.call("", "Net", code="net"):
        detail = "2 rows of its input were −Inf throughout"
        built.operator("_softmax", outputs=value(is_nan=True), source=SOURCE, detail=detail)
    finding = Finding("nan", "NaN was first produced in Net, at `softmax`", call=2, source=SOURCE)
    text = pass_document(Run(built.record(has_operators=True), [finding])).text()
    row = next(line for line in text.split("\n") if line.startswith("  softmax"))
    assert row.startswith("  softmax net.py:11 · first NaN") and "2 rows of its input" in row
    assert "\n    net.py:11  a = scores.softmax(-1)\n" in text


def test_the_card_of_a_call_lists_its_values():
    built = Built()
    built.leaf("norm", "LayerNorm")
    call = built.leaf(
        "gate", "Linear", code="model.gate", source=SOURCE, inputs={"[0]": value((2, 8), maker=1)},
        outputs=value((2, 3), is_nan=True, grad=Figures(-1.0, 1.0, 0.0, 2.0, 6), maker=2),
        params={"weight": value((3, 8), sample=())},
    )  # fmt: skip
    lines = call_document(call).text().split("\n")
    assert lines[:3] == ["gate (Linear)", "    net.py:11  a = scores.softmax(-1)", "forward · model.gate · all float32"]
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[3:7]]
    assert rows[0] == ["value", "shape", "made by", "sample", "min … max", "mean", "‖·‖", "‖grad‖"]
    assert rows[1][:3] == ["input [0]", "(2, 8)", "call 1"]
    assert rows[2] == ["output · NaN", "(2, 3)", "nan", "2.00"]
    assert rows[3] == ["weight", "(3, 8)", "-3.00 … 3.00", "0", "4.90"]
    html = panel_html(call, built.record())
    assert re.search(r'<button [^>]*data-to="1"[^>]*>norm \(LayerNorm\)</button>', html)
    raised = replace(call, status=RAISED, error=ERROR, source=None)
    assert call_document(raised).text().split("\n")[1] == f"raised {ERROR}"
    assert "… 76 more values" in call_document(replace(call, inputs={f"[{i}]": value() for i in range(100)})).text()
    shown = finding_document(FINDING).text().split("\n")
    assert shown == [f"{FACT}; {REASON}", "    a = scores.softmax(-1)", f"its call is run[{DROP.index}]"]


def test_two_passes_show_the_first_difference():
    assert compared(transformer(), transformer()).equal
    equal = pass_comparison_document(compared(transformer(), transformer()), ("a", "b")).text()
    assert equal.startswith("a and b: statistics are equal\n148 calls in both · ")
    document = pass_comparison_document(compared(transformer(), TROUBLED))
    text, html = document.text(), document.html()
    assert text.startswith(f"the first and the second: the first call that differs is {DROP.title}\n")
    assert f"{DROP.title} · first difference" in text and re.search(r"\n… \d+ more calls$", text)
    assert html.count("rgba(217,119,6") == 2 and '<tr style="opacity' in html


def test_nothing_of_a_program_gets_through():
    """In no card: names, classes, notes, errors and lines are text."""
    source = SourceLine(EVIL, 1, EVIL)
    many = {f"[{i}]{EVIL}": value(note=EVIL, dtype=EVIL) for i in range(3)}
    built = Built()
    call = built.leaf(
        EVIL, EVIL, code=EVIL, status=RAISED, error=EVIL, source=source, inputs=many, outputs=many, params=many,
        detail=EVIL,
    )  # fmt: skip
    record = built.record(error=EVIL, notes=(EVIL,))
    finding = Finding("failed", f"{call.title} {EVIL}", EVIL, 1, source)
    other = Built()
    other.leaf(EVIL, f"{EVIL}2", outputs=value((1,)))
    documents = [pass_document(Run(record, [finding, finding])), call_document(call), finding_document(finding)]
    documents.append(pass_comparison_document(compared(record, other.record()), (EVIL, EVIL)))
    for text in (*(one.text() for one in documents), *(one.html() for one in documents), panel_html(call, record)):
        assert "\x1b" not in text and "\u202e" not in text
    assert sum(one.html().count("<b>") for one in documents) == 3


def test_the_steps_of_a_loop_are_numbered_and_folded():
    """Several calls of one step are counted."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tnp.follow() as run:
        for i in range(9):
            x = torch.full((2, 3), math.nan if i == 4 else 1.0)
            for _ in range(3 if i == 7 else 1):
                model(x).sum().backward()
            if i < 8:
                optimizer.step()
    lines = pass_document(run).text().split("\n")
    assert lines[-2].endswith("6 calls") and lines[0].endswith("no followed call returned it; in step 5 of 8")
    found = [line for line in lines if line.startswith("model Sequential")]
    assert [re.split(r"\s{2,}", line)[0].removeprefix("model Sequential") for line in found] == [
        ", steps 1 to 4", ", step 5 · first NaN", ", steps 6 to 8 and after",
    ]  # fmt: skip


@pytest.mark.parametrize(("learning_rate", "odd"), [(50.0, True), (0.01, False)])
def test_a_loop_has_curves_of_its_norms(learning_rate, odd):
    """They begin and end where the norms do, and tell the first NaN or Inf; a few steps have none."""
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)), torch.randn(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    norms = []
    with tnp.follow(model) as run:
        for _ in range(20):
            optimizer.zero_grad()
            y = model(x)
            norms.append(y.detach().norm().item())
            (y - 1).square().mean().backward()
            optimizer.step()
    finite = [norm for norm in norms if math.isfinite(norm)]
    (line,) = [one for one in str(tnp.card(run)).split("\n") if one.startswith("‖out‖ of model by step: ")]
    first, last = re.search(r"step: (\S+) to ([^\s,]+)", line).groups()
    assert (float(first), float(last)) == pytest.approx((finite[0], finite[-1]), rel=0.01)
    assert (f", first NaN or Inf in step {len(finite) + 1}" in line) == odd
    assert line.endswith("█")
    assert "log scale" in tnp.card(run).html
    with tnp.follow(model) as short:
        model(x).sum().backward()
    assert "by step" not in str(tnp.card(short))


def test_a_curve_tells_nothing_of_the_steps_after_the_first_nan():
    """They may be finite again; a step without a gradient has no norm, and is not called odd."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tnp.follow(model) as run:
        for step in range(6):
            optimizer.zero_grad()
            y = model(torch.full((2, 3), math.nan if step == 3 else 1.0))
            if step not in (1, 3):
                y.sum().backward()
            optimizer.step()
    out, grad = [line for line in str(tnp.card(run)).split("\n") if " by step: " in line]
    assert ", first NaN or Inf in step 4" in out
    assert "NaN" not in grad


def test_a_curve_ends_at_minus_infinity_next_to_numbers():
    """A mask has such values, and a norm ends there all the same."""
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    torch.nn.init.ones_(model[0].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tnp.follow(model) as run:
        for step in range(5):
            model(torch.tensor([[-math.inf if step == 3 else 1.0], [1.0]]))
            optimizer.step()
    assert "‖out‖ of model by step: 1.41, first NaN or Inf in step 4" in str(tnp.card(run))


def test_a_bound_on_norms_is_not_below_the_values():
    """Of the last step, the optimizer's operators have no norm: nothing bounds those of all steps."""
    model, x = torch.nn.Linear(4, 1), torch.randn(32, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    with tnp.follow(level="operators") as run:
        for _ in range(5):
            optimizer.zero_grad()
            (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
            optimizer.step()
    rows = re.findall(r"([-+\d.e]+) … ([-+\d.e]+)(?:\s+≤(\S+))?", str(tnp.card(run)))
    assert len(rows) >= 3
    assert all(float(bound or "inf") * 1.01 >= max(abs(float(end)) for end in ends) for *ends, bound in rows)


def test_the_curve_of_gradients_is_that_of_logits_next_to_a_loss():
    """The gradient of the loss itself is always 1."""

    class WithLoss(torch.nn.Linear):
        def forward(self, x):
            logits = super().forward(x)
            return {"loss": logits.square().mean(), "logits": logits}

    model, norms = WithLoss(3, 4), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with tnp.follow(model) as run:
        for _ in range(4):
            optimizer.zero_grad()
            found = model(torch.ones(2, 3))
            found["loss"].backward()
            norms.append((2 * found["logits"].detach() / 8).norm().item())
            optimizer.step()
    (line,) = [one for one in str(tnp.card(run)).split("\n") if one.startswith("‖grad‖ of model by step: ")]
    first, last = re.search(r"step: (\S+) to ([^\s,]+)", line).groups()
    assert (float(first), float(last)) == pytest.approx((norms[0], norms[-1]), rel=0.01)
