"""The time and the size of a card, beside what else shows a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import torch
from others import installed, missing_note
from side_by_side import Spread, interleave, ratio, table, verdict

from tensornp.core.options import DisplayOptions
from tensornp.core.summary import summarize
from tensornp.render.html import tensor_html
from tensornp.render.text import tensor_text

SHAPES = ((10_000,), (100, 100), (100_000,), (250, 400), (1_000_000,), (1000, 1000), (100_000_000,), (10_000, 10_000))
SLOW_NUMEL = 100_000_000
"""Elements from which on `quick` leaves the others out: one of them reads each element several times."""
OWN = "tensornp, text + HTML"
REPRS = {"torch repr": "repr(t)", "NumPy repr": "repr(t.numpy())"}
CLAIM_NBYTES = 3072
OPTIONS = DisplayOptions()


def make_card(tensor: torch.Tensor) -> tuple[str, str]:
    """Return the text and the HTML of a card, made as the formatter makes them: from one summary."""
    summary = summarize(tensor, OPTIONS)
    return tensor_text(summary), tensor_html(summary, receipt=OPTIONS.receipt, anchor="tnp-0123abcd")


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table of times over shapes, of float32 tensors, and one of sizes for a small tensor."""
    modules = {name: import_module(name) for name in installed()}
    rows = []
    for shape in SHAPES:
        t = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        others = {} if quick and t.numel() >= SLOW_NUMEL else installed()
        seconds = interleave(
            {OWN: "make_card(t)"} | REPRS | others,
            {"make_card": make_card, "t": t} | modules,
            rounds=20 if quick else 200,
        )
        for name, taken in seconds.items():
            times_as_long = "" if name == OWN else ratio(seconds[OWN], taken)
            rows.append((shape, name, Spread.of(taken).in_seconds(), times_as_long))
    yield table(("shape", "shown by", "time (10th–90th percentile)", "tensornp / it"), rows)
    yield missing_note()
    yield _sizes(modules)


def _sizes(modules: dict[str, ModuleType]) -> str:
    t = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    text, html = make_card(t)
    shown = {"tensornp, text": text, "tensornp, HTML": html}
    shown |= {name: eval(statement, modules | {"t": t}) for name, statement in (REPRS | installed()).items()}
    nbytes = {name: len(result.encode()) for name, result in shown.items()}
    claims = {"tensornp, HTML": verdict(CLAIM_NBYTES, Spread.of([nbytes["tensornp, HTML"]]))}
    rows = ((name, size, claims.get(name, "")) for name, size in nbytes.items())
    return table(("a tensor of shape (3, 4)", "bytes", "claim"), rows)
