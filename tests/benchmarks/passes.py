"""Compare the cost of a followed step with the step alone, with anomaly detection, and with bare hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import torch
from side_by_side import Figure, timed
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensornp import follow


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield the processor times of a transformer and a small perceptron, in one thread, in turns."""
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    models = {
        "transformer, 12 layers, d=256, 4 × 128 tokens": (
            nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
            torch.randn(4, 128, 256), (1.2, 1.6, 1.3), None, "layers.3", 3,
        ),
        "perceptron, 3 layers of 64": (
            nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)),
            torch.randn(32, 64), (None, None, None), 2.2, "2", 200,
        ),
    }  # fmt: skip
    for name, (model, x, goals, of_bare, only, rounds) in models.items():
        step = _step(model, x)
        runs = {
            "a followed step": _followed(step),
            "with operators": _followed(step, level="operators"),
            f"with operators of {only}": _followed(step, level="operators", only=only),
        }
        others = {"bare": _bare(step), "anomaly": _anomaly(step)}
        seconds = _in_turns({"plain": step, **runs, **others}, rounds * (1 if quick else 5))
        plain = "the step alone"
        for run, goal in zip(runs, goals, strict=True):
            yield timed(f"{run}: {name}", seconds[run], plain, seconds["plain"], at_most=goal)
        followed = seconds["a followed step"]
        yield timed(f"a followed step: {name}", followed, "hooks, same statistics", seconds["bare"], at_most=of_bare)
        yield timed(f"hooks, same statistics: {name}", seconds["bare"], plain, seconds["plain"])
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


def _bare(step: Callable[[], None]) -> Callable[[], None]:
    """Return a step with bare hooks that read the same statistics as `follow` and record nothing else.

    They know a value of the forward by its address and version, leave no mode, and fail for odd tensors.
    """

    def run() -> None:
        figures: list[torch.Tensor] = []
        known: set[tuple[int, int]] = set()
        samples: list[torch.Tensor] = []

        @torch.no_grad()
        def take(*given: Any, has_sums: bool = True, has_sample: bool = False, is_gradient: bool = False) -> None:
            for x in given:
                key = (x.data_ptr(), x._version) if isinstance(x, torch.Tensor) else None
                if key is not None and (is_gradient or key not in known):
                    # Gradients are freed, and their addresses are used again.
                    known.update(() if is_gradient else (key,))
                    figures.extend(torch.aminmax(x))
                    if has_sums:
                        figures.append(torch.linalg.vector_norm(x))
                    if has_sums and not is_gradient:
                        figures.append(x.sum())
                    if has_sample:
                        samples.append(x.reshape(-1)[:: max(1, x.numel() // 256)].clone())

        def awaited(node: Any) -> None:
            handles.append(node.register_prehook(lambda grads: take(*grads, is_gradient=True)))

        def began(module: nn.Module, args: Any) -> None:
            take(*args, has_sample=True)
            for one in module._parameters.values():
                if one is not None:
                    take(one)
                    edges.append(get_gradient_edge(one))
                    awaited(edges[-1].node)

        def ended(module: nn.Module, args: Any, result: Any) -> None:
            result = result[0] if isinstance(result, tuple) else result
            take(result, has_sample=True)
            awaited(result.grad_fn)

        def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            take(*(one for group in optimizer.param_groups for one in group["params"]), has_sums=False)

        edges: list[Any] = []
        handles: list[Any] = [
            register_module_forward_pre_hook(began),
            register_module_forward_hook(ended),
            register_optimizer_step_post_hook(stepped),
        ]
        step()
        for handle in handles:
            handle.remove()
        torch.stack(figures).tolist()
        torch.cat(samples).tolist()

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
