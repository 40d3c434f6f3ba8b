"""Tensors that modules hold beside their parameters and buffers: looked at where something was not finite."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch

from tensornp.core.namespace.members import unregistered
from tensornp.passes.recording.recorder import Recorder
from tensornp.passes.recording.remembered import Call, Got
from tensornp.passes.recording.row_table import Row, RowTable
from tensornp.passes.recording.seen_tensors import Seen, SeenTensors
from tensornp.passes.recording.tensors_in import Found, LooksInside


def look_at_attributes(recorder: Recorder, rows: Sequence[Row]) -> list[Row]:
    """Note those that are not finite now, of the modules of calls around which something was not finite.

    Return their figures, whose numbers go on behind those of `rows`.
    """
    looks, table, tensors = LooksInside(), RowTable(), recorder.tensors
    read: list[tuple[list[Got], Found, Seen]] = []
    noted: dict[int, list[Got]] = {}
    for call in _odd_calls(recorder.calls, rows):
        module = call.module.reference()
        if module is None or call.module.is_torch:
            continue
        if (found := noted.get(id(module))) is None:
            found = noted[id(module)] = []
            read += ((found, one, seen) for one, seen in _seen_in(module, looks, tensors, table))
        call.attributes = found
    now, _ = table.read()
    for found, one, seen in read:
        row = now[seen.row or 0]
        if not math.isfinite(row.min + row.max):
            seen.row = len(rows) + (seen.row or 0)
            found.append(Got(one.path, seen))
    return now


def _odd_calls(calls: Sequence[Call], rows: Sequence[Row]) -> Iterator[Call]:
    """Yield the calls that got or gave what is not finite, and those that have called them."""
    odd = set[int | None]()
    for call in calls:
        read = [rows[got.seen.row] for got in (*call.inputs, *call.outputs) if got.seen.row is not None]
        if not all(math.isfinite(row.min + row.max) for row in read):
            odd.update((call.index, call.parent))
    return (call for call in calls if call.index in odd)


def _seen_in(
    module: torch.nn.Module, looks: LooksInside, tensors: SeenTensors, table: RowTable
) -> Iterator[tuple[Found, Seen]]:
    """Yield the floating tensors among the attributes of a module, but for what a call or an operator has made."""
    held: Any = types.SimpleNamespace()
    held.__dict__.update((str(step).lstrip("."), value) for step, value in unregistered(module))
    for one in looks.tensors_in(held):
        with suppress(Exception):
            known = tensors.before_write(one.tensor) if one.tensor is not None else None
            is_made = known is not None and (known.maker, known.operator) != (None, None)
            if one.tensor is None or is_made or not one.tensor.is_floating_point():
                continue
            readable, _ = tensors.readable_of(one.tensor)
            if readable is not None:
                seen = tensors.unread(one.tensor)
                seen.count, seen.row = readable.numel(), table.add(readable, has_sums=False)
                yield one, seen
