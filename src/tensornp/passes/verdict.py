"""Where the first value that is not finite came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensornp.core.tensor.dtypes import largest, name_of
from tensornp.passes.backward_origin import backward_origin
from tensornp.passes.call_tree import CallTree
from tensornp.passes.records import BACKWARD, BEFORE, FORWARD, ModuleCall, Origin, PassRecord, Value
from tensornp.passes.scaling import is_overflow_of_scale
from tensornp.passes.step_origin import step_origin
from tensornp.passes.wording import (
    are_finite,
    at,
    holds,
    input_name,
    is_floating,
    is_mask,
    named,
    number,
    odd_input,
    odd_param,
    parameter_name,
    reach_of,
    within,
    word_of,
)

_RANGES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes with infinities; that of the first is left by sums and products of common numbers."""


def origin_of(record: PassRecord, what: str) -> Origin | None:
    """Return where the first "nan", "inf" or "nonfinite" came from; None where there was none.

    First comes what has reached the result of a model, then what was recomputed otherwise, then the gradients, then
    what a step of an optimizer has made; then whatever came to an end before. −Inf beside finite numbers in an input or
    a buffer is taken for a mask.
    """
    tree = CallTree(record)
    if origin := _first(tree, tree.ended, what, reaching=True):
        return origin
    if origin := _first(tree, tree.again, what, reaching=True):
        sentence = f"{origin.sentence}; this was when a checkpoint recomputed it in the backward"
        return replace(origin, phase=BACKWARD, sentence=sentence)
    back = None if is_overflow_of_scale(tree) else backward_origin(tree, what)
    return back or step_origin(tree, what) or _first(tree, tree.ended, what, reaching=False)


def _first(tree: CallTree, calls: Sequence[ModuleCall], what: str, *, reaching: bool) -> Origin | None:
    """Return where the first trouble among calls came from: that which reached the end, or that which did not."""
    for call in calls:
        gave = any(holds(what, one.figures) and (reaching or not is_mask(one)) for one in call.outputs)
        if not (gave or odd_param(what, call) or odd_input(what, call)):
            continue
        end = next((one for one in (call, *tree.above(call)) if are_finite(one.outputs)), None)
        if (end is None) is reaching:
            origin = _traced(tree, call, what)
            return replace(origin, sentence=f"{origin.sentence}; what {end.title} gave was finite") if end else origin
    return None


def _traced(tree: CallTree, call: ModuleCall, what: str) -> Origin:
    """Return where the trouble of a call came from, by way of what gave it, and of what called."""
    seen = next((one for one in call.outputs if holds(what, one.figures)), None)
    while True:
        if value := odd_param(what, call):
            return _held_before(tree, call, value, what)
        value = odd_input(what, call)
        if value is None:
            assert seen is not None
            return _born_inside(tree, call, seen, what)
        seen = value
        giver, above = tree.at(value.maker), tree.at(call.parent)
        if giver is not None and giver.index < call.index and not _is_clean(what, giver.outputs):
            call = giver
        elif giver is None and above is not None and (odd_param(what, above) or odd_input(what, above)):
            call = above
        else:
            return _born_before(tree, call, value, what, giver)


def _is_clean(what: str, values: Sequence[Value]) -> bool:
    return all(one.figures is not None and not holds(what, one.figures) for one in values if is_floating(one))


def _held_before(tree: CallTree, call: ModuleCall, value: Value, what: str) -> Origin:
    """Return that a parameter or a buffer was not finite when it was first read."""
    name = parameter_name(call, value)
    earlier = (one for one in tree.ended if one.name == call.name and one.index < call.index)
    if own := step_origin(tree, what, name=name, before=call):
        # What a step has written may come from a gradient.
        return backward_origin(tree, what, before=call) or own
    if any(one.path == value.path and _is_clean(what, [one]) for other in earlier for one in other.params):
        sentence = f"{name} held {_word(value)} when {named(call)} was called, and was finite before: written since"
        return Origin(what, FORWARD, name, "", None, call.source, sentence, value.path, call.index)
    sentence = f"{name} held {_word(value)} before the pass"
    return Origin(what, BEFORE, name, "", None, call.source, sentence, value.path, call.index)


def _born_before(tree: CallTree, call: ModuleCall, value: Value, what: str, giver: ModuleCall | None) -> Origin:
    """Return that an input was not finite, although nothing around it was: it came with the call, or was made there."""
    above, earlier, word = tree.at(call.parent), giver or tree.before(call), _word(value)
    if above is not None:
        after = f"after {within(earlier, above)} and " if earlier else ""
        sentence = f"the first {word} was born in {named(above, has_class=False)}, {after}before {within(call, above)}"
        sentence += at(call.source) + _given(tree, above, what)
        return Origin(what, FORWARD, above.title, "", are_finite(above.inputs), call.source, sentence, "", above.index)
    sentence = f"the {input_name(value)} held {word} when {named(call)} was called{at(call.source)}"
    if earlier:
        sentence += f": it came with the call, or was born after {earlier.title} had returned"
    phase = FORWARD if earlier else BEFORE
    return Origin(what, phase, call.title, "", False, call.source, sentence, value.path, call.index)


def _born_inside(tree: CallTree, call: ModuleCall, seen: Value, what: str) -> Origin:
    """Return that a call made what was seen, if only later, of inputs that did not hold it."""
    gave = next((one for one in call.outputs if holds(what, one.figures)), seen)
    below = tree.below(call)
    source = below[-1].source if below else call.source
    if below:
        where = f"{named(call, has_class=False)}, after {within(below[-1], call)}, the last that it called"
    else:
        where = named(call)
    sentence = f"the first {_word(gave)} was born in {where}{at(source)}{_given(tree, call, what)}"
    if not below and (edge := _left(call, gave)):
        sentence = f"{named(call)} left the range of {edge}{at(source)}"
    return Origin(what, FORWARD, call.title, "", are_finite(call.inputs), source, sentence, gave.path, call.index)


def _left(call: ModuleCall, gave: Value) -> str:
    """Return which range a call has left, and how far its inputs reached; empty where it may be a division by 0."""
    dtype, ends = name_of(gave.dtype), reach_of(call.inputs)
    is_known = ends is not None and are_finite(call.inputs) and are_finite(call.params) is not False
    if not is_known or dtype not in _RANGES or gave.figures is None or not gave.figures.has_inf:
        return ""
    edge, reach = largest(dtype), max(map(abs, ends or ()))
    if dtype != "float16" and reach * reach <= edge:
        return ""
    return f"{dtype} ({number(edge)}): its inputs reached {number(reach)}"


def _given(tree: CallTree, call: ModuleCall, what: str) -> str:
    """Return what is known of that of which a call made what is not finite, behind a semicolon."""
    if odd := next((one for one in call.params if one.is_finite is False), None):
        return f"; its {odd.path} held {_word(odd)}"
    if odd := next((one for one in call.inputs if one.is_finite is False), None):
        told = f"; its {input_name(odd)} held {_word(odd)}"
        earlier = origin_of(tree.record, "inf") if what == "nan" and not is_mask(odd) else None
        return f"{told}; before, {earlier.sentence}" if earlier else told
    if not are_finite(call.inputs):
        return ""
    below = tree.below(call)
    weights = are_finite(one for each in (call, *below) for one in each.params)
    told = f"; its inputs{' and weights' if weights else ''} were finite"
    if below or (ends := reach_of(call.inputs)) is None:
        return told
    least, greatest = map(number, ends)
    between = f"{least} throughout" if least == greatest else f"from {least} to {greatest}"
    return f"{told}, {'the inputs ' if weights else ''}{between}"


def _word(value: Value) -> str:
    assert value.figures is not None
    return word_of(value.figures)
