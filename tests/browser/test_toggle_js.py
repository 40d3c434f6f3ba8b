"""The toggle's ES module in a blank page, with a model that the test answers for, in the place of a kernel."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.announced import Announced
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.tensor.card import tensor_html
from tensornp.widget.dock import module, stylesheet
from tensornp.widget.toggle import TensorWidget

ANCHOR = "tnp-test"
STATE = (
    "mode", "card", "choices", "array_text", "max_height", "answered",
    "anchor", "parting", "suggestion", "can_bind", "message", "answers", "place", "has_values", "shows_values",
    "has_stats", "progress", "figures", "is_in_row",
)  # fmt: skip
PAGE = """<!doctype html>
<html lang="en"><head><title>A card</title><style>{css}</style></head>
<body style="font-family:sans-serif"><main><h1>A card</h1>{card}<div id="output"></div></main></body></html>"""
LOAD = """async ([esm, state]) => {
  const handlers = [];
  let changed = {};
  window.sent = [];
  const model = {
    get: (key) => state[key],
    set(key, value) { state[key] = changed[key] = value; },
    save_changes() { window.sent.push(changed); changed = {}; },
    send(content) { window.sent.push(content); },
    on(name, callback) { handlers.push([name, callback]); },
    off() {},
  };
  const fire = (event) => handlers.forEach(([name, callback]) => name === event && callback());
  window.answer = (update) => {
    const answered = window.sent.at(-1)?.id ?? "";
    Object.assign(state, { answered }, update, { answers: state.answers + 1 });
    fire("change:answers");
  };
  window.move = (update) => { Object.assign(state, update); fire("change:anchor"); };
  window.lose = () => fire("comm_live_update");
  const module = await import("data:text/javascript;base64," + esm);
  const widget = module.default();
  window.close_model = widget.initialize({ model });
  window.show_again = () => widget.render({ model, el: document.getElementById("output") });
  await window.show_again();
}"""
LAB_DARK = """
:root { --jp-ui-font-color1: rgba(255, 255, 255, 0.87); --jp-ui-font-color2: rgba(255, 255, 255, 0.54);
  --jp-ui-font-color3: rgba(255, 255, 255, 0.38); --jp-border-color1: #616161; --jp-brand-color1: #2196f3;
  --jp-error-color1: #f44336; color-scheme: dark; }
body { background: #111; color: rgba(255, 255, 255, 0.87); }"""


def stop_clock(page: Page) -> None:
    """Have the page's time stand still, but for what `run_for` lets pass: a busy machine makes it late for nothing."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)


class Toggle:
    """A toggle in a page, and the kernel's part in it."""

    def __init__(self, page: Page, tensor: torch.Tensor, *, anchor: str = "", css: str = "", **state: Any) -> None:
        self.page = page
        widget = TensorWidget(tensor, anchor=anchor, suggestion="w_np", binder=lambda name, make, overwrite: "")
        card = tensor_html(summarize(tensor, DisplayOptions()), DisplayOptions(), anchor=ANCHOR)
        page.set_content(PAGE.format(css=stylesheet("toggle") + css, card=card))
        self.static = page.locator(f".{ANCHOR}")
        self.static_image = self.static.screenshot()
        esm = base64.b64encode(module("toggle").encode()).decode()
        page.evaluate(LOAD, [esm, {**{name: getattr(widget, name) for name in STATE}, **state}])
        widget.close()
        self.status = page.get_by_role("status")
        self.name = page.get_by_role("textbox")

    def radio(self, mode: str) -> Locator:
        return self.page.get_by_role("radio", name=mode, exact=True)

    def sent(self) -> Any:
        """Return what the page has sent, without the numbers by which the kernel knows it again."""
        sent = self.page.evaluate("window.sent")
        return [{name: value for name, value in message.items() if name != "id"} for message in sent]

    def answer(self, **update: Any) -> None:
        self.page.evaluate("(update) => window.answer(update)", update)


MakeToggle = Callable[..., Toggle]


@pytest.fixture
def toggle(page: Page) -> MakeToggle:
    def make(tensor: torch.Tensor | None = None, **options: Any) -> Toggle:
        return Toggle(page, torch.zeros(2) if tensor is None else tensor, **options)

    return make


def test_the_modes_are_radio_buttons_that_arrow_keys_move(toggle: MakeToggle) -> None:
    """One group with a name, one stop for Tab; an arrow key moves the choice and tells the kernel."""
    shown = toggle()
    group = shown.page.get_by_role("radiogroup", name="How the array uses the tensor's memory")
    labels = group.get_by_role("radio").evaluate_all("(radios) => radios.map((radio) => radio.labels[0].textContent)")
    assert labels == ["view", "share", "copy"]
    expect(shown.radio("view")).to_be_checked()
    shown.page.locator("#output summary").focus()
    shown.page.keyboard.press("Tab")
    expect(shown.page.get_by_role("button", name="Copy the code")).to_be_focused()
    shown.page.keyboard.press("Tab")
    expect(shown.radio("view")).to_be_focused()
    shown.page.keyboard.press("ArrowRight")
    expect(shown.radio("share")).to_be_focused()
    expect(shown.radio("share")).to_be_checked()
    shown.page.keyboard.press("ArrowRight")
    expect(shown.radio("copy")).to_be_checked()
    assert shown.sent() == [{"type": "choose", "mode": "share"}, {"type": "choose", "mode": "copy"}]
    shown.page.keyboard.press("Tab")
    expect(shown.name).to_be_focused()


def test_badges_follow_the_answer_of_the_kernel(toggle: MakeToggle) -> None:
    """The page claims nothing of a mode that is not confirmed."""
    shown = toggle()
    badges = shown.page.locator("#output .tensornp-badges")
    shown.radio("copy").click()
    expect(shown.radio("copy")).to_be_checked()
    expect(badges).to_contain_text("array: shared, read-only")
    badge = {"kind": "array", "text": "array: copy, 8 bytes", "title": "", "tone": "plain"}
    shown.answer(mode="copy", card={"badges": [badge], "memory": [], "receipt": {"code": "c", "lines": []}})
    expect(badges).to_contain_text("array: copy, 8 bytes")


def test_a_refused_choice_goes_back_and_says_why(toggle: MakeToggle) -> None:
    """What the kernel answers counts, not what was clicked."""
    shown = toggle()
    shown.radio("share").click()
    shown.answer(mode="view", message={"text": "the tensor of this card is gone; show it again", "tone": "error"})
    expect(shown.radio("view")).to_be_checked()
    expect(shown.status).to_have_text("the tensor of this card is gone; show it again")


def test_a_mode_that_cannot_be_is_disabled_and_its_title_says_why(toggle: MakeToggle) -> None:
    """The reason stands where the pointer rests, and neither pointer nor keys reach the mode."""
    shown = toggle(torch.zeros(2, dtype=torch.bfloat16))
    view = shown.page.locator("label", has_text="view")
    expect(shown.radio("view")).to_be_disabled()
    expect(view).to_have_attribute("title", re.compile("NumPy has no bfloat16"))
    expect(shown.radio("copy")).to_be_checked()
    view.click(force=True)
    shown.radio("copy").press("ArrowRight")
    expect(shown.radio("share")).to_be_checked()
    assert shown.sent() == [{"type": "choose", "mode": "share"}]


def test_enter_in_the_name_field_binds_and_a_taken_name_is_overwritten_only_when_confirmed(toggle: MakeToggle) -> None:
    """The button says Overwrite for the very name that the kernel asked about, and for no other."""
    shown = toggle()
    bind = shown.page.locator(".tensornp-bind button")
    expect(shown.name).to_have_value("w_np")
    shown.name.fill("taken")
    shown.name.press("Enter")
    assert shown.sent() == [{"type": "bind", "name": "taken", "overwrite": False}]
    question = "taken already names something of type int; press Overwrite to replace it"
    shown.answer(message={"text": question, "tone": "error", "confirm": "taken"})
    expect(shown.status).to_have_text(question)
    expect(bind).to_have_accessible_name("Overwrite")
    shown.name.press("End")
    shown.name.press("x")
    expect(bind).to_have_accessible_name("Bind")
    shown.name.press("Enter")
    shown.name.press("Backspace")
    expect(bind).to_have_accessible_name("Overwrite")
    bind.click()
    assert shown.sent()[1:] == [
        {"type": "bind", "name": "takenx", "overwrite": False},
        {"type": "bind", "name": "taken", "overwrite": True},
    ]
    shown.answer(message={"text": "bound to taken (view)"})
    expect(shown.status).to_have_text("bound to taken (view)")
    expect(bind).to_have_accessible_name("Bind")


def test_it_says_that_it_waits_only_while_the_kernel_is_slow(toggle: MakeToggle) -> None:
    """A kernel that answers at once is never waited for; one that is late is, until it answers."""
    shown = toggle()
    stop_clock(shown.page)
    shown.radio("copy").click()
    shown.answer()
    shown.page.clock.run_for(10_000)
    expect(shown.status).to_have_text("")
    shown.radio("share").click()
    expect(shown.status).to_have_text("")
    shown.page.clock.run_for(1_000)
    expect(shown.status).to_have_text("waiting for the kernel …")
    shown.answer()
    expect(shown.status).to_have_text("")
    shown.page.clock.run_for(10_000)
    expect(shown.status).to_have_text("")


def test_when_the_kernel_is_gone_nothing_can_be_pressed_and_it_says_what_to_do(toggle: MakeToggle) -> None:
    """Also where an answer was still waited for."""
    shown = toggle()
    stop_clock(shown.page)
    shown.radio("share").click()
    shown.page.evaluate("window.lose()")
    shown.page.clock.run_for(10_000)
    controls = shown.page.locator("#output").locator("input, button.tensornp-button")
    assert controls.count() == 7
    assert all(control.is_disabled() for control in controls.all())
    expect(shown.status).to_contain_text("run the cell again")
    # The page shows one that stands alone anew where its cell is moved.
    shown.page.evaluate("window.show_again()")
    expect(shown.radio("copy")).to_have_count(2)
    assert all(control.is_disabled() for control in controls.all())


def test_in_the_card_it_takes_the_place_of_badges_and_receipt_and_gives_it_back(toggle: MakeToggle) -> None:
    """Each fact is seen once while it is docked, and every pixel of the card is back when it leaves."""
    shown = toggle(anchor=ANCHOR)
    assert {"type": "docks"} in shown.sent()
    expect(shown.page.get_by_role("radiogroup")).to_have_count(0)
    assert shown.static.screenshot() == shown.static_image
    shown.answer()
    expect(shown.page.locator("#output")).to_be_empty()
    expect(shown.static.get_by_role("radiogroup")).to_be_visible()
    for seen_once in ("array: shared, read-only", "float32", "array([0., 0.], dtype=float32)"):
        expect(shown.static.get_by_text(seen_once, exact=True).filter(visible=True)).to_have_count(1)
    expect(shown.static.locator("summary").filter(visible=True)).to_have_count(1)
    shown.page.evaluate("window.close_model()")
    expect(shown.page.get_by_role("radiogroup")).to_have_count(0)
    assert shown.static.screenshot() == shown.static_image


def test_no_text_is_ever_taken_for_html(toggle: MakeToggle) -> None:
    """Whatever a name or a value holds is shown as it is, and nothing of it runs."""
    evil = """</pre><script>window.ran = 1</script><img src="x" onerror="window.ran = 2"><b>"""
    shown = toggle(
        array_text=evil,
        suggestion=evil,
        message={"text": evil, "tone": "plain", "again": evil},
        card={
            "badges": [{"kind": "type", "text": evil, "title": f'"{evil}', "tone": "plain"}],
            "memory": [evil],
            "receipt": {"mode": evil, "code": evil, "lines": [evil]},
        },
        choices=[{"name": "view", "enabled": True, "title": f'"{evil}'}],
    )
    output = shown.page.locator("#output")
    output.locator("summary").click()
    for place in (".tensornp-badge", "pre", "code", ".tensornp-line", "output"):
        said = output.locator(place).evaluate_all("(nodes) => nodes.map((node) => node.textContent)")
        assert set(said) == {evil}
    expect(shown.name).to_have_value(evil)
    expect(output.locator("label")).to_have_attribute("title", f'"{evil}')
    assert output.locator("script, img, b").count() == 0
    assert shown.page.evaluate("window.ran") is None


def test_what_changes_is_announced_once(toggle: MakeToggle) -> None:
    """Once more where it happens once more, and not with every answer."""
    shown = toggle(torch.zeros(2))
    stop_clock(shown.page)
    bound = {"text": "bound to w_np (view)", "again": "w_np = %tonumpy --view w"}
    announced = Announced(shown.page)
    shown.answer(message=bound)
    assert announced() == ["bound to w_np (view)"]
    shown.answer(figures={"words": ["mean 1"]})
    assert announced() == ["mean 1"]
    shown.radio("copy").check()
    shown.answer(mode="copy")
    assert announced() == []
    shown.page.get_by_role("button", name="Bind", exact=True).click()
    shown.answer(message=bound)
    assert announced() == ["bound to w_np (view)"]


def test_axe_finds_nothing_against_it(toggle: MakeToggle) -> None:
    """Names, roles and contrasts hold with a disabled mode, an open receipt and an error on dark."""
    message = {"text": "taken already names something; press Overwrite to replace it", "tone": "error"}
    shown = toggle(torch.zeros(2, dtype=torch.complex64).conj(), anchor=ANCHOR, css=LAB_DARK, message=message)
    shown.answer()
    shown.static.locator("summary").filter(visible=True).click()
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()
    shown.answer(message={"text": "bound to w_np (view)", "again": "w_np = %tonumpy --view w"})
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()


def test_the_code_is_copied_and_to_select_it_does_not_fold_it(toggle: MakeToggle) -> None:
    """By the button, also by keyboard, and by hand."""
    shown = toggle(torch.zeros(5, 5))
    shown.page.evaluate("navigator.clipboard = undefined; document.execCommand = () => (window.copied = true)")
    summary, code = shown.page.locator("#output summary"), shown.page.locator("#output details code")
    button = shown.page.get_by_role("button", name="Copy the code")
    button.focus()
    shown.page.keyboard.press("Enter")
    expect(button).to_have_text("copied")
    expect(button).to_be_focused()
    expect(button.locator("svg")).to_be_visible()
    summary.click()
    assert code.inner_text() == "a = t.numpy(); a.flags.writeable = False"
    code.click(click_count=2)
    assert shown.page.evaluate("getSelection().toString()").strip()
    expect(shown.page.locator("#output details")).to_have_attribute("open", "")


def test_nan_is_a_badge_that_leads_there(toggle: MakeToggle) -> None:
    """A static card has the badge as text."""
    odd = torch.rand(3, 3)
    odd[1, 2] = float("nan")
    shown = toggle(odd, anchor=ANCHOR)
    assert shown.static.get_by_role("button").count() == 0
    shown.answer()
    alarm = shown.static.get_by_role("button", name="1 NaN")
    alarm.focus()
    shown.page.keyboard.press("Enter")
    assert shown.sent()[-1] == {"type": "values", "open": True, "goal": "nan"}


def test_nothing_jumps_when_the_toggle_comes_or_a_mode_is_chosen(toggle: MakeToggle) -> None:
    """The receipt stands where the static card has it, to the pixel, and stays there in every mode."""
    shown = toggle(torch.arange(40.0).reshape(5, 8), anchor=ANCHOR)
    page, place = shown.page, "(nodes) => nodes.map((node) => node.getBoundingClientRect().y)"
    receipt = page.locator(f".{ANCHOR} details:visible summary")
    parts = page.locator(f".{ANCHOR} .tensornp-badges, .{ANCHOR} .tensornp-bar, .{ANCHOR} .tensornp-receipt")
    static = receipt.evaluate_all(place)
    array = page.locator(f".{ANCHOR} pre:visible").bounding_box()
    shown.answer()
    assert receipt.evaluate_all(place) == static
    assert page.locator(f".{ANCHOR} pre:visible").bounding_box() == array
    before = parts.evaluate_all(place)
    for mode in ("share", "copy", "view"):
        shown.radio(mode).check()
        shown.answer(mode=mode)
        assert parts.evaluate_all(place) == before, mode
