"""One page of each view that tensornp has, as static HTML."""

from __future__ import annotations

import numpy as np
import torch

import tensornp as tnp
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
    """Return a pass over that model."""
    model = net(scale)
    with tnp.follow(model) as run:
        model(torch.ones(3, 4)).sum().backward()
    return run


def every_view() -> dict[str, str]:
    """Return static HTML by what it is of."""
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
        "histogram": tnp.stats(values).histogram,
        "image": tnp.image(torch.ones(2, 3, 8, 8) / 2),
        "figure": tnp.plot(values),
        "pass": run,
        "call": run.calls[0],
        "passes": tnp.compare(run, followed(torch.nan)),
    }
    cards = {name: tnp.card(thing).html for name, thing in things.items()}
    return cards | {"tensors": census_document(census_of(Survey(names, {}, 600), max_rows=40)).html()}


PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Views</title><style>{css}</style></head>
<body style="font:13px sans-serif"><main><h1>Views</h1>{inside}</main></body></html>"""


def page_of_views(views: dict[str, str], css: str = "") -> str:
    """Return a page of them, each under its name."""
    each = (f'<section aria-label="{name}" data-view="{name}">{html}</section>' for name, html in views.items())
    return PAGE.format(css=css, inside="".join(each))
