"""The first gradient of a pass that is not finite, and the gradient before it."""

from __future__ import annotations

from typing import NamedTuple

from tensornp.passes.records import BACKWARD, FORWARD, MODULE, Call, Figures, Finding, PassRecord, SourceLine, Value
from tensornp.passes.wording import at, number, range_left, ranges_text


class _Came(NamedTuple):
    """A gradient of an output of the call `call`, or of a parameter if this is None."""

    order: int
    name: str
    figures: Figures
    call: int | None


def backward_origin(record: PassRecord, num_calls: int | None = None) -> Finding | None:
    """Find the first odd gradient; only among the first calls of the block, if `num_calls` limits them."""
    came = _gradients(record)
    first = next((i for i, one in enumerate(came) if not one.figures.is_finite), None)
    operator = next((one for one in record.operators() if _is_first_odd(one)), None)
    if not came and operator is not None and num_calls is None:
        # No module was called, so operators are all that was seen of the backward.
        return operator_of_backward(record, operator)
    if first is None:
        return None
    index = next((one.call for one in reversed(came[: first + 1]) if one.call is not None), None)
    if num_calls is not None and (index is None or index >= num_calls):
        return None
    if operator is not None:
        return operator_of_backward(record, operator)
    name, word, source = came[first].name, came[first].figures.word, _source(record, index)
    explanation = _output_text(record, came[first].call)
    if first == 0:
        fact = f"the first gradient, of {name}, contained {word}"
        if came[0].call is not None and not explanation:
            explanation, source = f"it came from code after {name}, outside of all modules", None
    else:
        fact = f"{word} entered the gradients between {came[first - 1].name} (finite) and {name}"
    explanation = _scaler_text(record, word, index or 0) or explanation
    return Finding(word.lstrip("−").lower(), fact, explanation, index, source)


def _output_text(record: PassRecord, index: int | None) -> str:
    """Return that the output of a call was not finite, which a gradient of -Inf may come from."""
    outputs = record.calls[index].outputs.values() if index is not None else ()
    words = [one.figures.word for one in outputs if one.figures is not None and not one.figures.is_finite]
    return f"its output contained {words[0]}" if words else ""


def _scaler_text(record: PassRecord, word: str, index: int) -> str:
    if word != "Inf" or record.scaler is None or not _was_skipped(record, index):
        return ""
    scaler, scale = record.scaler
    return f"{scaler} (scale {number(scale)}) skips a step with such gradients"


def _was_skipped(record: PassRecord, index: int) -> bool:
    """Return whether no step came between a call and the next outermost call."""
    step = next((one for one in record.steps if one.num_calls > index), None)
    outermost = (one.index for one in record.children(record.calls[0]) if one.kind == MODULE and one.phase == FORWARD)
    return step is None or any(index < one < step.num_calls for one in outermost)


def operator_of_backward(record: PassRecord, call: Call) -> Finding:
    """Return the finding on an operator of a backward that produced the first NaN or Inf."""
    forward = record.calls[call.forward] if call.forward is not None else None
    name = forward.title if forward is not None else call.detail or call.title
    parent = record.calls[call.parent or 0]
    where = f" in {parent.title}" if parent.kind == MODULE else ""
    outputs = [one for one in call.outputs.values() if one.figures is not None and not one.figures.is_finite]
    words = {one.figures.word for one in outputs if one.figures is not None}
    word = "NaN" if "NaN" in words else next(iter(words), "NaN")
    explanation = range_left(outputs[0], call.inputs.values(), "the gradient") if outputs else ""
    if not explanation and forward is not None:
        explanation = ranges_text(f"the input of {forward.title}", forward.inputs.values())
    explanation = "; ".join(filter(None, (explanation, _scaler_text(record, word, call.parent or 0))))
    fact = f"{word} was first produced in the backward of {name}{where}{at(call.source)}"
    return Finding(word.lstrip("−").lower(), fact, explanation, call.index, call.source)


def _gradients(record: PassRecord) -> list[_Came]:
    """Return the gradients of outputs and parameters in the order of their arrival."""
    owners: dict[int, tuple[Call, Value]] = {}
    for call in sorted(record.modules(), key=lambda one: one.ended):
        for value in call.outputs.values():
            owners.setdefault(id(value), (call, value))
    came = [
        _Came(value.grad_order, call.title, value.grad, call.index)
        for call, value in owners.values()
        if value.grad is not None
    ]
    came += [_Came(one.order, one.name, one.figures, None) for one in record.grads if one.figures is not None]
    return sorted(came, key=lambda one: one.order)


def _is_first_odd(call: Call) -> bool:
    if call.phase != BACKWARD or call.asked_for:
        return False
    is_odd = any(one.figures is not None and not one.figures.is_finite for one in call.outputs.values())
    return is_odd and not any(one.is_odd for one in call.inputs.values())


def _source(record: PassRecord, index: int | None) -> SourceLine | None:
    return record.calls[index].source if index is not None else None
