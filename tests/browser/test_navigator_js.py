"""The navigator's ES module in a blank page: a real widget answers it, one request at a time, when the test says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.contrast import illegible
from browser.module_page import ModulePage, px_off
from browser.test_toggle_js import LAB_DARK, stop_clock
from tensornp.core.values.pictures.planes import difference_of
from tensornp.core.values.shown.window import subject_of
from tensornp.errors import NameTakenError
from tensornp.widget.toggle import TensorWidget
from tensornp.widget.values import LookedAt


class Navigator(ModulePage):
    """A navigator in a page, and the kernel's part in it."""

    def __init__(self, page: Page, tensor: torch.Tensor, *, css: str = "", faces: Any = (), goal: Any = "") -> None:
        self.tensor = tensor
        self.bound: dict[str, Any] = {}
        looked_at = LookedAt(lambda: self.tensor, name="w", binder=self._bind, suggestion="part_np", faces=faces)
        widget = TensorWidget(torch.zeros(2))
        values = widget._values
        # The values of a toggle, of whatever the test wants to look at.
        widget._handlers["values"] = lambda request: values.show(looked_at, goal)
        # What takes long is answered at once.
        widget._slow.clear()
        values._is_latest = lambda request: True
        super().__init__(page, widget, "toggle", css=css)
        page.get_by_role("button", name="Values").click()
        self.grid = page.get_by_role("grid")
        self.where = page.locator(".tensornp-where")
        self.said, self.status = page.locator(".tensornp-said"), page.locator("output")
        self.index = page.get_by_role("textbox", name="Go to an index")
        self.settle()

    def _bind(self, name: str, make: Callable[[], Any], overwrite: bool) -> None:
        if name in self.bound and not overwrite:
            raise NameTakenError(f"{name} is taken", can_overwrite=True)
        self.bound[name] = make()

    def cell(self, index: str) -> Locator:
        """Return the cell that the keyboard is on, which must be that of `index`."""
        expect(self.where).to_have_text(re.compile(rf"^\[{re.escape(index)}\] "))
        return self.grid.locator("td[tabindex='0']")


MakeNavigator = Callable[..., Navigator]


@pytest.fixture
def navigator(blank: Page) -> MakeNavigator:
    def make(tensor: torch.Tensor, **options: Any) -> Navigator:
        return Navigator(blank, tensor, **options)

    return make


def counted(*shape: int) -> torch.Tensor:
    """Return a tensor whose elements tell where they are."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def test_it_is_a_grid_of_the_whole_tensor_with_one_tab_stop(navigator: MakeNavigator) -> None:
    """Counts and places are those of the tensor, headings included, whatever part of it is seen."""
    shown = navigator(counted(3, 100, 200))
    expect(shown.grid).to_have_attribute("aria-rowcount", "101")
    expect(shown.grid).to_have_attribute("aria-colcount", "201")
    expect(shown.grid).to_have_accessible_name("Values of w")
    assert shown.grid.locator("[tabindex='0']").count() == 1
    shown.grid.locator("[tabindex='0']").focus()
    shown.press("Control+End")
    cell = shown.cell("0, 99, 199")
    expect(cell).to_be_focused()
    expect(cell).to_have_text("19999")
    expect(cell).to_have_attribute("aria-colindex", "201")
    expect(cell.locator("xpath=..")).to_have_attribute("aria-rowindex", "101")
    assert shown.grid.locator("[tabindex='0']").count() == 1


def test_keys_move_as_in_a_grid(navigator: MakeNavigator) -> None:
    """Arrows, Page, Home and End, alone and with Control; never beyond the edge."""
    shown = navigator(counted(3, 100, 200))
    shown.grid.locator("[tabindex='0']").focus()
    for key, index in (
        ("ArrowUp", "0, 0, 0"), ("ArrowDown", "0, 1, 0"), ("ArrowRight", "0, 1, 1"), ("PageDown", "0, 17, 1"),
        ("End", "0, 17, 199"), ("ArrowRight", "0, 17, 199"), ("Home", "0, 17, 0"), ("Control+End", "0, 99, 199"),
        ("PageUp", "0, 83, 199"), ("ArrowLeft", "0, 83, 198"), ("Control+Home", "0, 0, 0"),
    ):  # fmt: skip
        shown.press(key)
        cell = shown.cell(index)
        expect(cell).to_be_focused()
        place = [int(i) for i in index.split(", ")]
        assert float(cell.inner_text()) == shown.tensor[tuple(place)].item(), key


def test_a_page_of_one_dimension_goes_along_it(navigator: MakeNavigator) -> None:
    """As far as numbers are seen."""
    shown = navigator(counted(300))
    shown.grid.locator("[tabindex='0']").focus()
    num_seen = shown.grid.locator("td.tensornp-cell").count()
    shown.press("PageDown")
    expect(shown.cell(str(num_seen))).to_be_focused()
    shown.press("PageUp")
    expect(shown.cell("0")).to_be_focused()


def test_an_index_is_gone_to_and_a_wrong_one_is_explained_beside_the_field(navigator: MakeNavigator) -> None:
    """`g` goes to the field, Enter to the cell, Escape back to where one was."""
    shown = navigator(counted(3, 100, 200))
    shown.grid.locator("[tabindex='0']").focus()
    shown.press("g")
    expect(shown.index).to_be_focused()
    expect(shown.index).to_have_value("")
    shown.index.fill("2, 77, 300")
    shown.press("Enter")
    problem = shown.page.locator(".tensornp-problem")
    expect(problem).to_contain_text("out of bounds for axis 2 of shape")
    expect(shown.index).to_be_focused()
    expect(shown.index).to_have_attribute("aria-invalid", "true")
    shown.index.fill("[2, 77, -1]")
    shown.press("Enter")
    expect(problem).to_have_text("")
    expect(shown.cell("2, 77, 199")).to_be_focused()
    shown.press("g")
    shown.index.fill("x")
    shown.press("Escape")
    expect(shown.cell("2, 77, 199")).to_be_focused()
    shown.press("Escape")
    expect(shown.page.get_by_label("Notebook")).to_be_focused()


def test_the_next_nan_is_two_keys_away(navigator: MakeNavigator) -> None:
    """From the grid by `n`, which goes round, and by buttons, which keep the focus; what is not there is said."""
    t = torch.zeros(4, 90, 90)
    t[1, 80, 70] = t[3, 2, 1] = torch.nan
    shown = navigator(t)
    shown.grid.locator("[tabindex='0']").focus()
    for index in ("1, 80, 70", "3, 2, 1", "1, 80, 70"):
        shown.press("n")
        expect(shown.cell(index)).to_be_focused()
        expect(shown.cell(index)).to_have_class(re.compile("tensornp-nan"))
    button = shown.page.get_by_role("button", name="next NaN")
    button.focus()
    shown.press("Enter")
    shown.cell("3, 2, 1")
    expect(button).to_be_focused()
    shown.click(shown.page.get_by_role("button", name="next Inf"))
    expect(shown.said).to_have_text("there is no infinity in this tensor")
    shown.cell("3, 2, 1")


def test_axes_are_chosen_and_never_twice_the_same(navigator: MakeNavigator) -> None:
    """The other one takes the place; a field for each axis that is left."""
    shown = navigator(counted(3, 10, 20))
    rows, columns = (shown.page.get_by_role("combobox", name=f"Axis of the {name}") for name in ("rows", "columns"))
    rows.select_option("0")
    shown.settle()
    expect(shown.index).to_have_attribute("placeholder", ":, 0, 0:16")
    columns.select_option("0")
    shown.settle()
    expect(rows).to_have_value("2")
    expect(shown.index).to_have_attribute("placeholder", ":, 0, 0:16")
    number = shown.page.get_by_role("spinbutton", name="Index on axis 1 of 10")
    shown.fill(number, "7")
    expect(shown.index).to_have_attribute("placeholder", ":, 7, 0:16")
    number.press("ArrowUp")
    shown.settle()
    expect(number).to_have_value("8")
    shown.fill(number, "99")
    shown.cell("0, 9, 0")


def test_a_tensor_that_changes_or_goes_says_so_in_place(navigator: MakeNavigator) -> None:
    """Another shape, no memory, and back."""
    shown = navigator(counted(3, 100, 200))
    shown.grid.locator("[tabindex='0']").focus()
    shown.press("Control+End")
    shown.tensor = torch.ones(2, 5, dtype=torch.bfloat16)
    shown.press("ArrowLeft", "Home")
    expect(shown.grid).to_have_attribute("aria-rowcount", "3")
    shown.press("Control+End")
    expect(shown.cell("1, 4")).to_be_focused()
    expect(shown.where).to_have_text("[1, 4]  1.0  bfloat16")
    shown.tensor.untyped_storage().resize_(0)
    shown.click(shown.page.get_by_role("button", name="next NaN"))
    expect(shown.said).to_contain_text("freed")
    shown.tensor.untyped_storage().resize_(20)
    shown.grid.locator("td[tabindex='0']").focus()
    shown.press("Control+Home")
    shown.cell("0, 0")
    shown.tensor = torch.ones(2, 2, device="meta")
    shown.click(shown.page.get_by_role("button", name="next NaN"))
    expect(shown.said).to_contain_text("meta")
    shown.tensor = torch.tensor(2.5)
    shown.click(shown.page.get_by_role("button", name="next NaN"))
    shown.cell("")
    shown.tensor = torch.empty(0, 3)
    shown.click(shown.page.get_by_role("button", name="next NaN"))
    assert shown.grid.locator("tbody td").count() == 0
    expect(shown.where).to_have_text("")


def test_it_says_that_it_waits_and_when_the_kernel_is_gone(page: Page) -> None:
    """After the end, nothing can be pressed."""
    shown = Navigator(page, counted(500, 4))
    stop_clock(shown.page)
    shown.grid.locator("[tabindex='0']").focus()
    shown.page.keyboard.press("PageDown")
    shown.page.clock.run_for(1000)
    expect(shown.status).to_have_text("waiting for the kernel …")
    shown.answer()
    expect(shown.status).to_have_text("")
    shown.cell("16, 0")
    shown.page.evaluate("window.lose()")
    expect(shown.status).to_contain_text("run the cell again")
    controls = shown.page.locator("#output").locator("input, select, button")
    assert all(control.is_disabled() for control in controls.all())


def test_a_move_that_leaves_the_focus_elsewhere_is_announced(navigator: MakeNavigator) -> None:
    """In one polite region; a cell that takes the focus is read out by itself."""
    shown = navigator(counted(500, 4))
    live = shown.page.locator("[aria-live]")
    expect(live).to_have_count(1)
    shown.grid.locator("[tabindex='0']").focus()
    shown.press("ArrowDown", "PageDown", "ArrowRight")
    expect(live).to_have_text("")
    shown.page.get_by_role("button", name="max", exact=True).press("Enter")
    shown.settle()
    expect(live).to_have_text("[499, 3]  1999.0  float64")


def test_no_text_is_ever_taken_for_html(navigator: MakeNavigator) -> None:
    """Whatever the kernel sends is shown as it is."""
    shown = navigator(counted(2, 2))
    evil = """<img src="x" onerror="window.ran = 2"><b>"""
    shown.page.get_by_role("button", name="next NaN").click()
    (request,) = shown.sent()
    shown.num_answered += 1
    answer = {
        "type": "window", "shape": [1, 1], "axes": [0, 1], "corner": [0, 0], "size": [1, 1], "part": 0, "num_parts": 0,
        "dtype": evil, "device": evil, "texts": [evil], "exact": [evil], "places": [[0], [0]],
        "scope": evil, "show": [0, 0], "text": evil, "index": evil,
        "overview": evil, "faces": [],
    }  # fmt: skip
    shown.reply({**answer, "page": request["page"], "number": request["number"]}, ["AA==", "AAAA"])
    expect(shown.where).to_contain_text(evil)
    assert shown.page.locator("#output").locator("img, b, script").count() == 0
    assert shown.page.evaluate("window.ran") is None


# A cell gets the colour that the picture behind the cells has there.
COLOUR_CELLS = """(grid) => {
  const picture = grid.querySelector("canvas");
  const { data } = picture.getContext("2d").getImageData(0, 0, picture.width, picture.height);
  grid.querySelectorAll("td.tensornp-cell").forEach((cell, k) => {
    const [red, green, blue, opacity] = data.slice(4 * k);
    if (opacity) cell.style.backgroundColor = `rgba(${red}, ${green}, ${blue}, ${opacity / 255})`;
  });
}"""


def test_the_colours_lie_behind_their_cells(navigator: MakeNavigator) -> None:
    """From the first cell to the last, blue below zero, also when wider numbers have made all columns wider."""
    shown = navigator(torch.arange(-60.0, 60).reshape(10, 12))
    for _ in range(2):
        assert px_off(shown.grid) < 1.5
        shown.tensor *= 1e5
        shown.click(shown.page.get_by_role("button", name="min", exact=True))
    first = "(picture) => [...picture.getContext('2d').getImageData(0, 0, 1, 1).data]"
    red, _, blue, opacity = shown.grid.locator("canvas").evaluate(first)
    assert blue > red
    assert opacity == pytest.approx(127, abs=1)


def test_axe_finds_nothing_and_every_number_can_be_read(navigator: MakeNavigator) -> None:
    """Names, roles and contrasts of all colours and with more axes on dark, and with an error."""
    tensor = torch.linspace(-1, 1, 96).repeat(2, 3, 1).reshape(2, 3, 8, 12)
    tensor[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    shown = navigator(tensor, css=LAB_DARK)
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()
    shown.grid.evaluate(COLOUR_CELLS)
    assert illegible(shown.grid.locator("td.tensornp-cell, th")) == []
    shown.index.fill("x")
    shown.index.press("Enter")
    shown.settle()
    assert not (found := Axe().run(shown.page)).violations_count, found.generate_report()


def frame_of(shown: Navigator) -> list[float]:
    """Return where the window is in the overview, as shares of its height and width, from the middle of its frame."""
    return shown.page.evaluate(
        """() => {
          const [map, frame] = ["map", "frame"].map(
            (name) => document.querySelector(`.tensornp-${name}`).getBoundingClientRect());
          return [(frame.top + frame.height / 2 - map.top) / map.height,
                  (frame.left + frame.width / 2 - map.left) / map.width];
        }"""
    )


def test_a_click_in_the_overview_goes_to_that_place(navigator: MakeNavigator) -> None:
    """The frame says where one is, and Enter leads to the grid."""
    shown = navigator(counted(400, 800))
    overview = shown.page.get_by_role("button", name="Overview")
    box = overview.bounding_box()
    assert (box["width"], box["height"]) == (96, 48)
    overview.click(position={"x": 72, "y": 12})
    shown.settle()
    # A pixel of the page is some 8 elements.
    row, column = map(int, re.match(r"\[(\d+), (\d+)\]", shown.where.inner_text()).groups())
    assert (row, column) == (pytest.approx(100, abs=16), pytest.approx(600, abs=16))
    expect(shown.cell(f"{row}, {column}")).to_be_focused()
    assert frame_of(shown) == pytest.approx([row / 400, column / 800], abs=0.02)
    overview.focus()
    shown.press("Enter")
    expect(shown.cell(f"{row}, {column}")).to_be_focused()


def test_faces_take_turns_at_one_place(blank: Page) -> None:
    """Two sides and their difference: the place stays, and each element tells its values on all."""
    a, b = counted(30, 40), counted(30, 40).clone()
    b[20, 30] -= 5
    change = LookedAt(lambda: difference_of(subject_of(a), subject_of(b)))
    sides = (("before", LookedAt(lambda: a)), ("after", LookedAt(lambda: b)), ("Δ", change))
    shown = Navigator(blank, a, faces=sides, goal=(20, 30))
    sides_group = blank.get_by_role("group", name="Side").get_by_role("button")
    expect(sides_group).to_have_text(["before", "after", "Δ"])
    expect(blank.get_by_role("button", name="Δ", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(shown.cell("20, 30")).to_have_text("-5")
    expect(shown.where).to_contain_text("before 830.0  after 825.0  Δ -5.0")
    shown.click(blank.get_by_role("button", name="before", exact=True))
    expect(shown.cell("20, 30")).to_have_text("830")
    shown.click(blank.get_by_role("button", name="min", exact=True))
    shown.cell("0, 0")
    shown.click(blank.get_by_role("button", name="Δ", exact=True))
    shown.click(blank.get_by_role("button", name="max |x|"))
    expect(shown.cell("20, 30")).to_have_text("-5")


def test_a_window_is_bound_to_a_name(navigator: MakeNavigator) -> None:
    """A name that is taken is asked about, and what was said goes with another window."""
    shown = navigator(counted(50, 4))
    values = shown.page.locator(".tensornp-values")
    values.get_by_label("Name to assign the array to").fill("x")
    bind, said = values.get_by_role("button", name="Assign"), values.locator(".tensornp-outcome")
    shown.click(bind)
    expect(said).to_have_text("assigned to x")
    assert shown.bound["x"].tolist() == shown.tensor[:16].tolist()
    shown.grid.locator("[tabindex='0']").focus()
    shown.press("PageDown")
    expect(said).to_have_text("")
    shown.click(bind)
    expect(said).to_have_text("x is taken")
    shown.click(shown.page.get_by_role("button", name="Overwrite"))
    assert shown.bound["x"].tolist() == shown.tensor[1:17].tolist()
    expect(bind).to_be_visible()


def test_it_is_closed_by_a_button_of_its_own(navigator: MakeNavigator) -> None:
    """The focus goes to what has opened it."""
    shown = navigator(counted(5, 4))
    shown.page.get_by_role("button", name="Close the grid").click()
    expect(shown.grid).to_have_count(0)
    expect(shown.page.get_by_role("button", name="Values")).to_be_focused()
