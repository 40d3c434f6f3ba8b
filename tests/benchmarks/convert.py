"""The time of `to_numpy`, beside the line of plain PyTorch that does the same where it can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from side_by_side import Figure, interleave, timed

from tensornp import to_numpy

CLAIM, CLAIM_DICT = 4, 8


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield figures of ordinary CPU tensors, which share memory, and bfloat16 ones, which are widened."""
    plain, widened = "t.detach().cpu().numpy()", "t.detach().cpu().float().numpy()"
    small = torch.ones(20, 50)
    tensors: dict[str, tuple[Any, str]] = {
        "float32 (20, 50)": (small, plain),
        "Parameter (20, 50)": (torch.nn.Parameter(small.clone()), plain),
        "transposed (50, 20)": (small.t(), plain),
        "0-d": (torch.tensor(1.0), plain),
        "a dict of 300": ({f"w{i}": small.clone() for i in range(300)}, f"{{k: {plain} for k, t in t.items()}}"),
        "bfloat16 (20, 50)": (small.bfloat16(), widened),
        "bfloat16 (1000, 1000)": (torch.ones(1000, 1000, dtype=torch.bfloat16), widened),
    }
    for name, (tensor, line) in tensors.items():
        statements = {"tensornp": "to_numpy(t)", "plain": line}
        seconds = interleave(statements, {"to_numpy": to_numpy, "t": tensor}, rounds=50 if quick else 500)
        claim = {plain: CLAIM, widened: None}.get(line, CLAIM_DICT)
        yield timed(f"to_numpy of {name}", seconds["tensornp"], line, seconds["plain"], at_most=claim)
