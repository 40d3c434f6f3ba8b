"""The call that a block failed in, and the lines that wrote over a value of its backward."""

from __future__ import annotations

import re

from tensornp.passes.records import BACKWARD, LEFT, MODULE, RAISED, RETURNED, Call, Finding, PassRecord, Value
from tensornp.passes.wording import at, shape_text, sizes_text

_OVERWRITTEN = re.compile(r"modified by an inplace operation: \[\S+ \[([\d, ]*)\]\]")
_MAX_LINES = 3


def failed_call(record: PassRecord) -> Call | None:
    """Return the innermost module call that raised the error of the block, or that Ctrl-C left."""
    failed = None
    inside = record.children(record.calls[0]) if record.error else []
    while ended := [one for one in inside if one.kind == MODULE and _has_failed(record, one)]:
        failed = ended[-1]
        inside = record.children(failed)
    return failed


def _has_failed(record: PassRecord, call: Call) -> bool:
    if call.status == LEFT:
        return True
    return call.status == RAISED and call.error in (record.error, *record.causes)


def failure_of(record: PassRecord) -> Finding | None:
    """Return the finding on the error that ended the block."""
    if not record.error:
        return None
    match = _OVERWRITTEN.search(record.error)
    if match is not None and (finding := _overwritten(record, match[1])) is not None:
        return finding
    call = failed_call(record)
    kind_of_error = record.error.partition(":")[0]
    if call is None:
        ended = [one for one in record.modules() if one.status == RETURNED]
        after = f", after {max(ended, key=lambda one: one.ended).title} had returned" if ended else ""
        explanation = "`%%follow --operators` finds the lines that wrote over tensors"
        is_unknown = match is not None and not record.has_operators
        return Finding("failed", f"{kind_of_error} in the cell{after}", explanation if is_unknown else "")
    if call.status == LEFT:
        return Finding("failed", f"{kind_of_error} in {call.title}{at(call.source)}", "", call.index, call.source)
    return Finding("failed", f"{call.title} raised {call.error}", _inputs_text(record, call), call.index, call.source)


def _inputs_text(record: PassRecord, call: Call) -> str:
    """Return inputs with their makers, and the weight: ``its input was (16, 24) float32 from 1 (GELU)``."""
    weight = call.params.get("weight")
    given = [*call.inputs.values()]
    has_devices = len({one.device for one in (*given, *([weight] if weight else []))}) > 1
    inputs = [_described(one, has_devices=has_devices) + _maker_text(record, one) for one in given]
    noun = "its inputs were" if len(inputs) > 1 else "its input was"
    texts = [f"{noun} {' and '.join(inputs)}" if inputs else "it got no tensor"]
    if weight is not None:
        texts.append(f"its weight is {_described(weight, has_devices=has_devices)}")
    return "; ".join(texts)


def _described(value: Value, *, has_devices: bool) -> str:
    return shape_text(value) + (f" on {value.device}" if has_devices else "")


def _maker_text(record: PassRecord, value: Value) -> str:
    maker = record.calls[value.maker] if value.maker is not None else None
    while maker is not None and maker.kind != MODULE and maker.parent:
        maker = record.calls[maker.parent]
    return f" from {maker.title}" if maker is not None else ""


def _overwritten(record: PassRecord, sizes: str) -> Finding | None:
    """Return the finding on forward operators that wrote over a tensor of the shape in torch's error."""
    shape = tuple(map(int, sizes.replace(",", " ").split()))
    writers = {
        str(call.source): call
        for call in record.operators()
        if call.phase != BACKWARD and any(_is_part_of(record, one, shape) for one in call.overwrote)
    }
    if not writers:
        return None
    last = [*writers.values()][-_MAX_LINES:]
    lines = [f"{one.title}{at(one.source)}" for one in last]
    fact = f"wrote over a tensor of shape {sizes_text(shape)} that the backward needs unchanged"
    if len(lines) == 1:
        return Finding("overwritten", f"{lines[0]} {fact}", "", last[0].index, last[0].source)
    return Finding("overwritten", f"one of these {fact}", "; ".join(lines), last[-1].index, last[-1].source)


def _is_part_of(record: PassRecord, value: Value, shape: tuple[int, ...]) -> bool:
    """Return whether a value or a result of its maker has a shape, also transposed."""
    made = record.calls[value.maker].outputs.values() if value.maker is not None else ()
    return any(one.shape in (shape, shape[::-1]) for one in (value, *made))
