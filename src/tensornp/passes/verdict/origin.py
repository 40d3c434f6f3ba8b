"""Where the first value that is not finite came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tensornp.core.tensor.dtypes import largest, name_of
from tensornp.passes.records import (
    BACKWARD,
    BEFORE,
    FORWARD,
    GIVEN,
    OPTIMIZER,
    PRE_HOOKS,
    UNCOUNTED,
    WRITTEN,
    ModuleCall,
    Origin,
    PassRecord,
    Value,
)
from tensornp.passes.verdict.backward_origin import CAME_IN, backward_origin
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.held import held_since
from tensornp.passes.verdict.operator_origin import operator_origin
from tensornp.passes.verdict.scaling import is_overflow_of_scale
from tensornp.passes.verdict.step_origin import step_origin
from tensornp.passes.verdict.wording import (
    are_finite,
    at,
    holds,
    input_name,
    is_floating,
    is_mask,
    is_unread,
    left_range,
    named,
    number,
    odd_input,
    odd_output,
    odd_param,
    parameter_name,
    reach_of,
    span,
    within,
    word_of,
)

_IS_ARGUMENT = re.compile(r"(\[\d+\]|\w*)")
"""An argument itself, and nothing that it holds: that may be written while it is held."""
_UNREAD = "of what it got or called, not all could be read"


def origin_of(record: PassRecord, what: str) -> Origin | None:
    """Return where the first "nan", "inf" or "nonfinite" came from; None where there was none.

    First comes what has reached the result of a model, then what was recomputed otherwise, then the gradients, then
    what a step of an optimizer has made; then whatever came to an end before. −Inf beside finite numbers in an input or
    a buffer is taken for a mask. Where operators were followed, these say more than the modules inside which they came.
    What a gradient scaler explains comes from nowhere.
    """
    operator = operator_origin(record, what) if record.operators else None
    if operator is not None and (operator.call is None or operator.phase == BACKWARD):
        tree = CallTree(record)
        if is_overflow_of_scale(tree):
            # The scaler's own operators, and those of the backward, go on with what it made infinite.
            operator = None
        elif (step := step_origin(tree, what)) and step.source == operator.source and _is_in_step(record, operator):
            return replace(step, operator=operator.operator, operator_index=operator.operator_index)
    if operator is not None and record.only is None:
        return operator
    module = _origin_by_modules(record, what)
    return operator if operator is not None and _is_same_place(record, module, operator) else module


def first_origin(record: PassRecord) -> Origin | None:
    """Return where the first NaN came from; an infinity that came before it is what is told first."""
    nan = origin_of(record, "nan")
    is_around = nan is not None and nan.call is None and not nan.operator and nan.phase in (FORWARD, OPTIMIZER)
    if nan is not None and nan.phase != BACKWARD and not is_around:
        return nan
    inf = origin_of(record, "inf")
    if inf is None or nan is None:
        return inf or nan
    # What is NaN after a step gives no infinity any more.
    return inf if inf.phase == FORWARD or (inf.phase == BACKWARD and nan.phase == OPTIMIZER) else nan


def _is_in_step(record: PassRecord, operator: Origin) -> bool:
    """Return whether an operator came in the step of an optimizer at whose line it stands, and not before.

    Where a forward stands on that line too, a backward came between it and the step.
    """
    is_forward_s = any(one.source == operator.source and one.call is not None for one in record.operators)
    later = record.operators[(operator.operator_index or 0) + 1 :] if is_forward_s else ()
    return operator.phase != BACKWARD and not any(one.phase == BACKWARD for one in later)


def _is_same_place(record: PassRecord, module: Origin | None, operator: Origin) -> bool:
    """Return whether an operator came inside the call that is accused, or the call that is accused around it."""
    if module is None:
        return True
    tree = CallTree(record)
    calls = [tree.at(one.call) for one in (module, operator)]
    above = [[one.index, *(each.index for each in tree.above(one))] if one is not None else [] for one in calls]
    is_inside = module.call in above[1] or operator.call in above[0]
    # What a forward makes and drops, as behind a mask, may come back in its backward.
    return is_inside and (module.phase == BACKWARD or operator.phase != BACKWARD)


def _origin_by_modules(record: PassRecord, what: str) -> Origin | None:
    tree = CallTree(record)
    if origin := _first(tree, tree.ended, what, reaching=True):
        return origin
    if origin := _first(tree, tree.again, what, reaching=True):
        sentence = f"{origin.sentence}; this was when a checkpoint recomputed it in the backward"
        return replace(origin, phase=BACKWARD, sentence=sentence)
    around, back = _around_modules(record, what), None
    if around is None and not is_overflow_of_scale(tree):
        back = backward_origin(tree, what)
    if origin := around or back or step_origin(tree, what):
        return origin
    # Of what has reached nothing, operators tell more.
    has_all = bool(record.operators) and record.only is None
    return None if has_all else _first(tree, tree.ended, what, reaching=False)


def _has_nan(value: Value) -> bool:
    return value.has_nan is True


def _around_modules(record: PassRecord, what: str) -> Origin | None:
    """Return that what the program computes with the results of modules holds it, and these do not."""
    # Beside a backward, a number that autograd does not know may be made of gradients; a scaler multiplies the loss.
    known = [one for one in record.results if one.requires_grad or not record.had_backward]
    if what == "inf" and record.has_operators and record.only is None:
        # Where an operator has given it, that was asked for an infinity.
        known = [one for one in known if one.operator is None]
    found = next((one for one in known if holds(what, one.figures) and not is_mask(one)), None)
    if found is None or (what != "nan" and record.scaling is not None and not _has_nan(found)):
        return None
    finite: bool | None = True
    told = f"which was born in the code around the modules{CAME_IN}"
    if not record.calls:
        finite = None
    elif any(is_unread(call.outputs) for call in record.calls):
        finite, told = None, "and nothing did that could be read of what modules gave"
    else:
        told += ": nothing that a module gave did"
    return Origin(
        what, FORWARD, found.path, "", finite, None, f"`{found.path}` holds {_word(found)}, {told}", found.path
    )


def _first(tree: CallTree, calls: Sequence[ModuleCall], what: str, *, reaching: bool) -> Origin | None:
    """Return where the first trouble among calls came from: that which reached the end, or that which did not."""
    for call in calls:
        gave = odd_output(what, call, has_masks=reaching)
        if not (gave or odd_param(what, call) or odd_input(what, call)):
            continue
        end = next((one for one in (call, *tree.above(call)) if are_finite(one.outputs)), None)
        if (end is None) is reaching:
            origin = _traced(tree, call, what)
            return replace(origin, sentence=f"{origin.sentence}; what {end.title} gave was finite") if end else origin
    return None


def _traced(tree: CallTree, call: ModuleCall, what: str) -> Origin:
    """Return where the trouble of a call came from, by way of what gave it, and of what called."""
    seen = odd_output(what, call)
    while True:
        if value := odd_param(what, call):
            giver = tree.at(value.maker) if value.since else None
            if giver is None or giver.index >= call.index or _is_clean(what, giver.outputs):
                return _held_before(tree, call, value, what)
            # It was put there as a call gave it, as a network for weights does.
            call, seen = giver, value
            continue
        value = odd_input(what, call) or _handed_on(call, seen)
        if value is None:
            assert seen is not None
            return _born_inside(tree, call, seen, what)
        seen = value
        giver, above = tree.at(value.maker), tree.at(call.parent)
        if giver is not None and giver.index < call.index and not _is_clean(what, giver.outputs):
            call = giver
        elif giver is None and above is not None and _has_got(what, above, value):
            call = above
        else:
            return _born_before(tree, call, value, what, giver)


def _handed_on(call: ModuleCall, seen: Value | None) -> Value | None:
    """Return what a call got in an object, as a bound is kept there, and has handed on as it was."""
    facts = (seen.shape, seen.figures) if seen is not None else None
    return next((one for one in call.inputs if one.is_in_object and (one.shape, one.figures) == facts), None)


def _has_got(what: str, call: ModuleCall, seen: Value) -> bool:
    return any((odd_param(what, call), odd_input(what, call), _handed_on(call, seen)))


def _is_partly_unread(call: ModuleCall, below: Sequence[ModuleCall]) -> bool:
    """Return whether a call may have got what was looked for, or been given it by those `below` it, unseen."""
    return is_unread(call.inputs) or any(is_unread(one.outputs) for one in below)


def _is_clean(what: str, values: Sequence[Value]) -> bool:
    return all(one.figures is not None and not holds(what, one.figures) for one in values if is_floating(one))


def _held_before(tree: CallTree, call: ModuleCall, value: Value, what: str) -> Origin:
    """Return that a parameter or a buffer was not finite when it was first read."""
    name = parameter_name(call, value)
    own = step_origin(tree, what, name=name, before=call) if value.since != GIVEN else None
    if own is None and value.since == WRITTEN:
        # It may be made of what a step has spoilt, as a moving average is.
        own = step_origin(tree, what, before=call)
    if own:
        # What a step has written may come from a gradient.
        return backward_origin(tree, what, before=call) or own
    phase, sentence = held_since(tree, call, value, what)
    return Origin(what, phase, name, "", None, call.source, sentence, value.path, call.index)


def _born_before(tree: CallTree, call: ModuleCall, value: Value, what: str, giver: ModuleCall | None) -> Origin:
    """Return that an input was not finite, although nothing around it was: it came with the call, or was made there."""
    above, earlier, word = tree.at(call.parent), giver or tree.before(call), _word(value)
    if above is not None:
        # Its code may have made it long before, beside what it called.
        given, infinity = _given(tree, above, what)
        came = [one for one in tree.below(above) if one.index < call.index]
        if came and not _IS_ARGUMENT.fullmatch(value.path) and not _is_partly_unread(above, came):
            sentence = f"the first {word} that was read is what {within(call, above)} got in {above.title}"
            sentence += f"{at(call.source)}: its own code, or what it had called, has put it there{given}"
        elif _is_partly_unread(above, came):
            sentence = f"the first {word} that was read is what {within(call, above)} got in {above.title}"
            sentence += f"{at(call.source)}: {_UNREAD}{given}"
        elif _odd_attribute(what, above):
            sentence = f"the first {word} that was read is what {within(call, above)} got in {above.title}"
            sentence += f"{at(call.source)}{given}"
        else:
            sentence = f"the first {word} was born in {named(above, has_class=False)}, in its own code"
            sentence += f", before {within(call, above)} got it{at(call.source)}{given}"
        finite = are_finite(above.inputs)
        return Origin(what, FORWARD, above.title, "", finite, call.source, sentence, "", above.index, before=infinity)
    sentence = f"the {input_name(value)} held {word} when {named(call)} was called{at(call.source)}"
    if earlier:
        unread = any(is_unread(one.outputs) for one in tree.ended if one.index < call.index)
        source = " or from what could not be read" if unread else ""
        if _IS_ARGUMENT.fullmatch(value.path):
            sentence += f": it came with the call{source}, or was born after {earlier.title} had returned"
        else:
            sentence += f": it came with the call{source}, or what ran before has put it there"
    phase = FORWARD if earlier else BEFORE
    return Origin(what, phase, call.title, "", False, call.source, sentence, value.path, call.index)


def _born_inside(tree: CallTree, call: ModuleCall, seen: Value, what: str) -> Origin:
    """Return that a call made what was seen, if only later, of inputs that did not hold it."""
    gave = odd_output(what, call) or seen
    below = tree.below(call)
    is_unknown = _is_partly_unread(call, below)
    source = below[-1].source if below and not is_unknown else call.source
    if below and not is_unknown:
        code = f"`{source.function}` of {source.place}" if source is not None else "its own code"
        where = f"{named(call, has_class=False)}, in {code}: nothing that it called gave it"
    else:
        where = f"{named(call)}{at(source)}"
    given, infinity = _given(tree, call, what)
    born = "came out of" if _odd_attribute(what, call) else "was born in"
    sentence = f"the first {_word(gave)} {born} {where}{given}"
    if is_unknown:
        sentence = f"the first {_word(gave)} that was read came out of {where}: {_UNREAD}{given}"
    if not below and (edge := left_range(call.inputs, call.params, gave)):
        sentence = f"{named(call)} left the range of {edge}{at(source)}"
    elif what == "inf" and name_of(gave.dtype) == "float16":
        sentence += f"; float16 ends at {number(largest('float16'))}"
    finite = are_finite(call.inputs)
    return Origin(
        what, FORWARD, call.title, "", finite, source, sentence, gave.path, call.index, is_exact=not below,
        before=infinity,
    )  # fmt: skip


def _given(tree: CallTree, call: ModuleCall, what: str) -> tuple[str, Origin | None]:
    """Return what is known of that of which a call made what is not finite, behind a semicolon.

    Of a NaN that was made of an infinity, beside it stands where that came from.
    """
    if any(note.endswith(PRE_HOOKS) for note in call.notes):
        return "; hooks of its own have changed its inputs, or may have", None
    if odd := next((one for one in call.params if one.note == UNCOUNTED), None):
        return f"; its {odd.path} is not finite now: it was {UNCOUNTED}", None
    if odd := next((one for one in call.params if one.is_finite is False), None):
        return f"; its {odd.path} held {_word(odd)}", None
    if odd := next((one for one in call.inputs if one.is_finite is False), None):
        told = f"; its {input_name(odd)} held {_word(odd)}"
        earlier = origin_of(tree.record, "inf") if what == "nan" and not is_mask(odd) else None
        return (f"{told}; before, {earlier.sentence}" if earlier else told), earlier
    if odd := _odd_attribute(what, call) or next(iter(call.attributes), None):
        told = f"; its {odd.path.lstrip('.')}, neither a parameter nor a buffer, holds {_word(odd)} now"
        return f"{told}{_of_finite(tree, call)}", None
    return _of_finite(tree, call), None


def _odd_attribute(what: str, call: ModuleCall) -> Value | None:
    return next((one for one in call.attributes if holds(what, one.figures)), None)


def _of_finite(tree: CallTree, call: ModuleCall) -> str:
    if not are_finite(call.inputs):
        return ""
    below = tree.below(call)
    weights = are_finite(one for each in (call, *below) for one in each.params)
    told = f"; its inputs{' and weights' if weights else ''} were finite"
    if below or (ends := reach_of(call.inputs)) is None:
        return told
    return f"{told}, {'the inputs ' if weights else ''}{span(*ends)}"


def _word(value: Value) -> str:
    assert value.figures is not None
    return word_of(value.figures)
