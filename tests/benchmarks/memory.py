"""What the search for other names and the fingerprint add to a card, and how fast a fingerprint reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from side_by_side import Spread, interleave, ratio, table, verdict

from tensornp.core.memory.fingerprint import fingerprint
from tensornp.core.namespace.search import search
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.session.ledger import Ledger

OPTIONS = DisplayOptions()
ALIAS_CLAIM = 10
READ_CLAIM = 2
SCALE_CLAIM = 1.2
NUM_PARAMETERS = 100_000


def make_card(tensor: torch.Tensor, look: Look | None) -> tuple[str, str]:
    """Return the text and the HTML of a card, made as the formatter makes them."""
    summary = summarize(tensor, OPTIONS, look)
    return tensor_text(summary), tensor_html(summary, OPTIONS, anchor="tnp-0123abcd")


def ledger_over(namespace: dict[str, Any], **options: int) -> Ledger:
    """Return the ledger of a shell with these names."""
    shell = InteractiveShell()
    shell.user_ns.update(namespace)
    return Ledger(ShellSession(shell), lambda: DisplayOptions(**options))


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table on cards among names, one on bandwidth, and one on the card of a huge tensor."""
    yield _among_names(quick)
    yield _bandwidth(quick)
    yield _scale(quick)


def _among_names(quick: bool) -> str:
    rows = []
    for count in (0, 100, 1_000, 10_000):
        half = count // 2
        names: dict[str, Any] = {f"t{i}": torch.zeros(10) for i in range(half)}
        names |= {f"a{i}": np.zeros(10) for i in range(half)}
        rows.append(_beside_bare(f"{count:,} tensors and arrays", names, quick))
    modules = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(1)) for _ in range(NUM_PARAMETERS)])
    rows.append(_beside_bare(f"a module of {NUM_PARAMETERS:,} parameters", {"m": modules}, quick))
    headings = (
        "in the namespace",
        "card without the search",
        "with it",
        "search / card without",
        "claim",
        "",
    )
    return table(headings, rows)


def _beside_bare(what: str, names: dict[str, Any], quick: bool) -> tuple[object, ...]:
    t = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    ledger = ledger_over({**names, "t": t, "b": t.numpy()}, max_fingerprint_nbytes=0)
    seconds = interleave(
        {"bare": "make_card(t, None)", "looked": "make_card(t, ledger.look)"},
        {"make_card": make_card, "t": t, "ledger": ledger},
        rounds=20 if quick else 200,
    )
    added = Spread.of((with_it - bare) / bare for bare, with_it in zip(seconds["bare"], seconds["looked"], strict=True))
    places: list[object] = []
    searched = search(names, OPTIONS.max_search_ms / 1000, lambda *place: places.append(place))
    claim = verdict(ALIAS_CLAIM, added) if len(names) == 1000 else ""
    stopped = "" if searched.is_complete else f"the search stops in its {OPTIONS.max_search_ms} ms, at {len(places):,}"
    bare, looked = (Spread.of(seconds[key]).in_seconds() for key in ("bare", "looked"))
    return (what, bare, looked, added, claim, stopped)


def _bandwidth(quick: bool) -> str:
    t = torch.randn(2_500_000 if quick else 100_000_000, generator=torch.Generator().manual_seed(0))
    a = t.numpy()
    statements = {
        "fingerprint, all blocks": "fingerprint(t, 2**62)",
        "torch sum": "t.sum()",
        "NumPy max": "a.max()",
    }
    seconds = interleave(statements, {"fingerprint": fingerprint, "t": t, "a": a}, rounds=10 if quick else 50)
    rows = []
    for name, taken in seconds.items():
        speed = Spread.of(t.nbytes / 1e9 / s for s in taken)
        beside = ratio(seconds["fingerprint, all blocks"], taken)
        claim = verdict(READ_CLAIM, beside) if name == "torch sum" else ""
        rows.append((name, f"{speed} GB/s", beside, claim))
    return table((f"reading {t.nbytes / 1e6:,.0f} MB", "speed", "fingerprint takes times as long", "claim"), rows)


def _scale(quick: bool) -> str:
    small = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    repeats = (25, 20) if quick else (250, 200)
    big = small.repeat(repeats)
    ledger = ledger_over({"small": small, "big": big})
    seconds = interleave(
        {"small": "make_card(small, ledger.look)", "big": "make_card(big, ledger.look)"},
        {"make_card": make_card, "small": small, "big": big, "ledger": ledger},
        rounds=50 if quick else 500,
    )
    beside = ratio(seconds["big"], seconds["small"])
    small_time, big_time = (Spread.of(seconds[key]).in_seconds() for key in ("small", "big"))
    headings = (f"card of {small.numel():,}, all read", f"of {big.numel():,}, a sample read", "ratio", "claim")
    return table(headings, [(small_time, big_time, beside, verdict(SCALE_CLAIM, beside))])
