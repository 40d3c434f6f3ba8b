"""Records of passes made by hand: a transformer of 148 calls, whole or in trouble, and trees of any form."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensornp.passes.findings import findings_of
from tensornp.passes.records import (
    BLOCK,
    MODULE,
    OPERATOR,
    RAISED,
    RECOMPUTED,
    RETURNED,
    Call,
    Figures,
    Finding,
    Gradient,
    PassRecord,
    Value,
)

WIDE = (4, 128, 256)
ERROR = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (512x1024 and 128x256)"
NAN = Figures(math.nan, math.nan, math.nan, math.nan, 100)


def figures(scale: float, count: int = 100) -> Figures:
    """Return the figures of numbers between ``-3 * scale`` and ``3 * scale``."""
    return Figures(-3 * scale, 3 * scale, 0.0, scale * math.sqrt(count), count)


def value(shape: tuple[int, ...] = WIDE, scale: float = 1.0, *, is_nan: bool = False, **facts: Any) -> Value:
    """Return a value of normal numbers, or one with a NaN."""
    rng = random.Random(f"{shape} {scale}")
    sample = tuple(scale * max(-3.0, min(3.0, rng.gauss(0, 1))) for _ in range(256))
    own = NAN if is_nan else figures(scale, math.prod(shape))
    given = {"dtype": "float32", "device": "cpu", "requires_grad": True, "figures": own, "sample": sample, **facts}
    return Value(shape=shape, **given)


class Built:
    """Calls in the order of their begin, each inside the one in whose block it is made, below the block of a pass."""

    def __init__(self) -> None:
        self.calls = [Call(0, BLOCK, status=RETURNED)]
        self._open = [0]
        self._ended = 0

    @contextmanager
    def call(self, name: str, class_name: str, kind: str = MODULE, **facts: Any) -> Iterator[Call]:
        """Make a call, inside which others may be made; a single value is an input or output without a path."""
        for side in ("inputs", "outputs"):
            facts[side] = {"": facts[side]} if isinstance(facts.get(side), Value) else facts.get(side, {})
        nth = sum(one.name == name and one.kind == kind == MODULE for one in self.calls)
        facts = {"status": RETURNED, "nth": nth, "parent": self._open[-1], **facts}
        call = Call(len(self.calls), kind, name, class_name, **facts)
        self.calls.append(call)
        self._open.append(call.index)
        yield call
        self._open.pop()
        call.ended, self._ended = self._ended, self._ended + 1

    def leaf(self, name: str, class_name: str, kind: str = MODULE, **facts: Any) -> Call:
        """Make a call without calls inside."""
        with self.call(name, class_name, kind, **facts) as call:
            return call

    def operator(self, name: str, **facts: Any) -> Call:
        return self.leaf(name, "", OPERATOR, **facts)

    def record(self, **facts: Any) -> PassRecord:
        return PassRecord(self.calls, **facts)


class Run:
    """A finished pass, as the page and the card read it."""

    is_over = True
    _cell = ""

    def __init__(self, record: PassRecord, findings: Sequence[Finding] | None = None) -> None:
        self._record, self.calls = record, tuple(record.modules())
        self.findings = list(findings_of(record) if findings is None else findings)
        self.origin = next((one for one in self.findings if one.kind in ("nan", "inf")), None)

    def find(self, name: str) -> list[Call]:
        return [one for one in self.calls if one.name == name]


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
        with model.call("embed", "Embedding", (4, 128), inputs={"[0]": ids}):
            pass
        for i in range(num_layers):
            model.layer(i)
        model.leaf("norm", "LayerNorm")
        model.leaf("head", "Linear", (4, 256), (4, 10), 0.3)
    for i in reversed(range(num_layers - num_recomputed, num_layers)):
        model.layer(i, phase=RECOMPUTED)
    parameters = [Gradient(f"layers.{i}.norm1.weight", figures(0.01), i) for i in range(num_layers)]
    error = "" if raised_in is None else ERROR
    return model.built.record(grads=parameters if model.grads else [], error=error)


class _Model:
    """A transformer whose calls know what was planted: after a NaN all is NaN, after an error nothing is called."""

    def __init__(self, nan_in: str | None, raised_in: str | None, *, grads: bool) -> None:
        self.built, self.grads = Built(), grads
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
        **more: Any,
    ) -> Iterator[None]:
        """Make a call; none after an error."""
        if self._has_raised:
            yield
            return
        came, self._has_nan = self._has_nan, self._has_nan or name == self._nan_in
        self._has_raised = name == self._raised_in
        is_nan = self._has_nan or _is_in(self._nan_in, name)
        back = None if not self.grads else NAN if self._nan_in is not None else figures(0.01 * scale, math.prod(gave))
        facts: dict[str, Any] = {
            "inputs": {"[0]": value(got, scale, is_nan=came)},
            "outputs": value(gave, scale, is_nan=is_nan, grad=back, grad_order=-1 if back is None else 0),
        }
        if _is_in(self._raised_in, name):
            facts |= {"outputs": {}, "status": RAISED, "error": ERROR}
        with self.built.call(name, class_name, **{**facts, **more}) as call:
            for one in call.outputs.values():
                one.maker = call.index
            yield

    def leaf(self, *args: Any, **more: Any) -> None:
        """Make a call that makes no others."""
        with self.call(*args, **more):
            pass

    def layer(self, i: int, **more: Any) -> None:
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
