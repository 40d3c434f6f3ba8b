"""The toggle's ES module in a blank page: a real widget answers it, one request at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.module_page import ModulePage
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.errors import NameTakenError
from tensornp.render.tensor.card import tensor_html
from tensornp.widget.toggle import TensorWidget

ANCHOR = "tnp-test"
LAB_DARK = """
:root { --jp-ui-font-color1: rgba(255, 255, 255, 0.87); --jp-ui-font-color2: rgba(255, 255, 255, 0.54);
  --jp-ui-font-color3: rgba(255, 255, 255, 0.38); --jp-border-color1: #616161; --jp-brand-color1: #2196f3;
  --jp-error-color1: #f44336; color-scheme: dark; }
body { background: #111; color: rgba(255, 255, 255, 0.87); }"""


def stop_clock(page: Page) -> None:
    """Have the page's time stand still, but for what `run_for` lets pass: a busy machine makes it late for nothing."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)


LISTEN = """() => {
  window.announced = [];
  const regions = "[aria-live=polite], [role=status], output";
  new MutationObserver((changes) => {
    const elements = changes.map(({ target }) => (target instanceof Element ? target : target.parentElement));
    const nodes = elements.map((node) => node?.closest(regions));
    for (const node of new Set(nodes)) if (node?.textContent) window.announced.push(node.textContent);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""
WAITING = "waiting for the kernel …"


class Announced:
    def __init__(self, page: Page) -> None:
        self._page = page
        page.evaluate(LISTEN)

    def __call__(self) -> list[str]:
        """Return what was announced since the last call, but that a busy machine is waited for."""
        return [text for text in self._page.evaluate("window.announced.splice(0)") if text != WAITING]


class Toggle(ModulePage):
    """A toggle in a page, and the kernel's part in it."""

    def __init__(self, page: Page, tensor: torch.Tensor, *, anchor: str = "", css: str = "", **options: Any) -> None:
        self.bound: dict[str, Any] = {"taken": 1}
        widget = TensorWidget(tensor, anchor=anchor, **{"suggestion": "w_np", "binder": self._bind, **options})
        card = tensor_html(summarize(tensor, DisplayOptions()), DisplayOptions(), anchor=ANCHOR)
        super().__init__(page, widget, "toggle", css=css, card=card, anchor=anchor)
        self.static = page.locator(f".{ANCHOR}")
        self.static_image = self.static.screenshot()
        self.status, self.name = page.locator("output"), page.get_by_role("textbox")

    def _bind(self, name: str, make: Callable[[], Any], overwrite: bool) -> None:
        if name in self.bound and not overwrite:
            raise NameTakenError(f"{name} already names something; press Overwrite to replace it", can_overwrite=True)
        self.bound[name] = make()

    def _reply(self, content: dict[str, Any], buffers: Any = None) -> None:
        self.sync()
        super()._reply(content, buffers)

    def radio(self, mode: str) -> Locator:
        return self.page.get_by_role("radio", name=mode, exact=True)


MakeToggle = Callable[..., Toggle]


@pytest.fixture
def toggle(page: Page) -> MakeToggle:
    def make(tensor: torch.Tensor | None = None, **options: Any) -> Toggle:
        return Toggle(page, torch.zeros(2) if tensor is None else tensor, **options)

    return make


def docked(toggle: MakeToggle, tensor: torch.Tensor | None = None, **options: Any) -> Toggle:
    shown = toggle(tensor, anchor=ANCHOR, **options)
    shown.answer_next()
    return shown


def test_the_modes_are_radio_buttons_that_arrow_keys_move(toggle: MakeToggle) -> None:
    """One group with a name, one stop for Tab; an arrow key moves the choice and tells the kernel."""
    shown = toggle()
    group = shown.page.get_by_role("radiogroup", name="How the array uses the tensor's memory")
    labels = group.get_by_role("radio").evaluate_all("(radios) => radios.map((radio) => radio.labels[0].textContent)")
    assert labels == ["view", "share", "copy"]
    expect(shown.radio("view")).to_be_checked()
    shown.page.locator("#output summary").focus()
    shown.page.keyboard.press("Tab")
    expect(shown.radio("view")).to_be_focused()
    shown.page.keyboard.press("ArrowRight")
    expect(shown.radio("share")).to_be_focused()
    shown.page.keyboard.press("ArrowRight")
    expect(shown.radio("copy")).to_be_checked()
    shown.answer()
    expect(shown.radio("copy")).to_be_checked()
    shown.answer()
    assert shown.widget.mode == "copy"
    shown.page.keyboard.press("Tab")
    expect(shown.name).to_be_focused()


def test_the_card_follows_the_answer_of_the_kernel(toggle: MakeToggle) -> None:
    """The page claims nothing of a mode that is not confirmed, and what was unfolded stays so."""
    shown = toggle()
    face = shown.page.locator("#output .tensornp-face")
    face.locator("summary").click()
    shown.radio("copy").click()
    expect(shown.radio("copy")).to_be_checked()
    expect(face).to_contain_text("shared")
    shown.answer()
    expect(face).to_contain_text("copy 8 bytes")
    expect(face.locator("details")).to_have_attribute("open", "")


def test_what_is_pressed_stays_under_the_mouse(toggle: MakeToggle) -> None:
    """However many lines the array has then."""
    options = DisplayOptions.of(precision=2, max_height=0)
    shown = toggle(torch.rand(3, 12), options=options, css="body { padding: 900px 0; width: 900px; }")
    digits = shown.page.get_by_role("button", name="All digits")
    digits.scroll_into_view_if_needed()
    for pressed in ("true", "false"):
        before = digits.bounding_box(), shown.page.locator(".tensornp-face").bounding_box()
        digits.click()
        shown.answer()
        expect(digits).to_have_attribute("aria-pressed", pressed)
        after = digits.bounding_box(), shown.page.locator(".tensornp-face").bounding_box()
        assert abs(after[0]["y"] - before[0]["y"]) < 1 and after[1]["height"] != before[1]["height"]


def test_enter_in_the_name_field_binds_and_a_taken_name_is_overwritten_only_when_confirmed(toggle: MakeToggle) -> None:
    """The button says Overwrite for the very name that the kernel asked about, and for no other."""
    shown = toggle()
    bind = shown.page.locator(".tensornp-bind button")
    expect(shown.name).to_have_value("w_np")
    shown.name.fill("taken")
    shown.name.press("Enter")
    shown.answer()
    expect(shown.status).to_contain_text("taken already names something")
    expect(bind).to_have_accessible_name("Overwrite")
    shown.name.press("End")
    shown.name.press("x")
    expect(bind).to_have_accessible_name("Assign")
    shown.name.press("Backspace")
    expect(bind).to_have_accessible_name("Overwrite")
    assert shown.bound == {"taken": 1}
    bind.click()
    shown.answer()
    assert shown.bound["taken"].tolist() == [0, 0]
    expect(shown.status).to_have_text("assigned to taken (view)")
    expect(bind).to_have_accessible_name("Assign")


def test_when_the_kernel_is_gone_nothing_can_be_pressed_and_it_says_what_to_do(toggle: MakeToggle) -> None:
    """Also where an answer was still waited for."""
    shown = toggle()
    shown.radio("share").click()
    shown.page.evaluate("window.lose()")
    controls = shown.page.locator("#output").locator("input, button.tensornp-button")
    assert controls.count() == 8
    assert all(control.is_disabled() for control in controls.all())
    expect(shown.status).to_contain_text("run the cell again")
    # The page shows one that stands alone anew where its cell is moved.
    shown.page.evaluate("window.show_again()")
    expect(shown.radio("copy")).to_have_count(2)
    assert all(control.is_disabled() for control in controls.all())


def test_it_takes_the_place_of_the_static_card_and_gives_it_back(toggle: MakeToggle) -> None:
    """Each fact is seen once while it is docked, and every pixel of the card is back when it leaves."""
    shown = toggle(anchor=ANCHOR)
    expect(shown.page.get_by_role("radiogroup")).to_have_count(0)
    assert shown.static.screenshot() == shown.static_image
    shown.answer_next()
    expect(shown.page.locator("#output")).to_be_empty()
    expect(shown.static.get_by_role("radiogroup")).to_be_visible()
    for seen_once in ("shared", "float32", "array([0., 0.], dtype=float32)"):
        expect(shown.static.get_by_text(seen_once, exact=True).filter(visible=True)).to_have_count(1)
    expect(shown.static.locator("summary").filter(visible=True)).to_have_count(1)
    shown.page.evaluate("window.close_model()")
    expect(shown.page.get_by_role("radiogroup")).to_have_count(0)
    assert shown.static.screenshot() == shown.static_image


def test_no_text_is_ever_taken_for_html(toggle: MakeToggle) -> None:
    """Whatever a name or an answer holds is shown as it is, and nothing of it runs."""
    evil = """</pre><script>window.ran = 1</script><img src="x" onerror="window.ran = 2"><b>"""
    shown = toggle(suggestion=evil)
    expect(shown.name).to_have_value(evil)
    shown.name.press("Enter")
    request = shown.sent()[0]
    shown.reply({**request, "type": "error", "text": evil, "again": evil})
    output = shown.page.locator("#output")
    assert output.locator("output, .tensornp-again code").all_text_contents() == [evil, evil]
    assert output.locator("script, img, b").count() == 0
    assert shown.page.evaluate("window.ran") is None


def test_what_changes_is_announced_once(toggle: MakeToggle) -> None:
    """Once more where it happens once more, and not with every answer."""
    shown = toggle()
    announced = Announced(shown.page)
    bind = shown.page.get_by_role("button", name="Assign", exact=True)
    bind.click()
    shown.answer()
    assert announced() == ["assigned to w_np (view)"]
    shown.bound.clear()
    bind.click()
    shown.answer()
    assert announced() == ["assigned to w_np (view)"]


def test_axe_finds_nothing_against_it(toggle: MakeToggle) -> None:
    """Names, roles and contrasts hold with a disabled mode, an open receipt, open values and an error on dark."""
    shown = docked(toggle, torch.zeros(2, 3, dtype=torch.complex64).conj(), css=LAB_DARK)
    shown.static.locator("summary").filter(visible=True).click()
    shown.name.fill("taken")
    shown.name.press("Enter")
    shown.answer()
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()
    shown.click(shown.page.get_by_role("button", name="Values"))
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()


def test_nan_is_a_badge_that_leads_there(toggle: MakeToggle) -> None:
    """A static card has the badge as text; the window opens at the element, and closes to its button."""
    odd = torch.rand(3, 3)
    odd[1, 2] = float("nan")
    shown = toggle(odd, anchor=ANCHOR)
    assert shown.static.get_by_role("button").count() == 0
    shown.answer_next()
    alarm = shown.static.get_by_role("button", name="1 NaN")
    alarm.focus()
    shown.page.keyboard.press("Enter")
    shown.settle()
    expect(shown.page.locator(".tensornp-where")).to_have_text(re.compile(r"^\[1, 2\] "))
    values = shown.page.get_by_role("button", name="Values")
    expect(values).to_have_attribute("aria-expanded", "true")
    shown.page.get_by_role("button", name="Close the grid").click()
    expect(values).to_be_focused()
    expect(shown.page.get_by_role("grid")).to_have_count(0)


def test_nothing_jumps_when_the_toggle_comes_or_a_mode_is_chosen(toggle: MakeToggle) -> None:
    """The receipt stands where the static card has it, to the pixel, and stays there in every mode."""
    shown = toggle(torch.arange(40.0).reshape(5, 8), anchor=ANCHOR)
    page, place = shown.page, "(nodes) => nodes.map((node) => node.getBoundingClientRect().y)"
    receipt = page.locator(f".{ANCHOR} details:visible summary")
    parts = page.locator(f".{ANCHOR} .tensornp-face pre, .{ANCHOR} .tensornp-bar, .{ANCHOR} .tensornp-face details")
    static = receipt.evaluate_all(place)
    array = page.locator(f".{ANCHOR} pre:visible").bounding_box()
    shown.answer_next()
    assert receipt.evaluate_all(place) == static
    assert page.locator(f".{ANCHOR} pre:visible").bounding_box() == array
    before = parts.evaluate_all(place)
    for mode in ("share", "copy", "view"):
        shown.radio(mode).check()
        shown.answer()
        assert parts.evaluate_all(place) == before, mode
