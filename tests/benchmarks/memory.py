"""What the search for other names and the fingerprint add to a card, and how fast a fingerprint reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from side_by_side import Figure, interleave, timed

from tensornp.core.memory.changes import fingerprint
from tensornp.core.namespace.search import Search
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.fronts.ipython.names import ShellSession
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.session.ledger import MAX_SEARCH_SECONDS, Ledger

OPTIONS = DisplayOptions()
ALIAS_CLAIM = 11
READ_CLAIM = 2
SCALE_CLAIM = 1.2
NUM_PARAMETERS = 100_000


def make_card(tensor: torch.Tensor, look: Look | None = None, options: DisplayOptions = OPTIONS) -> tuple[str, str]:
    """Return the text and the HTML of a card, made as the formatter makes them: from one summary."""
    summary = summarize(tensor, options, look)
    return tensor_text(summary), tensor_html(summary, options, anchor="tnp-0123abcd")


def ledger_over(namespace: dict[str, Any], **options: int) -> Ledger:
    """Return the ledger of a shell with these names."""
    shell = InteractiveShell()
    shell.user_ns.update(namespace)
    return Ledger(ShellSession(shell), lambda: DisplayOptions(**options))


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield figures of cards among names, of bandwidth, and of the card of a huge tensor."""
    for count in (0, 100, 1_000, 10_000):
        half = count // 2
        names: dict[str, Any] = {f"t{i}": torch.zeros(10) for i in range(half)}
        names |= {f"a{i}": np.zeros(10) for i in range(half)}
        yield from _beside_bare(f"{count:,} tensors and arrays", names, quick, ALIAS_CLAIM if count == 1000 else None)
    modules = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(1)) for _ in range(NUM_PARAMETERS)])
    yield from _beside_bare(f"a module of {NUM_PARAMETERS:,} parameters", {"m": modules}, quick)
    yield from _bandwidth(quick)
    yield _scale(quick)


def _beside_bare(what: str, names: dict[str, Any], quick: bool, at_most: float | None = None) -> Iterator[Figure | str]:
    t = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    ledger = ledger_over({**names, "t": t, "b": t.numpy()}, max_read_nbytes=0)
    seconds = interleave(
        {"bare": "make_card(t, None)", "looked": "make_card(t, ledger.look)"},
        {"make_card": make_card, "t": t, "ledger": ledger},
        rounds=20 if quick else 200,
    )
    beside = "the card without the search for other names"
    yield timed(f"a card among {what}", seconds["looked"], beside, seconds["bare"], at_most=at_most)
    places: list[object] = []
    searched = Search(names, MAX_SEARCH_SECONDS, lambda *place: places.append(place))
    if not searched.is_complete:
        yield f"Among {what} the search stops in its {1000 * MAX_SEARCH_SECONDS:.0f} ms, at {len(places):,}."


def _bandwidth(quick: bool) -> Iterator[Figure]:
    t = torch.randn(2_500_000 if quick else 100_000_000, generator=torch.Generator().manual_seed(0))
    a = t.numpy()
    statements = {
        "fingerprint": "fingerprint(t, 2**62)",
        "torch's sum": "t.sum()",
        "NumPy's max": "a.max()",
    }
    seconds = interleave(statements, {"fingerprint": fingerprint, "t": t, "a": a}, rounds=10 if quick else 50)
    own, what, size = seconds.pop("fingerprint"), f"the fingerprint of all of {t.nbytes / 1e6:,.0f} MB", t.nbytes / 1e9
    for name, taken in seconds.items():
        claim = READ_CLAIM if name == "torch's sum" else None
        yield timed(what, own, name, taken, at_most=claim, gigabytes=size)


def _scale(quick: bool) -> Figure:
    small = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    repeats = (25, 20) if quick else (250, 200)
    big = small.repeat(repeats)
    ledger = ledger_over({"small": small, "big": big})
    seconds = interleave(
        {"small": "make_card(small, ledger.look)", "big": "make_card(big, ledger.look)"},
        {"make_card": make_card, "small": small, "big": big, "ledger": ledger},
        rounds=50 if quick else 500,
    )
    what, beside = f"a card of {big.numel():,}, a sample fingerprinted", f"one of {small.numel():,}, all of it"
    return timed(what, seconds["big"], beside, seconds["small"], at_most=SCALE_CLAIM)
