"""What is heard of each view: rows and columns by their names, pictures in words, and no fact twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

import tensornp as tnp
from browser.test_toggle_js import LAB_DARK
from tensornp.core.memory.storages import Survey
from tensornp.core.summary.census import census_of
from tensornp.render.collections.census import census_document


def net(scale: float = 1.0) -> torch.nn.Module:
    """Return a small model, the same each time but for `scale`."""
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), inner, torch.nn.Linear(8, 2))
    with torch.no_grad():
        model[0].weight *= scale
    return model


def followed(scale: float = 1.0) -> tnp.FollowedPass:
    model = net(scale)
    with tnp.follow(model) as run:
        model(torch.ones(3, 4)).sum().backward()
    return run


@pytest.fixture(scope="module")
def views() -> dict[str, str]:
    values = torch.linspace(-1, 1, 300).reshape(60, 5)
    values[3, 2] = torch.nan
    weight = torch.zeros(3, 4)
    names = {"weight": weight, "row": weight[1], "array": weight.numpy(), "other": torch.ones(2)}
    run = followed()
    things = {
        "tensor": values,
        "row": torch.ones(2).requires_grad_(),
        "array": np.arange(60.0),
        "container": {"a": values, "n": 3, "deep": {"x": torch.zeros(3)}, "שם.weight": torch.ones(2)},
        "module": net(),
        "weights": tnp.weights(net()),
        "entry": tnp.weights(net())["0.weight"],
        "scan": tnp.weights(net(torch.nan)).scan(progress=False),
        "models": tnp.compare(net(), net(1.5)),
        "compared": tnp.compare(values, values + 1),
        "stats": tnp.stats(values),
        "by axis": tnp.stats(values, axis=1),
        "located": tnp.locate(values),
        "plan": tnp.plan(values),
        "facts": tnp.inspect(values),
        "aliases": tnp.aliases(weight, names),
        "image": tnp.image(torch.ones(2, 3, 8, 8) / 2),
        "pass": run,
        "call": run.calls[0],
        "passes": tnp.compare(run, followed(torch.nan)),
    }
    cards = {name: tnp.card(thing).html for name, thing in things.items()}
    return cards | {"tensors": census_document(census_of(Survey(names, 600), max_rows=40)).html()}


PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Views</title><style>{css}</style></head>
<body style="font:13px sans-serif"><main><h1>Views</h1>{inside}</main></body></html>"""


def page_of_views(views: dict[str, str], css: str = "") -> str:
    """Return a page of them, each under its name."""
    each = (f'<section aria-label="{name}" data-view="{name}">{html}</section>' for name, html in views.items())
    return PAGE.format(css=css, inside="".join(each))


TABLE = """
- table:
  - rowgroup:
    - row:
      - columnheader "name"
      - columnheader "what"
      - columnheader "relation"
  - rowgroup:
    - row:
      - rowheader "weight"
      - cell "tensor"
      - cell "same object"
    - row:
      - rowheader "array"
      - cell "NumPy array"
      - cell "same elements"
    - row:
      - rowheader "row"
      - cell "tensor"
      - cell "overlapping"
"""
CARD = """
- region "view":
  - group: (2,) float32 cpu requires grad shared code
  - text: "array([1., 1.], dtype=float32)"
"""
OPEN = """
- group:
  - text: (2,) float32 cpu requires grad shared code
  - code: a = t.detach().numpy(); a.flags.writeable = False
  - text: /float32 · exact · 0 bytes copied/
"""


def test_axe_finds_nothing_against_any_view(page: Page, views: dict[str, str]) -> None:
    """With all folds open."""
    page.set_content(page_of_views(views, LAB_DARK))
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


def test_each_row_has_a_name_and_looks_as_the_rest_of_it(page: Page, views: dict[str, str]) -> None:
    """The first cell of each row is its heading, but for one that stands across all columns."""
    page.set_content(page_of_views(views))
    rows = page.locator("tbody tr:not(:has([colspan]))")
    assert rows.count() > 60
    looks = """(rows) => rows.map(({ cells: [first, ...others] }) => {
        const look = (cell) => ["fontWeight", "color", "fontSize"].map((name) => getComputedStyle(cell)[name]).join();
        const isAlike = others.every((cell) => cell.tagName === "TD" && look(cell) === look(first));
        return [first.tagName, first.scope, getComputedStyle(first).textAlign, isAlike];
    })"""
    assert {tuple(one) for one in rows.evaluate_all(looks)} == {("TH", "row", "left", True)}
    assert page.locator("tbody [role=row], tbody tr").count() >= page.get_by_role("rowheader").count() == rows.count()


def test_a_table_and_a_card_are_heard_in_order(page: Page, views: dict[str, str]) -> None:
    """What a value is of, whichever column it stands in; the sentence behind a badge with the code, once."""
    page.set_content(page_of_views({"view": views["aliases"]}))
    expect(page.get_by_role("region", name="view")).to_match_aria_snapshot(TABLE)
    page.set_content(page_of_views({"view": views["row"]}))
    view = page.get_by_role("region", name="view")
    expect(view).to_match_aria_snapshot(CARD)
    view.locator("summary").click()
    expect(view.get_by_role("group")).to_match_aria_snapshot(OPEN)
    assert view.aria_snapshot().count("Autograd tracks this leaf and .grad is empty") == 1


def test_nothing_is_heard_twice(page: Page, views: dict[str, str]) -> None:
    """A title says more than what it is behind, and what stands for a picture is not what is written under it."""
    page.set_content(page_of_views(views))
    titles = page.locator("[title]").evaluate_all("(all) => all.map((one) => [one.title, one.textContent])")
    assert titles
    assert [title for title, text in titles if title.strip(".") == text.strip()] == []
    alts = page.locator("img").evaluate_all("(all) => all.map((one) => [one.alt, one.closest('section').textContent])")
    assert [alt for alt, text in alts if " " in alt and alt in text] == []
