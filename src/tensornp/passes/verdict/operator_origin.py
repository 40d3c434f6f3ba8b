"""Which operator made the first value that is not finite, and at which line of the program."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensornp.passes.records import (
    BACKWARD,
    BEFORE,
    FORWARD,
    RECOMPUTED,
    UNWRITTEN,
    ModuleCall,
    OperatorCall,
    Origin,
    PassRecord,
    Value,
)
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.held import held_since
from tensornp.passes.verdict.wording import (
    are_finite,
    at,
    holds,
    is_floating,
    is_mask,
    is_unread,
    left_range,
    named,
    parameter_name,
    reach_of,
    span,
    word_of,
)

_OVERWRITTEN = re.compile(
    r"modified by an inplace operation: \[\S+ \[(?P<shape>[\d, ]*)\]\]"
    r"(?:, which is output \d+ of (?:\w+::)*(?P<node>\w+),)?"
    r" is at version (?P<now>\d+); expected version (?P<expected>\d+)"
)
_BACKWARD = re.compile(r"(?:Backward)?\d*$")


def operator_origin(record: PassRecord, what: str) -> Origin | None:
    """Return where the first "nan", "inf" or "nonfinite" that reached something was born; None where none was.

    An infinity that was asked for, as a mask's is, memory that was never written, and what the program has dropped are
    not accused.
    """
    steps = _Steps(record, what)
    found = next((one for one in steps.births() if steps.reaches(one)), None)
    return None if found is None else replace(_told(steps, found), operator_index=found.index)


def unreached(record: PassRecord) -> list[OperatorCall]:
    """Return the operators that made a NaN of what had none, unasked, which reached nothing that the program held."""
    steps = _Steps(record, "nan")
    made = (one for one in steps.births() if steps.odd_input(one) is None and one.asked_for != "nan")
    return [one for one in made if not steps.reaches(one)]


def _is_bound(value: Value) -> bool:
    """Return whether a value is an infinity throughout that no call got: a number that the program has put there."""
    ends = {value.min, value.max}
    return not value.path and len(ends) == 1 and not ends.isdisjoint((math.inf, -math.inf))


class _Steps:
    """The operators of a pass, and who takes what they give."""

    def __init__(self, record: PassRecord, what: str) -> None:
        self.record, self.what = record, what
        self.tree = CallTree(record)
        self._takers: defaultdict[int, list[OperatorCall]] = defaultdict(list)
        # Of modules that alone were followed, nobody knows who takes what they return.
        self._results = {
            value.operator
            for call in record.calls
            if call.parent is None or record.only is not None
            for value in call.outputs
        } | set(_begins_of_backwards(record))
        for one in record.operators:
            # Who reads a finite one of several results takes nothing of what another one holds.
            taken = (each.operator for each in (*one.inputs, *one.overwrote) if not self._is_beside(each))
            for value in dict.fromkeys(taken):
                if value is not None and value != one.index:
                    self._takers[value].append(one)

    def gives(self, one: OperatorCall) -> bool:
        """Return whether a result holds what is looked for."""
        return any(holds(self.what, value.figures) for value in one.outputs)

    def odd_input(self, one: OperatorCall) -> Value | None:
        """Return the first that an operator read of what holds what is looked for."""
        return next((value for value in one.inputs if holds(self.what, value.figures)), None)

    def _is_beside(self, value: Value) -> bool:
        made = self.record.operators[value.operator].outputs if value.operator is not None else ()
        return len(made) > 1 and value.is_finite is True

    def births(self) -> Iterator[OperatorCall]:
        """Yield the operators that made it of what had none, and those that read what was there before all of them."""
        for one in self.record.operators:
            value = self.odd_input(one)
            if value is None:
                if self.gives(one) and not (one.asked_for == "inf" and self._is_infinite(one)):
                    yield one
            elif self._is_from_before(value) and (value.requires_grad or not (is_mask(value) or _is_bound(value))):
                yield one

    def _is_from_before(self, value: Value) -> bool:
        if value.operator is None:
            # What a call has given whose operators were not followed is the work of that call.
            return value.maker is None or self.record.only is None
        # Through NumPy, or of other bits, it can be written without an operator that gives it.
        return are_finite(self.record.operators[value.operator].outputs) is not False

    def _is_infinite(self, one: OperatorCall) -> bool:
        return not any(value.figures.has_nan for value in one.outputs if value.figures)

    def reaches(self, birth: OperatorCall) -> bool:
        """Return whether it went on to something that the program held in the end, or that a model returned."""
        seen, waiting = {birth.index}, [birth]
        while waiting:
            one = waiting.pop()
            takers = [each for each in self._takers[one.index] if any(map(is_floating, each.outputs))]
            odd = [each for each in takers if self.gives(each)]
            # What is held, and taken by what masks it alone, comes to nothing.
            if self.gives(one) and (self._is_result(one) or (one.is_held and (odd or not takers))):
                return True
            waiting += [each for each in odd if each.index not in seen]
            seen.update(each.index for each in odd)
        return False

    def _is_result(self, one: OperatorCall) -> bool:
        return one.index in self._results


def _begins_of_backwards(record: PassRecord) -> Iterator[int]:
    """Yield the operators whose backward came first: what they gave is in the loss, held by nobody as it may be.

    What would mask it on its way there has a backward of its own, which would have come before.
    """
    is_inside = False
    for one in record.operators:
        if one.phase == BACKWARD and not is_inside and one.forward is not None:
            yield one.forward
        is_inside = one.phase == BACKWARD


def _told(steps: _Steps, one: OperatorCall) -> Origin:
    """Return the whole of what is known of an operator that made it, or read it first."""
    before = steps.odd_input(one)
    if before is not None:
        return _from_before(steps, one, before)
    gave = next(value for value in one.outputs if holds(steps.what, value.figures))
    assert gave.figures is not None
    word, call = word_of(gave.figures), steps.tree.at(one.call)
    where = f"in {named(call, has_class=False)}, " if call is not None else ""
    name, inputs = f"`{shown(one)}`", are_finite(one.inputs)
    if one.phase == BACKWARD:
        return _in_backward(steps, one, word)
    if one.asked_for and (one.asked_for == "nan") is gave.figures.has_nan:
        sentence = f"the first {word} was asked for {where}by {name}{at(one.source)}"
    elif edge := left_range(one.inputs, (), gave):
        sentence = f"{where}{name}{at(one.source)} left the range of {edge}".removeprefix("in ")
    elif is_unread(one.inputs):
        told = f"the first {word} that was read came {where}out of {name}{at(one.source)}"
        sentence = f"{told}: of its inputs, not all could be read"
    else:
        sentence = f"the first {word} was born {where}at {name}{at(one.source)}{_made_of(steps, one)}"
    if one.phase == RECOMPUTED:
        sentence += "; this was when a checkpoint recomputed it in the backward"
    phase = {RECOMPUTED: BACKWARD}.get(one.phase, one.phase)
    title = call.title if call is not None else shown(one)
    return Origin(steps.what, phase, title, one.name, inputs, one.source, sentence, "", one.call)


def _from_before(steps: _Steps, one: OperatorCall, value: Value) -> Origin:
    """Return that it was there when an operator first read it: in a parameter, an input, or memory as it came."""
    assert value.figures is not None
    word, call, read = word_of(value.figures), steps.tree.at(one.call), f"`{shown(one)}`{at(one.source)}"
    phase = BEFORE
    if read_at := _call_with(steps, value):
        phase, sentence = held_since(steps.tree, *read_at, steps.what)
    elif value.path:
        sentence = f"{value.path} held {word} before the pass"
    elif value.note == UNWRITTEN:
        sentence, phase = (
            f"{read} read {word} from memory that `torch.empty` gave and nothing had written whole",
            FORWARD,
        )
    elif not value.shape:
        sentence = f"{read} was given the number {word}: no operator that was followed has made it"
    else:
        sentence = f"what {read} read held {word} before: no operator that was followed has made it"
    name = value.path or (call.title if call is not None else shown(one))
    return Origin(steps.what, phase, name, one.name, None, one.source, sentence, value.path, one.call)


def _call_with(steps: _Steps, value: Value) -> tuple[ModuleCall, Value] | None:
    """Return the first call that had a weight as an operator has read it, and the weight as it was there."""
    return next(
        (
            (call, one)
            for call in (steps.record.calls if value.path else ())
            for one in call.params
            if parameter_name(call, one) == value.path and holds(steps.what, one.figures)
        ),
        None,
    )


def _in_backward(steps: _Steps, one: OperatorCall, word: str) -> Origin:
    """Return at the backward of which operator it came."""
    forward = steps.record.operators[one.forward] if one.forward is not None else None
    call, operator = steps.tree.at(one.call), forward.name if forward is not None else one.name
    name = f"`{shown(forward)}`" if forward is not None else one.node
    where = f" of {named(call, has_class=False)}" if call is not None else ""
    told = f"the first {word} came in the backward of {name}{where}{at(one.source)}{_where_input(forward)}"
    earlier = (each for each in steps.record.operators if each.phase == FORWARD and not each.asked_for)
    if not any(are_finite(each.outputs) is False or is_unread(each.outputs) for each in earlier):
        told = f"the forward was finite; {told}"
    infinite = next((value.figures for value in one.inputs if value.figures and value.figures.has_inf), None)
    told += f"; what it computed with held {word_of(infinite)}" if infinite is not None else ""
    title, finite = call.title if call is not None else name.strip("`"), are_finite(one.inputs)
    return Origin(steps.what, BACKWARD, title, operator, finite, one.source, told, "", one.call)


def _where_input(forward: OperatorCall | None) -> str:
    """Return what the input of an operator of the forward was, of which the backward made what is not finite."""
    ends = reach_of(forward.inputs) if forward is not None else None
    if forward is None or ends is None:
        return ""
    told = span(*ends)
    if "throughout" in told:
        return f", where its input was {told}"
    return ", where its input was 0" if 0 in ends else f"; its input went {told}"


def _made_of(steps: _Steps, one: OperatorCall) -> str:
    """Return of what an operator made what is not finite."""
    infinite = next((value for value in one.inputs if value.figures and value.figures.has_inf), None)
    masked = f": {one.notes[0]}" if one.notes else ""
    if infinite is not None and infinite.figures is not None:
        source = _asking(steps, infinite)
        by = f" (`{shown(source)}`{at(source.source)})" if source is not None else ""
        return f"{masked or f'; its input held {word_of(infinite.figures)}'}{by}"
    if masked or (ends := _ends(one.inputs)) is None:
        return masked
    return f"; {ends}"


def _ends(inputs: Sequence[Value]) -> str | None:
    """Return between which numbers the inputs lay: of one, its extremes; of several, each."""
    read = [value.figures for value in inputs if is_floating(value) and value.figures and value.figures.count]
    if not read:
        return None
    told = [span(one.min, one.max) for one in read[:3]]
    return f"its input{'s were' if len(read) > 1 else ' was'} finite, {' and '.join(told)}"


def _asking(steps: _Steps, value: Value) -> OperatorCall | None:
    """Return the operator that was asked for an infinity, or made it, and by way of which a value has it."""
    seen: set[int] = set()
    while value.operator is not None and value.operator not in seen:
        seen.add(value.operator)
        one = steps.record.operators[value.operator]
        odd = next((each for each in one.inputs if each.figures and each.figures.has_inf), None)
        if odd is None:
            return one
        value = odd
    return None


def shown(one: OperatorCall) -> str:
    """Return the name of an operator as the program has it: ``softmax`` for ``_softmax``."""
    return one.name.lstrip("_") if one.name.startswith("_") and not one.name.startswith("__") else one.name


def overwritten(record: PassRecord) -> str:
    """Return which operator wrote over what a backward needed, in a sentence; empty where no error says so.

    Torch's error has the shape, the node that has made it, and how often it was written since. Where several operators
    at several lines may be meant, none is named.
    """
    said = _OVERWRITTEN.search(record.error)
    if said is None:
        return ""
    shape = tuple(map(int, said["shape"].replace(",", " ").split()))
    node, times = _BACKWARD.sub("", said["node"] or "").lower(), int(said["now"]) - int(said["expected"])
    wrote = [
        (one, value) for one in record.operators if one.phase != BACKWARD
        for value in one.overwrote if _is_of_shape(record, value, shape)
    ]  # fmt: skip
    kept = [one for one in wrote if one[1].operator is not None and node == _plain(record, one[1].operator)]
    last = [one for one in wrote if node == _plain(record, one[0].index)]
    found = kept + _earlier(wrote, last, times - 1)
    if not found and not last:
        # Of a view, and of what autograd does not know, torch does not name the node that has made it.
        found = [(one, value) for one, value in wrote if _is_read_before(record, one, value)]
    sources, names = {one.source for one, _ in found}, {one.name for one, _ in found}
    if len(sources) != 1:
        return ""
    one, value = found[-1]
    who = f"`{one.name}`{at(one.source)}" if len(names) == 1 else f"an operator{at(one.source)}"
    made = record.operators[value.operator] if value.operator is not None and kept + last else None
    if made is None:
        return f"{who} wrote over a tensor of shape {shape} that the backward needs as it was"
    return f"{who} wrote over what `{shown(made)}`{at(made.source)} had made, which the backward needs as it was"


_Written = tuple[OperatorCall, Value]


def _is_of_shape(record: PassRecord, value: Value, shape: tuple[int, ...]) -> bool:
    """Return whether a value, or what it is a part of, has a shape, the other way round, too."""
    made = record.operators[value.operator].outputs if value.operator is not None else ()
    return any(one.shape in (shape, shape[::-1]) for one in (value, *made))


def _plain(record: PassRecord, index: int) -> str:
    return record.operators[index].name.replace("_", "").lower()


def _is_read_before(record: PassRecord, writer: OperatorCall, value: Value) -> bool:
    """Return whether an operator has read it before, as a backward needs it for one, that does not write it itself."""
    return any(
        each.operator == value.operator and each.shape in (value.shape, value.shape[::-1])
        for one in record.operators[: writer.index]
        if value.operator not in [each.operator for each in one.overwrote]
        for each in one.inputs
    )


def _earlier(wrote: Sequence[_Written], last: Sequence[_Written], times: int) -> list[_Written]:
    """Return what wrote so many times before the last writes of their memory; of each, what wrote over it since."""
    by_index = {one.index: (one, value) for one, value in wrote}
    overwritten_since = {value.operator for _, value in wrote}
    ends = [(one, value) for one, value in last if one.index not in overwritten_since]
    for _ in range(times):
        ends = [by_index[value.operator] for _, value in ends if value.operator in by_index]
    return ends
