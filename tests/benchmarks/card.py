"""The time and the size of a card, beside what else shows a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import torch
from memory import ledger_over
from others import installed, missing_note
from side_by_side import Spread, interleave, ratio, table, verdict

from tensornp.core.summary.card import summarize
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.render.collections.container import container_document
from tensornp.render.tensor.card import tensor_html, tensor_text

SHAPES = ((10_000,), (100, 100), (100_000,), (250, 400), (1_000_000,), (1000, 1000), (100_000_000,), (10_000, 10_000))
SLOW_NUMEL = 100_000_000
"""Elements from which on `quick` leaves the others out: one of them reads each element several times."""
OWN = "tensornp, text + HTML"
"""With the search for other names and the fingerprint, as users have it."""
BARE = "the same without these"
REPRS = {"torch repr": "repr(t)", "NumPy repr": "repr(t.numpy())"}
CLAIM_NBYTES = 3072
CLAIM_TIMES = 2
CLAIM_TABLE = 0.04
NUM_IN_TABLE = 10_000
OPTIONS = DisplayOptions()


def make_card(tensor: torch.Tensor, look: Look | None = None) -> tuple[str, str]:
    """Return the text and the HTML of a card, made as the formatter makes them: from one summary."""
    summary = summarize(tensor, OPTIONS, look)
    return tensor_text(summary), tensor_html(summary, OPTIONS, anchor="tnp-0123abcd")


def make_table(container: dict[str, torch.Tensor]) -> tuple[str, str]:
    """Return the text and the HTML of a container's table."""
    summary = summarize_container(container, OPTIONS)
    return container_document(summary).text(), container_document(summary).html()


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table of times over shapes, of float32 tensors, and one of sizes for a small tensor."""
    modules = {name: import_module(name) for name in installed()}
    rows = []
    for shape in SHAPES:
        t = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        others = {} if quick and t.numel() >= SLOW_NUMEL else installed()
        ledger = ledger_over({"torch": torch, "t": t})
        seconds = interleave(
            {OWN: "make_card(t, ledger.look)", BARE: "make_card(t)"} | REPRS | others,
            {"make_card": make_card, "t": t, "ledger": ledger} | modules,
            rounds=20 if quick else 200,
        )
        for name, taken in seconds.items():
            times_as_long = "" if name == OWN else ratio(seconds[OWN], taken)
            claim = verdict(CLAIM_TIMES, ratio(seconds[OWN], taken)) if name == "torch repr" else ""
            rows.append((shape, name, Spread.of(taken).in_seconds(), times_as_long, claim))
    yield table(("shape", "shown by", "time (10th–90th percentile)", "tensornp / it", "claim"), rows)
    yield _table_of_many(quick)
    yield missing_note()
    yield _sizes(modules)


def _table_of_many(quick: bool) -> str:
    tensors = {f"layers.{i}.weight": torch.randn(4, 5) for i in range(1000 if quick else NUM_IN_TABLE)}
    seconds = interleave(
        {"table": "make_table(d)", "repr": "repr(d)"},
        {"make_table": make_table, "d": tensors},
        rounds=5 if quick else 20,
    )
    beside = ratio(seconds["table"], seconds["repr"])
    own, other = (Spread.of(seconds[key]).in_seconds() for key in ("table", "repr"))
    headings = (f"a dict of {len(tensors):,} tensors", "torch repr", "ratio", "claim")
    return table(headings, [(own, other, beside, verdict(CLAIM_TABLE, beside))])


def _sizes(modules: dict[str, ModuleType]) -> str:
    t = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    text, html = make_card(t)
    shown = {"tensornp, text": text, "tensornp, HTML": html}
    shown |= {name: eval(statement, modules | {"t": t}) for name, statement in (REPRS | installed()).items()}
    nbytes = {name: len(result.encode()) for name, result in shown.items()}
    claims = {"tensornp, HTML": verdict(CLAIM_NBYTES, Spread.of([nbytes["tensornp, HTML"]]))}
    rows = ((name, size, claims.get(name, "")) for name, size in nbytes.items())
    return table(("a tensor of shape (3, 4)", "bytes", "claim"), rows)
