"""Find the kept values of calls in the pass, as no live part holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensornp.passes.records import ModuleCall, PassRecord, Value

KINDS = ("inputs", "outputs", "params")
"""The values of a call, of which each has a number: they are counted through."""


def values_of(call: ModuleCall) -> list[tuple[str, Value]]:
    """Return the values of a call with their expressions, such as ``outputs[0]``."""
    return [(f"{kind}[{i}]", one) for kind in KINDS for i, one in enumerate(getattr(call, kind))]


def without_tensors(record: PassRecord) -> tuple[PassRecord, frozenset[tuple[int, int]]]:
    """Return a record without tensors, and the call and number of each kept value."""
    kept = frozenset(
        (call.index, number)
        for call in record.calls
        for number, (_, one) in enumerate(values_of(call))
        if one.tensor is not None
    )
    if not kept:
        return record, kept
    calls = {index for index, _ in kept}
    return replace(record, calls=tuple(_without(call) if call.index in calls else call for call in record.calls)), kept


def _without(call: ModuleCall) -> ModuleCall:
    def bare(values: Sequence[Value]) -> Any:
        return tuple(replace(one, tensor=None) for one in values)

    return replace(call, inputs=bare(call.inputs), outputs=bare(call.outputs), params=bare(call.params))
