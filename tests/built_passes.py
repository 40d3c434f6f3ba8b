"""Records of passes made by hand: a transformer of 148 calls, whole or in trouble, and trees of any form."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tensornp.passes.records import RAISED, RECOMPUTED, Figures, Gradient, ModuleCall, PassRecord, Value

WIDE = (4, 128, 256)
ERROR = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (512x1024 and 128x256)"
NAN = Figures(math.nan, math.nan, math.nan, math.nan, 100)


def figures(scale: float, count: int = 100) -> Figures:
    """Return the figures of numbers between ``-3 * scale`` and ``3 * scale``."""
    return Figures(-3 * scale, 3 * scale, 0.0, scale * math.sqrt(count), count)


def value(shape: tuple[int, ...] = WIDE, scale: float = 1.0, *, is_nan: bool = False, **facts: object) -> Value:
    """Return a value of normal numbers, or one with a NaN."""
    rng = random.Random(f"{shape} {scale}")
    sample = tuple(scale * max(-3.0, min(3.0, rng.gauss(0, 1))) for _ in range(256))
    own = NAN if is_nan else figures(scale, math.prod(shape))
    given = {"dtype": "float32", "device": "cpu", "requires_grad": True, "figures": own, "sample": sample, **facts}
    return Value(shape=shape, **{"path": "", **given})  # type: ignore[arg-type]


class Builder:
    """Calls in the order in which they begin, each inside the one whose block it is made in."""

    def __init__(self) -> None:
        self.calls: list[ModuleCall] = []
        self._open: list[int] = []
        self._ended = 0

    @contextmanager
    def call(self, name: str, class_name: str, **facts: object) -> Iterator[None]:
        """Make a call, inside which others may be made."""
        index, parent = len(self.calls), self._open[-1] if self._open else None
        nth = sum(one.name == name for one in self.calls)
        call = ModuleCall(index, name, class_name, nth=nth, parent=parent, depth=len(self._open))
        self.calls.append(replace(call, **facts))  # type: ignore[arg-type]
        self._open.append(index)
        yield
        self._open.pop()
        self.calls[index] = replace(self.calls[index], order=self._ended)
        self._ended += 1

    def leaf(self, name: str, class_name: str, **facts: object) -> None:
        """Make a call that makes no others."""
        with self.call(name, class_name, **facts):
            pass


def transformer(
    num_layers: int = 12,
    *,
    nan_in: str | None = None,
    raised_in: str | None = None,
    num_recomputed: int = 0,
    grads: bool = True,
) -> PassRecord:
    """Return a pass of 12 calls a layer and 4 more: with a NaN that a call gives and passes on, or one that raises."""
    model = _Model(nan_in, raised_in, grads=grads and raised_in is None)
    with model.call("", "Encoder", (4, 128), (4, 10), code="model"):
        ids = value((4, 128), dtype="int64", requires_grad=False, figures=Figures(0, 5021, 1.2e6, 6e4, 512))
        with model.call("embed", "Embedding", (4, 128), inputs=(ids,)):
            pass
        for i in range(num_layers):
            model.layer(i)
        model.leaf("norm", "LayerNorm")
        model.leaf("head", "Linear", (4, 256), (4, 10), 0.3)
    for i in reversed(range(num_layers - num_recomputed, num_layers)):
        model.layer(i, phase=RECOMPUTED)
    parameters = tuple(Gradient(f"layers.{i}.norm1.weight", figures(0.01), i) for i in range(num_layers))
    error = "" if raised_in is None else ERROR
    return PassRecord(tuple(model.built.calls), parameters if model.grads else (), error, had_backward=model.grads)


class _Model:
    """A transformer whose calls know what was planted: after a NaN all is NaN, after an error nothing is called."""

    def __init__(self, nan_in: str | None, raised_in: str | None, *, grads: bool) -> None:
        self.built, self.grads = Builder(), grads
        self._nan_in, self._raised_in = nan_in, raised_in
        self._has_nan = self._has_raised = False

    @contextmanager
    def call(
        self,
        name: str,
        class_name: str,
        got: tuple[int, ...] = WIDE,
        gave: tuple[int, ...] = WIDE,
        scale: float = 1.0,
        **more: object,
    ) -> Iterator[None]:
        """Make a call; none after an error."""
        if self._has_raised:
            yield
            return
        came, self._has_nan = self._has_nan, self._has_nan or name == self._nan_in
        self._has_raised = name == self._raised_in
        is_nan = self._has_nan or _is_in(self._nan_in, name)
        back = None if not self.grads else NAN if self._nan_in is not None else figures(0.01 * scale, math.prod(gave))
        facts: dict[str, object] = {
            "inputs": (value(got, scale, is_nan=came),),
            "outputs": (value(gave, scale, is_nan=is_nan, grad=back, grad_orders=() if back is None else (0,)),),
        }
        if _is_in(self._raised_in, name):
            facts |= {"outputs": (), "status": RAISED, "error": ERROR}
        with self.built.call(name, class_name, **{**facts, **more}):
            yield

    def leaf(self, *args: Any, **more: object) -> None:
        """Make a call that makes no others."""
        with self.call(*args, **more):
            pass

    def layer(self, i: int, **more: object) -> None:
        """Make the calls of a layer."""
        name, scale, up = f"layers.{i}", 1.0 + 0.1 * i, (4, 128, 1024)
        with self.call(name, "Block", WIDE, WIDE, scale, **more):
            self.leaf(f"{name}.norm1", "LayerNorm", **more)
            with self.call(f"{name}.attn", "Attention", WIDE, WIDE, scale, **more):
                self.leaf(f"{name}.attn.qkv", "Linear", WIDE, (4, 128, 768), scale, **more)
                self.leaf(f"{name}.attn.drop", "Dropout", (4, 8, 128, 128), (4, 8, 128, 128), 0.1, **more)
                self.leaf(f"{name}.attn.out", "Linear", WIDE, WIDE, scale, **more)
            self.leaf(f"{name}.drop", "Dropout", WIDE, WIDE, scale, **more)
            self.leaf(f"{name}.norm2", "LayerNorm", **more)
            with self.call(f"{name}.mlp", "MLP", WIDE, WIDE, scale, **more):
                self.leaf(f"{name}.mlp.up", "Linear", WIDE, up, scale, **more)
                self.leaf(f"{name}.mlp.act", "GELU", up, up, scale, **more)
                self.leaf(f"{name}.mlp.down", "Linear", up, WIDE, scale, **more)


def _is_in(planted: str | None, name: str) -> bool:
    """Return whether something was planted in a call, or in one that it makes."""
    return planted is not None and (planted == name or not name or planted.startswith(f"{name}."))
