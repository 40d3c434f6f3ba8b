"""What following a pass costs, beside the same step that nobody follows, and beside anomaly detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import torch
from side_by_side import Figure, timed
from torch import nn

from tensornp import follow


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield figures of a transformer and of a small perceptron: processor time of one thread, step by step in turns."""
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    models = {
        "transformer, 12 layers, d=256, 4 × 128 tokens": (
            nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
            torch.randn(4, 128, 256), (1.25, 1.6, 1.25), "layers.3", 3,
        ),
        "perceptron, 3 layers of 64": (
            nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)),
            torch.randn(32, 64), (4.0, 10.0, None), "2", 200,
        ),
    }  # fmt: skip
    for name, (model, x, goals, only, rounds) in models.items():
        step = _step(model, x)
        runs = {
            "a followed step": _followed(step),
            "with operators": _followed(step, level="operators"),
            f"with operators of {only}": _followed(step, level="operators", only=only),
        }
        seconds = _in_turns({"plain": step, **runs, "anomaly": _anomaly(step)}, rounds * (1 if quick else 5))
        plain = "the step alone"
        for run, goal in zip(runs, goals, strict=True):
            yield timed(f"{run}: {name}", seconds[run], plain, seconds["plain"], at_most=goal)
        yield timed(f"detect_anomaly: {name}", seconds["anomaly"], plain, seconds["plain"])


def _step(model: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def _followed(step: Callable[[], None], **options: Any) -> Callable[[], None]:
    def run() -> None:
        with follow(**options):
            step()

    return run


def _anomaly(step: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        with torch.autograd.set_detect_anomaly(True):
            step()

    return run


def _in_turns(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Return the processor time of each, round by round."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            begun = process_time()
            run()
            seconds[name].append(process_time() - begun)
    return seconds
