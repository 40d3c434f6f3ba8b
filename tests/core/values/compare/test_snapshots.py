"""Two snapshots of one object, and the line that tells what happened between them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.memory.changes import Snapshot
from tensornp.core.values.compare.snapshots import snapshot_with_values, what_changed
from tensornp.render.tensor.badges import change_parts

COPY = 2**20


def line(before: Snapshot, after: Snapshot) -> str:
    """Return what the watch says of two snapshots; empty for nothing."""
    change = what_changed(before, after)
    return " · ".join(change_parts(change)) if change is not None else ""


def told(obj: Any, act: Callable[[Any], object], max_copy_nbytes: int = COPY, max_read_nbytes: int = 2**30) -> str:
    before = snapshot_with_values(obj, max_copy_nbytes, None, max_read_nbytes)
    act(obj)
    return line(before, snapshot_with_values(obj, max_copy_nbytes, None, max_read_nbytes))


def put(**values: Any) -> Callable[[Any], None]:
    """Return what puts each value at the place that its name says: ``_0_1=5`` is ``obj[0, 1] = 5``."""

    def act(obj: Any) -> None:
        for place, value in values.items():
            obj[tuple(int(i) for i in place[1:].split("_") if i)] = value

    return act


INF, NAN = float("inf"), float("nan")
VALUES: dict[str, tuple[Any, Callable[[Any], object], str]] = {
    "rows": (
        torch.zeros(10, 4),
        put(_3_1=2, _4_0=-1, _5_0=1, _0_0=1),
        "rows 0, 3–5 of 10 · largest difference 2 at [3, 1]",
    ),
    "1-d": (torch.zeros(5), put(_4=-2.5), "element 4 of 5 · largest difference 2.5 at [4]"),
    "3-d": (torch.zeros(2, 3, 4), put(_1_2_3=1), "row 1 of 2 · largest difference 1 at [1, 2, 3]"),
    "0-d": (torch.tensor(3), lambda t: t.add_(1), "3 to 4"),
    "nan": (torch.tensor([NAN, 1.0]), put(_1=2), "element 1 of 2 · largest difference 1 at [1]"),
    "to nan and inf": (torch.zeros(3), put(_0=NAN, _1=INF), "elements 0–1 of 3 · 2 NaN or infinite, now or before"),
    "inf to -inf": (torch.full((2,), INF), put(_0=-INF), "element 0 of 2 · 1 NaN or infinite, now or before"),
    "int8": (torch.full((2,), -128, dtype=torch.int8), put(_0=127), "element 0 of 2 · largest difference 255 at [0]"),
    "uint8": (torch.zeros(2, dtype=torch.uint8), put(_1=255), "element 1 of 2 · largest difference 255 at [1]"),
    "int64": (torch.tensor([-(2**63)]), put(_0=2**63 - 1), "element 0 of 1 · largest difference 1.84467e+19 at [0]"),
    "complex": (torch.zeros(2, dtype=torch.complex64), put(_1=3 + 4j), "element 1 of 2 · largest difference 5 at [1]"),
    "bool": (torch.zeros(2, 2, dtype=torch.bool), put(_1_1=True), "row 1 of 2 · 1 differ"),
    "bfloat16": (torch.zeros(3, dtype=torch.bfloat16), put(_2=2), "element 2 of 3 · largest difference 2 at [2]"),
    "the sign of a zero": (
        torch.zeros(3), lambda t: t.neg_(), "the same numbers in other bits (the sign of a zero, or a NaN's payload)"
    ),
    "strides": (torch.zeros(4, 6)[::2, 1::2], put(_1_2=1), "row 1 of 2 · largest difference 1 at [1, 2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_which_rows_and_by_how_much(name):
    """Exact for integers at their ends, and NaN is no change of NaN."""
    values, act, expected = VALUES[name]
    assert told(values.clone(), act) == f"{expected} · with a write counted by torch"


@pytest.mark.parametrize(
    ("array", "act", "expected"),
    [
        (np.zeros((3, 2)), put(_1_0=5), "row 1 of 3 · largest difference 5 at [1, 0]"),
        (np.zeros((4, 4))[::-2, ::2], put(_1_1=5), "row 1 of 2 · largest difference 5 at [1, 1]"),
        (np.zeros((3, 2), order="F"), put(_2_0=5), "row 2 of 3 · largest difference 5 at [2, 0]"),
        (np.array(["a", "bc"]), put(_1="d"), "element 1 of 2 · 1 differ"),
        (np.array([NAN, 1, 2], ml_dtypes.bfloat16), put(_1=3), "element 1 of 3 · 1 differ"),
        (np.array(["NaT", "2020-01-01"], "M8[D]"), put(_1="2021-01-01"), "element 1 of 2 · 1 differ"),
        (np.array([(NAN, 1), (2, 2)], "f4,i4"), put(_1=(2, 3)), "element 1 of 2 · 1 differ"),
        (np.zeros(3, "V8"), lambda a: a.view("u1").__setitem__(9, 1), "element 1 of 3 · 1 differ"),
        (np.zeros(3, ">f8"), put(_2=1), "element 2 of 3 · largest difference 1 at [2]"),
        (np.array(1.5), lambda a: a.fill(2), "1.5 to 2.0"),
        (np.array("x"), lambda a: a.fill("y"), "'x' to 'y'"),
        (np.ma.array([1, 2], mask=[0, 1]), lambda a: a.data.fill(3), "all 2 elements · largest difference 2 at [0]"),
        (np.zeros((0, 3)), lambda a: a.fill(1), ""),
    ],
)
def test_arrays_of_every_kind(array, act, expected):
    """Strided, strings, dates, structured, short floats, masked: only what changed is said to have."""
    assert told(array, act) == expected
    assert told(array, lambda a: None) == ""


def test_objects_are_neither_read_nor_kept():
    """An array of objects holds the user's tensors."""

    class Thing:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = None  # type: ignore[assignment]

    thing = Thing()
    reference, array = weakref.ref(thing), np.array([thing, None], dtype=object)
    snapshot = snapshot_with_values(array, COPY)
    assert what_changed(snapshot, snapshot_with_values(array, COPY)) is None
    del thing, array
    gc.collect()
    assert (reference(), snapshot.values) == (None, None)


def weight() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.arange(6.0).view(2, 3))


MOVED = "its elements lie elsewhere now"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda t: t.data.add_(1), "all 2 rows · largest difference 1 at [0, 0] · unseen by autograd"),
        (
            lambda t: tnp.to_numpy(t, copy=False, writeable=True).fill(0),
            "all 2 rows · largest difference 5 at [1, 2] · unseen by autograd",
        ),
        (lambda t: setattr(t, "data", t.data.clone()), MOVED),
        (lambda t: setattr(t, "data", t.data.half()), f"float32 to float16 · {MOVED}"),
        (lambda t: setattr(t, "data", torch.zeros(2)), f"shape (2, 3) to (2,) · {MOVED}"),
        (lambda t: t.share_memory_(), MOVED),
        (lambda t: setattr(t, "data", t.data.T.contiguous().T), f"{MOVED} · strides (3, 1) to (1, 2)"),
        (lambda t: t.sum().backward(), "got a .grad"),
        (lambda t: t.requires_grad_(False), "requires_grad: True to False"),
        (lambda t: t.untyped_storage().resize_(0), "its storage was freed"),
        (
            lambda t: torch.no_grad()(t.set_)(torch.zeros(2, 3)),
            f"all 2 rows · largest difference 5 at [1, 2] · with a write counted by torch · {MOVED}",
        ),
        (lambda t: t * 2, ""),
    ],
)
def test_roads_and_facts(act, expected):
    """What changed besides the values is told too, and only that."""
    assert told(weight(), act) == expected


def test_a_gradient_that_is_dropped_is_told():
    """`zero_grad` sets it to None."""
    w = weight()
    w.sum().backward()
    assert told(w, lambda t: setattr(t, "grad", None)) == "lost its .grad"


def test_a_move_with_other_values_tells_both():
    """Fingerprints of two layouts say nothing, copies do."""
    act = lambda t: setattr(t, "data", (t.data.T.contiguous().T + 1))  # noqa: E731
    assert told(weight(), act) == f"all 2 rows · largest difference 1 at [0, 0] · {MOVED} · strides (3, 1) to (1, 2)"
    assert told(weight(), act, 0) == f"{MOVED} · strides (3, 1) to (1, 2)"
