"""The time and the size of a card, beside what else shows a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from others import installed, missing_note
from side_by_side import Figure, Spread, interleave, timed

import tensornp as tnp
from tensornp.core.summary.card import Look, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.names import ShellSession
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.session.ledger import Ledger

OPTIONS = DisplayOptions()
SHAPES = ((10,), (100, 100), (384, 384), (1000, 1000), (10_000, 10_000))
SLOW_NUMEL = 100_000_000
"""Elements from which on `quick` leaves the others out: one of them reads each element several times."""
BARE = "without other names and fingerprint"
OFF_TOO = "without figures"
REPRS = {"torch": "repr(t)", "NumPy": "repr(t.numpy())"}
CLAIM_NBYTES = 3072
CLAIMS: dict[str, dict[int, float]] = {"lovely_tensors": {10: 3.5, 384**2: 1, 1_000_000: 0.5}}
"""How many times as long as that a card takes at most, by the number of elements."""
CLAIM_OFF = 2.2
CLAIM_TABLE = 0.3
NUM_IN_TABLE = 10_000
OFF = DisplayOptions(stats="off")


def make_card(tensor: torch.Tensor, look: Look | None = None, options: DisplayOptions = OPTIONS) -> tuple[str, str]:
    """Return the text and the HTML of a card, made as the formatter makes them: from one summary."""
    summary = summarize(tensor, options, look)
    return tensor_text(summary), tensor_html(summary, options, anchor="tnp-0123abcd")


def ledger_over(namespace: dict[str, Any]) -> Ledger:
    shell = InteractiveShell()
    shell.user_ns.update(namespace)
    return Ledger(ShellSession(shell), lambda: OPTIONS)


def make_table(container: dict[str, torch.Tensor]) -> tuple[str, str]:
    """Return the text and the HTML of a container's table, as a cell shows them."""
    shown = tnp.card(container)
    return shown.text, shown.html


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield the times over shapes, of float32 tensors, and the sizes for a small tensor."""
    modules = {name: import_module(name) for name in installed()}
    for shape in SHAPES:
        t = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        others = {} if quick and t.numel() >= SLOW_NUMEL else installed()
        ledger = ledger_over({"torch": torch, "t": t})
        names = {"make_card": make_card, "t": t, "ledger": ledger, "off": OFF} | modules
        own = {"card": "make_card(t, ledger.look)", BARE: "make_card(t)", OFF_TOO: "make_card(t, None, off)"}
        seconds = interleave(own | REPRS | others, names, rounds=20 if quick else 200)
        what = f"a card of float32, {shape}"
        for other, statement in (REPRS | others).items():
            claim = CLAIMS.get(other, {}).get(t.numel())
            yield timed(what, seconds["card"], f"{other}: {statement}", seconds[other], at_most=claim)
        yield timed(what, seconds["card"], BARE, seconds[BARE])
        yield timed(f"{what}, stats='off'", seconds[OFF_TOO], "torch's repr", seconds["torch"], at_most=CLAIM_OFF)
    yield _table_of_many(quick)
    yield missing_note()
    yield from _sizes(modules)


def _table_of_many(quick: bool) -> Figure:
    tensors = {f"layers.{i}.weight": torch.randn(4, 5) for i in range(NUM_IN_TABLE)}
    seconds = interleave(
        {"table": "make_table(d)", "repr": "repr(d)"},
        {"make_table": make_table, "d": tensors},
        rounds=3 if quick else 20,
    )
    what = f"the table of a dict of {len(tensors):,} tensors"
    return timed(what, seconds["table"], "torch's repr", seconds["repr"], at_most=CLAIM_TABLE)


def _sizes(modules: dict[str, ModuleType]) -> Iterator[Figure]:
    t = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    text, html = make_card(t)
    shown = {"text": (text, None), "HTML": (html, CLAIM_NBYTES)}
    others = {name: len(eval(code, modules | {"t": t}).encode()) for name, code in (REPRS | installed()).items()}
    beside = ", ".join(f"{name} {size:,}" for name, size in others.items())
    for name, (result, claim) in shown.items():
        nbytes = Spread.of([len(result.encode())])
        yield Figure(f"the {name} of a card of shape (3, 4)", nbytes, "bytes", beside, at_most=claim)
