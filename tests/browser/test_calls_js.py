"""The ES module of a pass in a blank page: a real widget answers it, one request at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from built_passes import Built, Run, figures, transformer, value
from playwright.sync_api import Page, expect

from browser.contrast import illegible
from browser.module_page import TreePage
from browser.test_toggle_js import LAB_DARK
from tensornp.passes.records import RAISED, PassRecord, SourceLine
from tensornp.widget.calls import CallsWidget

NAN = transformer(nan_in="layers.3.attn.drop")


class Calls(TreePage):
    """The tree of a pass in a page, and the kernel's part in it."""

    def __init__(self, page: Page, record: PassRecord, *, css: str = "") -> None:
        super().__init__(page, CallsWidget(Run(record), opened="run", anchor="a"), "calls", css=css)
        self.name = self.panel.locator(".tensornp-panel-name")


MakeCalls = Callable[..., Calls]


@pytest.fixture
def calls(blank: Page) -> MakeCalls:
    return lambda record, **options: Calls(blank, record, **options)


def small() -> PassRecord:
    """Return a pass of two calls, of which one made the input of the other, of one that raised, and of an operator."""
    built = Built()
    source = SourceLine("net.py", 3, "return self.norm(self.embed(x))")
    with built.call("", "Net", code="net"):
        built.leaf("embed", "Embedding", outputs=value(maker=2))
        taken = {"[0]": value(maker=2, is_nan=True)}
        held = {"weight": value((256,), sample=()), "other": value((3, 256), dtype="float16", sample=())}
        given = value(grad=figures(0.1), relation="view")
        built.leaf("norm", "LayerNorm", inputs=taken, outputs=given, params=held, source=source, detail="a note")
        built.operator("add", inputs=taken, outputs=value(), source=source)
        built.leaf("head", "Linear", inputs=taken, status=RAISED, error="RuntimeError: no")
    return built.record()


def test_keys_alone_unfold_repeats_open_a_call_and_lead_back(calls: MakeCalls) -> None:
    shown = calls(transformer())
    assert shown.grid.locator("[tabindex='0']").count() == 1
    shown.search.press("ArrowDown")
    shown.settle()
    assert shown.focused() == "model"
    shown.press("ArrowDown", "ArrowDown", "Enter")
    assert shown.names()[2:5] == ["layers.{0..11}", "layers.0", "layers.1"]
    expect(shown.row("layers.{0..11}")).to_have_attribute("aria-expanded", "true")
    shown.press("ArrowDown", "ArrowRight", "ArrowDown")
    assert shown.focused() == "norm1"
    expect(shown.row("norm1")).to_have_attribute("aria-level", "4")
    shown.press("Enter")
    expect(shown.name).to_have_text("layers.0.norm1 (LayerNorm)")
    expect(shown.page.get_by_role("button", name="close")).to_be_focused()
    shown.press("Escape")
    expect(shown.panel).to_be_hidden()
    assert shown.focused() == "norm1"
    shown.press("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    assert shown.focused() == "layers.{0..11}"
    assert shown.names() == ["model", "embed", "layers.{0..11}", "norm", "head"]
    shown.press("/")
    expect(shown.search).to_be_focused()


def test_an_alarm_is_a_link_and_so_is_the_maker_of_an_input(calls: MakeCalls) -> None:
    shown = calls(NAN)
    shown.click(shown.page.get_by_role("button", name="first NaN"))
    expect(shown.name).to_have_text("layers.3.attn.drop (Dropout)")
    shown = calls(small())
    shown.click(shown.row("norm"))
    expect(shown.panel).to_contain_text("a note")
    expect(shown.panel).to_contain_text("return self.norm(self.embed(x))")
    expect(shown.panel.get_by_role("img")).to_have_count(1)
    shown.click(shown.panel.get_by_role("button", name="embed"))
    expect(shown.name).to_have_text("embed (Embedding)")
    assert shown.focused() == "embed"
    shown.click(shown.row("head"))
    expect(shown.panel).to_contain_text("RuntimeError: no")
    shown.click(shown.row("add"))
    expect(shown.name).to_have_text("add")
    shown.fill(shown.search, "norm")
    shown.click(shown.row("norm (LayerNorm)"))
    shown.click(shown.panel.get_by_role("button", name="embed"))
    assert shown.focused() == "embed"
    expect(shown.search).to_have_value("")


@pytest.mark.parametrize(("css", "width"), [("", 1400), (LAB_DARK, 800)], ids=["light", "dark"])
def test_it_is_legible_and_accessible(calls: MakeCalls, css: str, width: int) -> None:
    """With a call open, which fits the page."""
    for record, name in ((small(), "norm"), (NAN, "qkv")):
        shown = calls(record, css=css)
        shown.page.set_viewport_size({"width": width, "height": 900})
        shown.settle()
        shown.click(shown.row(name))
        expect(shown.panel).to_be_visible()
        found = Axe().run(shown.page)
        assert found.response["violations"] == []
        assert shown.nameless_rows() == []
        texts = shown.page.locator(".tensornp-calls :is(td, th, button, .tensornp-said)")
        assert illegible(texts.filter(visible=True)) == []
        assert shown.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_what_a_pass_names_is_text_and_never_html(calls: MakeCalls) -> None:
    evil = "<img src=x onerror='window.evil = 1'>"
    built = Built()
    source, values = SourceLine(evil, 1, evil), {evil: value(note=evil, dtype=evil, maker=1)}
    facts = {"inputs": values, "outputs": values, "params": values, "error": evil, "status": RAISED, "detail": evil}
    built.leaf(evil, evil, source=source, code=evil, **facts)
    shown = calls(built.record())
    shown.click(shown.grid.locator("tbody tr").first)
    expect(shown.panel).to_contain_text(evil)
    assert shown.page.evaluate("window.evil") is None
    assert shown.page.locator("img[src='x']").count() == 0
