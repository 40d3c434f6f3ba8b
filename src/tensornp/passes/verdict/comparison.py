"""Two passes side by side: the first call that differs, and whether the difference was born in it.

Of each value its shape, its dtype and its figures were read: where these are equal, single elements may differ still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, format_ordinal
from tensornp.passes import short
from tensornp.passes.records import CAME_WITH_THE_CALL, Gradient, ModuleCall, OptimizerStep, PassRecord, Value
from tensornp.passes.verdict.call_tree import CallTree, end_of
from tensornp.passes.verdict.compared_values import (
    CPU,
    SIDES,
    Difference,
    are_unread,
    difference_back,
    difference_of,
    difference_of_gradients,
    in_one_alone,
)
from tensornp.passes.verdict.partners import Names, names_in_first, with_names_of, without_compiler
from tensornp.passes.verdict.wording import at, listed, named, parameter_name

_RANDOM = "Dropout"
_STATUS = "status"
_MAX_WEIGHTS = 2


@dataclass(frozen=True, slots=True)
class CallDifference:
    """A call that is in both passes and did not come out the same, or for which something else came back.

    Attributes
    ----------
    call, other : ModuleCall
        That of the first pass and that of the second.
    difference : Difference
        In what they differ: the first of what they gave that does.
    inputs_equal, weights_equal : bool or None
        Whether the figures of all that went in were equal; None where not all was read, or a weight is in one alone.
    differs_inside : bool
        Whether a call that came inside it differs as well.
    has_others_inside : bool
        Whether a call that came right inside it is in one of the passes alone, or was not kept.
    """

    call: ModuleCall
    other: ModuleCall
    difference: Difference
    inputs_equal: bool | None = None
    weights_equal: bool | None = None
    differs_inside: bool = False
    has_others_inside: bool = False

    @property
    def other_class(self) -> str:
        """The class of the module in the second pass, where it is another one; else empty."""
        return self.other.class_name if self.other.class_name != self.call.class_name else ""

    @property
    def is_born_here(self) -> bool:
        """Whether what went in was equal, and so were the weights and all that it called."""
        is_other_inside = self.differs_inside or self.has_others_inside
        return self.inputs_equal is True and self.weights_equal is not False and not is_other_inside


@dataclass(frozen=True, slots=True)
class PassComparison:
    """What differs between two passes that were followed.

    Attributes
    ----------
    equal : bool
        Whether all calls are in both, and all was read, and shapes, dtypes and figures are equal, also of what came
        back, and so are the steps of optimizers.
    verdict : str
        A few words: "figures equal", "what was read is alike; 4 values were not read", "the first call that differs is
        layers.3 (Block)".
    calls : tuple of CallDifference
        Those that came out otherwise, in the order in which they returned: in the first of them it began.
    gradients : tuple of CallDifference
        Those for which another gradient came back, from the loss backwards.
    weights, grads : dict of str to Difference
        Parameters and buffers that differed when they were first read, and parameters that got another gradient, by
        name.
    weights_before : frozenset of str
        Those of `weights` that are known to have differed before both passes.
    missing, unexpected : tuple of ModuleCall
        Calls of the first pass and of the second that the other one has not, where it has kept all of its own.
    num_calls, num_unread : int
        Calls that are in both, and values that these gave, and gradients, of which figures were not read.
    problems : tuple of str
        What differs, in sentences, what came first before all.
    num_dropped : tuple of int
        Calls of the first pass and of the second that were not kept, since there were more than `max_calls`.
    """

    equal: bool
    verdict: str
    calls: tuple[CallDifference, ...] = ()
    gradients: tuple[CallDifference, ...] = ()
    weights: dict[str, Difference] | None = None
    grads: dict[str, Difference] | None = None
    missing: tuple[ModuleCall, ...] = ()
    unexpected: tuple[ModuleCall, ...] = ()
    num_calls: int = 0
    num_unread: int = 0
    problems: tuple[str, ...] = ()
    num_dropped: tuple[int, int] = (0, 0)
    weights_before: frozenset[str] = frozenset()

    @property
    def first(self) -> CallDifference | None:
        """The first call that came out otherwise, in the order in which they returned; None where none did."""
        return self.calls[0] if self.calls else None

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return short.line_of("PassComparison", "", (), "; ".join((self.verdict, *self.problems[:1])))


def compared(first: PassRecord, second: PassRecord) -> PassComparison:
    """Return what differs between two passes, whose calls belong together by name and by which of its module it is."""
    names = names_in_first(first, second)
    second = with_names_of(first, second, names)
    both = _Both(first, second, names)
    calls, gradients = tuple(both.calls()), tuple(both.gradients())
    weights, grads = dict(both.weights()), dict(both.grads())
    (missing, unexpected), num_dropped = both.alone(), both.num_dropped
    steps = tuple(_told_of_steps(first.steps, second.steps))
    is_forward_equal = not (calls or missing or unexpected or any(num_dropped)) and {*both.unread_outputs()} == {0}
    if not (calls or gradients or weights or grads or steps) and both.are_on_cpu:
        # What began with others ends with others.
        steps = tuple(_told_of_moved(first.steps, second.steps))
    problems = (
        *both.told_of(calls),
        *_told_of_weights(weights, both.weights_before),
        *both.told_of_gradients(gradients, grads, is_forward_equal=is_forward_equal),
        *_told_of_alone(missing, "first"),
        *_told_of_alone(unexpected, "second"),
        *steps,
    )
    num_unread = sum(both.unread())
    unknown = [*filter(None, (unread_told(num_unread), dropped_told(num_dropped)))]
    verdict = "; ".join(("what was read is alike", *unknown)) if unknown else "figures equal"
    if calls:
        verdict = f"the first call that differs is {named(calls[0].call)}"
    elif problems:
        told: tuple[tuple[str, object], ...] = (
            ("weights", weights), ("gradients", gradients or grads), ("calls", missing or unexpected), ("steps", steps),
        )  # fmt: skip
        verdict = f"other {' and '.join(noun for noun, found in told if found)}"
    return PassComparison(
        not problems and not unknown, verdict, calls, gradients, weights, grads, missing, unexpected,
        len(both.pairs), num_unread, problems, num_dropped, frozenset(both.weights_before),
    )  # fmt: skip


def unread_told(number: int) -> str:
    """Return of how many values nothing tells whether they are equal, if of any."""
    if not number:
        return ""
    return f"{counted(number, 'value')} {'was' if number == 1 else 'were'} not read"


def dropped_told(numbers: tuple[int, int]) -> str:
    """Return how many calls of either pass were not kept, and so not compared, if any were not."""
    sides = [f"{number:,} of the {side}" for number, side in zip(numbers, SIDES, strict=True) if number]
    calls = "call past max_calls was" if sum(numbers) == 1 else "calls past max_calls were"
    return f"{calls} not kept: {' and '.join(sides)}" if sides else ""


class _Both:
    """The calls of two passes, those that belong together in pairs, in the order in which they returned."""

    def __init__(self, first: PassRecord, second: PassRecord, names: Names) -> None:
        self._records = first, second
        self._keys = _keyed(first, {}), _keyed(second, names)
        self._trees = CallTree(first), CallTree(second)
        own, others = self._keys
        found = [(own[key], others[key]) for key in own if key in others]
        self.pairs: list[tuple[ModuleCall, ModuleCall]] = sorted(found, key=lambda pair: end_of(pair[0]))
        self._other = {a.index: b for a, b in self.pairs}
        self._dropped = _dropped(first), _dropped(second)
        self._has_partner = frozenset(self._other), frozenset(b.index for _, b in self.pairs)
        self.weights_before: set[str] = set()

    def alone(self) -> tuple[tuple[ModuleCall, ...], tuple[ModuleCall, ...]]:
        own, others = self._keys
        # One of which the other pass has dropped calls may be among these.
        return (
            tuple(own[key] for key in own if key not in others and not self._dropped[1]),
            tuple(others[key] for key in others if key not in own and not self._dropped[0]),
        )

    @property
    def num_dropped(self) -> tuple[int, int]:
        """How many calls of each were not kept."""
        return len(self._dropped[0]), len(self._dropped[1])

    def _is_whole(self, call: ModuleCall) -> bool:
        """Return whether all was kept that was called inside a call and the one that belongs to it."""
        for tree, dropped, one in zip(self._trees, self._dropped, (call, self._other[call.index]), strict=True):
            inside = {below.order for below in tree.inside(one)} if dropped else set()
            before = one.order - 1
            while before in inside:
                before -= 1
            if before in dropped:
                return False
        return True

    def _is_whole_before(self, call: ModuleCall) -> bool:
        """Return whether all was kept that ended before two calls."""
        both = zip(self._dropped, (call, self._other[call.index]), strict=True)
        return all(one.order < min(dropped, default=one.order + 1) for dropped, one in both)

    def calls(self) -> Iterator[CallDifference]:
        around: set[int | None] = set()
        for call, other in self.pairs:
            difference = _came_out(call, other)
            if difference is not None or call.index in around:
                around.add(call.parent)
            if difference is not None:
                inputs, weights = _are_equal(call.inputs, other.inputs), _are_weights_equal(call, other)
                has_others = any(True for _ in self._alone_in(call, other)) or not self._is_whole(call)
                yield CallDifference(call, other, difference, inputs, weights, call.index in around, has_others)

    def _alone_in(
        self, call: ModuleCall | None, other: ModuleCall | None, before: ModuleCall | None = None
    ) -> Iterator[str]:
        """Yield which calls are in one of the passes alone, right inside a call, or the block: all, or those before."""
        ends = (before, self._other[before.index]) if before is not None else (None, None)
        where = " inside it" if before is None else " before it"
        for i, (above, end) in enumerate(zip((call, other), ends, strict=True)):
            if self._dropped[1 - i]:
                continue
            found = (one for one in self._trees[i].below(above) if one.index not in self._has_partner[i])
            yield from _told_of_alone([one for one in found if end is None or one.index < end.index], SIDES[i], where)

    def gradients(self) -> Iterator[CallDifference]:
        for call, other in reversed(self.pairs):
            found = map(difference_back, call.outputs, other.outputs)
            if (difference := next(filter(None, found), None)) is not None:
                yield CallDifference(call, other, difference)

    def weights(self) -> Iterator[tuple[str, Difference]]:
        seen = set()
        for call, other in self.pairs:
            if call.nth == 0 and call.name not in seen:
                others = _weights_of(other)
                for place, value in _weights_of(call).items():
                    same = others.get(place)
                    difference = difference_of(value, same) if same is not None else None
                    if same is not None and difference is not None:
                        name = parameter_name(call, value)
                        if not (value.since or same.since):
                            self.weights_before.add(name)
                        yield name, difference
            seen.add(call.name)

    def grads(self) -> Iterator[tuple[str, Difference]]:
        for a, b in self._parameters():
            difference = difference_of_gradients(a, b, are_on_cpu=self.are_on_cpu)
            if difference is not None:
                yield a.name, difference

    @property
    def are_on_cpu(self) -> bool:
        """Whether all parameters of both are."""
        return {value.device for record in self._records for call in record.calls for value in call.params} == {CPU}

    def _parameters(self) -> Iterator[tuple[Gradient, Gradient]]:
        """Yield what came back for each parameter of either: the one that requires none has no place there."""
        own, others = ({one.name: one for one in record.grads} for record in self._records)
        for one in sorted((others | own).values(), key=lambda one: (one.order < 0, one.order)):
            none = Gradient(one.name, None)
            yield own.get(one.name, none), others.get(one.name, none)

    def unread(self) -> Iterator[int]:
        """Yield 1 for each value, and each gradient of a parameter, of which nothing tells whether it is equal."""
        yield from self.unread_outputs()
        if any(record.had_backward for record in self._records):
            yield from (int(are_unread(a, b)) for a, b in self._parameters())

    def unread_outputs(self) -> Iterator[int]:
        """Yield this of what calls gave."""
        for call, other in self.pairs:
            for a, b in zip(call.outputs, other.outputs, strict=False):
                yield int(a.figures is None or b.figures is None)

    def told_of(self, calls: Sequence[CallDifference]) -> Iterator[str]:
        """Yield where the forward began to differ."""
        if not calls:
            return
        one = calls[0]
        call = one.call
        other = f", which is {one.other_class} in the second," if one.other_class else ""
        yield f"{named(call)}{other} came out otherwise{at(call.source)}: {one.difference.told}; {self._cause(one)}"

    def _cause(self, one: CallDifference) -> str:
        """Return where a difference came from, of the first call that differs."""
        if one.inputs_equal is False and one.weights_equal is not False:
            return self._before(one.call)
        modes = _modes(one.call, one.other)
        return f"it {modes}, and {self._of_own(one)}" if modes else self._of_own(one)

    def _of_own(self, one: CallDifference) -> str:
        """Return what of a call that differs was equal before, but for its inputs alone."""
        call, inside = one.call, self._trees[0].below(one.call)
        if one.weights_equal is False:
            inputs = ", and so had its inputs" if one.inputs_equal is False else ""
            return f"its {_other_weights(one)} had differed before{inputs}"
        if one.inputs_equal is None:
            return "whether its inputs were equal is not known"
        alone = list(self._alone_in(call, one.other))
        alone += _told_of_weights_alone(call, one.other, has_those_below=not alone)
        if alone:
            return f"the figures of its inputs were equal, and {'; '.join(alone)}"
        place = f"in its own code, after {inside[-1].title}" if inside else "here"
        if any(value.figures is None for child in inside for value in child.outputs):
            place = "in it, where not all was read that calls gave"
        if not self._is_whole(call):
            place = "in it, where not all calls were kept"
        is_drawn = _RANDOM in call.class_name and call.is_training and one.other.is_training
        drawn = ", which draws random numbers" if is_drawn else ""
        return f"the figures of its inputs were equal: the difference was born {place}{drawn}"

    def _before(self, call: ModuleCall) -> str:
        """Return where inputs had become different, if every call before came out the same."""
        own, others = self._trees
        for above in own.above(call):
            if above.index not in self._other or _are_equal(above.inputs, self._other[above.index].inputs) is not False:
                break
            call = above
        if not self._is_whole_before(call):
            return "its inputs had differed, and not all calls before it were kept"
        other = self._other[call.index]
        above_it = own.at(call.parent)
        around = self._other.get(above_it.index) if above_it is not None else None
        if above_it is not None and around is None:
            return f"its inputs had differed inside {above_it.title}, which is in the first alone"
        if alone := "; ".join(self._alone_in(above_it, others.at(other.parent), call)):
            return f"its inputs had differed, and {alone}"
        pairs = zip(call.inputs, other.inputs, strict=False)
        value = next((a for a, b in pairs if difference_of(a, b) is not None), None)
        after = f", after {value.made_by}" if value is not None and value.made_by != CAME_WITH_THE_CALL else ""
        if above_it is None and not after:
            return f"its inputs had differed when {call.title} was called"
        inside = f"the code of {above_it.title}" if above_it is not None else "the block"
        modes = _modes(above_it, around) if above_it is not None and around is not None else ""
        modes = f", which {modes}" if modes else ""
        return f"its inputs had differed: the difference was born in {inside}{modes}{after}"

    def told_of_gradients(
        self, found: Sequence[CallDifference], grads: dict[str, Difference], *, is_forward_equal: bool
    ) -> Iterator[str]:
        """Yield where the backward began to differ."""
        forward = "the figures of the forward are equal, and " if is_forward_equal else ""
        first, second = (record.had_backward for record in self._records)
        if first is not second:
            if found or grads:
                yield f"{forward}gradients came back in the {'first' if first else 'second'} alone"
            return
        if not found:
            for side in ("", *SIDES):
                what = f"a gradient in the {side} alone" if side else "another gradient"
                if names := [name for name, one in grads.items() if in_one_alone(one) == side]:
                    yield f"{forward}{counted(len(names), 'parameter')} got {what}: {listed(names)}"
                    forward = ""
            return
        one = found[0]
        later = self.pairs[[call for call, _ in self.pairs].index(one.call) + 1 :]
        came = [
            (call, value.shape == others.shape)
            for call, other in later
            for value, others in zip(call.outputs, other.outputs, strict=False)
            if value.grad is not None
        ]
        # Of another dtype, a gradient of the same loss is rounded otherwise.
        is_cast = [value.dtype for value in one.call.outputs] != [value.dtype for value in one.other.outputs]
        behind = ": the loss differed" if not came and not is_cast else ""
        if came and came[0][1]:
            behind = f"; what came back for {came[0][0].title} was equal"
        yield f"{forward}another gradient came back for {named(one.call)}: {one.difference.told}{behind}"


def _other_weights(one: CallDifference) -> str:
    """Return which weights and buffers of two calls differ, by their names where these are few."""
    own, others = map(_weights_of, (one.call, one.other))
    return _few([a.path for at, a in own.items() if at in others and difference_of(a, others[at]) is not None])


def _few(names: Sequence[str]) -> str:
    return " and ".join(names) if 0 < len(names) <= _MAX_WEIGHTS else "weights"


def _are_weights_equal(call: ModuleCall, other: ModuleCall) -> bool | None:
    """Return whether the weights are equal that two calls have; None where one has others, or some were not read."""
    own, others = map(_weights_of, (call, other))
    names = [name for name in own if name in others]
    equal = _are_equal([own[name] for name in names], [others[name] for name in names])
    return None if equal and own.keys() != others.keys() else equal


def _weights_of(call: ModuleCall) -> dict[str, Value]:
    return {without_compiler(value.path): value for value in call.params}


def _told_of_weights_alone(call: ModuleCall, other: ModuleCall, *, has_those_below: bool) -> Iterator[str]:
    """Yield which weights and buffers one of two calls alone has; those of parts may stand at calls in the other."""
    own, others = map(_weights_of, (call, other))
    for names, rest, side in ((own, others, SIDES[0]), (others, own, SIDES[1])):
        if alone := [name for name in names if name not in rest and (has_those_below or "." not in name)]:
            yield f"its {_few(alone)} {'is' if len(alone) == 1 else 'are'} in the {side} alone"


def _dropped(record: PassRecord) -> frozenset[int]:
    """Return which calls were not kept, by their place in the order in which they ended."""
    ended = {call.order for call in record.calls} if record.num_dropped else {0}
    return frozenset(range(max(ended))) - ended


def _keyed(record: PassRecord, names: Names) -> dict[tuple[object, ...], ModuleCall]:
    """Return calls by what tells which belong together: name and number; of what has no name, the order."""
    keyed: dict[tuple[object, ...], ModuleCall] = {}
    num_nameless = 0
    for call in record.calls:
        name = names.get(call.name, call.name)
        if name != "":
            # What is only around a model has a name of its own.
            keyed[(call.name,) if name is None else name, call.phase, call.nth] = call
        else:
            keyed["", call.phase, num_nameless] = call
            num_nameless += 1
    return keyed


def _came_out(call: ModuleCall, other: ModuleCall) -> Difference | None:
    """Return in what two calls differ that belong together: how they ended, or what they gave."""
    if call.status != other.status:
        return Difference(_STATUS, f"it {_ended(call)} in the first, and {_ended(other)} in the second")
    if len(call.outputs) != len(other.outputs):
        numbers = [counted(len(one.outputs), "tensor") for one in (call, other)]
        return Difference(_STATUS, f"it gave {numbers[0]} in the first, and {numbers[1]} in the second")
    found = (difference_of(a, b) for a, b in zip(call.outputs, other.outputs, strict=True))
    return next(filter(None, found), None)


def _modes(call: ModuleCall, other: ModuleCall) -> str:
    """Return in which mode a module was in each of the passes, where they are two."""
    if call.is_training is other.is_training:
        return ""
    first, second = ("train()" if one.is_training else "eval()" for one in (call, other))
    return f"was in {first} in the first and in {second} in the second"


def _ended(call: ModuleCall) -> str:
    return f"{call.status} {short.text_told(call.error)}".rstrip()


def _are_equal(own: Sequence[Value], others: Sequence[Value]) -> bool | None:
    """Return whether all that two calls got is equal; None where some of it was not read."""
    is_known = True
    for a, b in zip_longest(own, others):
        if a is None or b is None or difference_of(a, b) is not None or repr(a.sample) != repr(b.sample):
            return False
        is_known = is_known and a.figures is not None and b.figures is not None
    return True if is_known else None


def _told_of_weights(weights: dict[str, Difference], before: Collection[str]) -> Iterator[str]:
    for is_before, when in ((True, "before"), (False, "when first read")):
        if names := [name for name in weights if (name in before) is is_before]:
            told = f" ({weights[names[0]].told})" if len(names) == 1 else ""
            yield f"{counted(len(names), 'weight')} differed {when}: {listed(names)}{told}"


def _told_of_alone(calls: Sequence[ModuleCall], side: str, where: str = "") -> Iterator[str]:
    if calls:
        names = list(dict.fromkeys(named(call) for call in calls))
        verb = "is" if len(calls) == 1 else "are"
        yield f"{counted(len(calls), 'call')}{where} {verb} in the {side} alone: {listed(names)}"


def _told_of_steps(own: Sequence[OptimizerStep], others: Sequence[OptimizerStep]) -> Iterator[str]:
    """Yield which steps of optimizers one pass has and the other has not, or which is the first that differs."""
    first, second = map(_counted_steps, (own, others))
    if first != second:
        yield f"{first} in the first, {second} in the second"
        return
    for i, (a, b) in enumerate(zip(own, others, strict=True), 1):
        first, second = (", ".join(filter(None, _facts(one))) for one in (a, b))
        if first != second:
            yield f"the {format_ordinal(i)} step was {first} in the first, and {second} in the second"
            return


def _told_of_moved(own: Sequence[OptimizerStep], others: Sequence[OptimizerStep]) -> Iterator[str]:
    """Yield which step is the first that has made other values of the same parameters."""
    for i, (a, b) in enumerate(zip(own, others, strict=True), 1):
        if a.after and b.after and a.after != b.after:
            yield f"the {format_ordinal(i)} step, of {a.class_name}, made other values of the parameters"
            return


def _counted_steps(steps: Sequence[OptimizerStep]) -> str:
    counts = Counter(one.class_name for one in steps)
    return " and ".join(f"{counted(number, 'step')} of {name}" for name, number in counts.items()) or "no step"


def _facts(one: OptimizerStep) -> Iterator[str]:
    """Yield all that is known of a step, but for when it was."""
    yield f"of {one.class_name}, of {counted(one.num_parameters, 'parameter')}"
    yield "" if one.is_done else "not done"
    yield f"spoiling {listed([name for name, _ in one.spoilt])}" if one.spoilt else ""
    yield f"changing the frozen {listed(one.frozen)}" if one.frozen else ""
