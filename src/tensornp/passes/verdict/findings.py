"""What is worth knowing of a pass beside where a NaN came from: each with its numbers, the most serious first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import largest, name_of
from tensornp.passes.records import (
    BUFFER,
    CAME_WITH_THE_CALL,
    IN_ITS_PLACE,
    NOT_CALLED,
    Figures,
    Finding,
    Gradient,
    ModuleCall,
    PassRecord,
    Value,
)
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.dead_units import dead_units
from tensornp.passes.verdict.growth import growing
from tensornp.passes.verdict.held import held_told, several_told
from tensornp.passes.verdict.scaling import told_of_scaling
from tensornp.passes.verdict.step_origin import named_step, step_origin
from tensornp.passes.verdict.wording import (
    at,
    is_floating,
    listed,
    named,
    number,
    odd_input,
    odd_params,
    parameter_name,
    reach_of,
    word_of,
)

_ACTIVATION = re.compile(r"(?i)[ercgs]elu|silu|swish|mish|tanh|sigmoid|activation")


def findings_of(record: PassRecord) -> tuple[Finding, ...]:
    """Return what stands out in a pass, what is alike in one sentence."""
    tree = CallTree(record)
    return tuple(finding for rule in _RULES for finding in rule(tree))


def _folded(kind: str, names: Iterable[str], one: str, noun: str, several: str, after: str = "") -> Iterator[Finding]:
    """Yield one finding of all names: ``head.bias got …``, or ``3 parameters that got …: head.bias, …``."""
    found = list(dict.fromkeys(names))
    if len(found) == 1:
        yield Finding(kind, found[0], f"{found[0]} {one}{after}", (1,))
    elif found:
        yield Finding(kind, found[0], f"{counted(len(found), noun)} {several}: {listed(found)}{after}", (len(found),))


def _not_finite_before(tree: CallTree) -> Iterator[Finding]:
    found: defaultdict[str, dict[str, tuple[ModuleCall, Value]]] = defaultdict(dict)
    seen = set()
    for call in tree.ended:
        for odd in odd_params("nonfinite", call) if call.name not in seen else ():
            found[odd.since][parameter_name(call, odd)] = call, odd
        seen.add(call.name)
    for since, odds in sorted(found.items()):
        words = {name: word_of(odd.figures) for name, (_, odd) in odds.items() if odd.figures}
        nouns = {BUFFER if odd.relation == BUFFER else "parameter" for _, odd in odds.values()}
        told = several_told(since, words.values())
        if len(odds) == 1:
            ((name, only),) = odds.items()
            yield Finding("bad parameter", name, held_told(*only), (1,))
        else:
            yield from _folded("bad parameter", words, told, nouns.pop() if len(nouns) == 1 else "weight", told)
    for call in tree.ended:
        value = odd_input("nonfinite", call) if call.parent is None else None
        if value and value.figures and value.made_by == CAME_WITH_THE_CALL:
            sentence = f"the input {value.path} held {word_of(value.figures)} when {named(call)} was called"
            yield Finding("bad input", call.title, sentence.replace("  ", " "))
            return


def _inference(tree: CallTree) -> Iterator[Finding]:
    if tree.record.has_operators and tree.record.has_inference:
        # It takes another path under any mode, as for what is not contiguous.
        told = "torch may compute other last bits in inference mode where operators are followed"
        yield Finding("inference", "", told)


def _scaled(tree: CallTree) -> Iterator[Finding]:
    if told := told_of_scaling(tree):
        yield Finding("scaled gradients", "", told)


def _spoilt(tree: CallTree) -> Iterator[Finding]:
    origin = step_origin(tree, "nonfinite")
    if origin is not None:
        yield Finding("spoilt", origin.name, origin.sentence)


def _lost_gradient(tree: CallTree) -> Iterator[Finding]:
    # A reentrant checkpoint runs without gradients first.
    again = {call.name for call in tree.again}
    lost = [call for call in tree.ended if call.name not in again and _loses_gradient(call) and _is_missed(call, tree)]
    inner = sorted(tree.innermost(lost), key=lambda call: call.order)
    source = at(inner[0].source) if inner else ""
    yield from _folded(
        "lost gradient", map(named, inner), "returned a tensor without a gradient, though its inputs had one",
        "call", "returned tensors without a gradient, though their inputs had one", source,
    )  # fmt: skip


def _loses_gradient(call: ModuleCall) -> bool:
    # An object may hold what has a gradient.
    gave = [one.requires_grad or not one.dtype for one in call.outputs if is_floating(one)]
    return call.is_grad_enabled and bool(gave) and not any(gave) and any(one.requires_grad for one in call.inputs)


def _is_missed(call: ModuleCall, tree: CallTree) -> bool:
    """Return whether a backward has left out a parameter of what came before a call; True where there was none."""
    if not tree.record.had_backward:
        return True
    earlier = {one.name for one in tree.ended if one.index < call.index}
    return any(name.rpartition(".")[0] in earlier for name in _without_gradient(tree))


def _without_gradient(tree: CallTree) -> list[str]:
    """Return the parameters for which nothing came back in a backward."""
    # Of what could not be read, such as a sharded one, nothing is known.
    grads = tree.record.grads if tree.record.had_backward else ()
    names = [one.name for one in grads if one.figures is None and not one.note]
    if len(names) == len(grads):
        # `torch.autograd.grad` gives them to who asks, and to no parameter.
        reached = {call.name for call in tree.ended if any(one.grad for one in call.outputs)}
        names = [name for name in names if name.rpartition(".")[0] not in reached]
    return names


def _no_gradient(tree: CallTree) -> Iterator[Finding]:
    yield from _folded("no gradient", _without_gradient(tree), "got no gradient", "parameter", "got no gradient")


def _not_called(tree: CallTree) -> Iterator[Finding]:
    names = [one.name for one in tree.record.grads if one.note == NOT_CALLED]
    if names:
        is_one = len({name.rpartition(".")[0] for name in names}) == 1
        whose = "a module that was" if is_one else "modules that were"
        told = f"{counted(len(names), 'parameter')} of {whose} not called got no gradient: {listed(names)}"
        yield Finding("not called", names[0], told, (len(names),))


def _in_their_place(tree: CallTree) -> Iterator[Finding]:
    names = [one.name for one in tree.record.grads if one.note == IN_ITS_PLACE and one.figures is not None]
    yield from _folded(
        "in its place", names, "has the gradient of what took its place in a functional call", "parameter",
        "have the gradients of what took their place in a functional call",
    )  # fmt: skip


def _stepped_without_gradient(tree: CallTree) -> Iterator[Finding]:
    # Of what could not be read, such as gradients in compiled code, nothing is known.
    is_read = any(not one.note for one in tree.record.grads)
    for step in tree.record.steps if is_read else ():
        before = [call for call in tree.ended if call.parent is None and call.index < step.num_calls]
        gave = (one for call in before for one in call.outputs)
        came = step.num_gradients or step.num_inside or not step.num_parameters
        if not came and any(one.requires_grad for one in gave):
            told = f"{named_step(step)} began, and no gradient had come back to what was called before it"
            yield Finding("step without gradient", before[0].title, told)
            return
        if step.has_lost:
            told = f"{named_step(step)} found no gradient at any of its parameters: zero_grad() belongs after it"
            yield Finding("step without gradient", "", told)
            return
    steps = tree.record.steps if is_read and tree.record.had_backward else ()
    if steps and not any(step.has_gradients or step.num_gradients or step.num_inside for step in steps):
        told = f"{named_step(steps[0])} found no gradient at any of its parameters: backward() belongs before it"
        yield Finding("step without gradient", "", told)


def _stepped_others(tree: CallTree) -> Iterator[Finding]:
    *_, last = tree.record.steps or (None,)
    if last is None or any(step.num_parameters or step.has_gradients for step in tree.record.steps):
        return
    came = [one.name for one in tree.record.grads if 0 <= one.order < last.num_gradients and one.note != IN_ITS_PLACE]
    if came:
        told = f"{named_step(last)} moved none of the parameters that got gradients: the optimizer has others"
        yield Finding("stepped others", came[0], told, (len(came),))


def _stepped_frozen(tree: CallTree) -> Iterator[Finding]:
    steps = [step for step in tree.record.steps if step.frozen]
    names = (name for step in steps for name in step.frozen)
    changed = f"and {named_step(steps[0])} changed" if steps else ""
    yield from _folded(
        "stepped while frozen", names, f"requires no gradient, {changed} it all the same",
        "parameter", f"require no gradient, {changed} them all the same",
    )  # fmt: skip


def _accumulated(tree: CallTree) -> Iterator[Finding]:
    came = [one for one in tree.record.grads if one.order >= 0]
    # Zeros are what `zero_grad(set_to_none=False)` leaves.
    held = [one for one in came if one.held is not None and one.held.norm != 0]
    words = {one.name: "values" if one.held and one.held.is_finite else word_of(one.held) for one in held if one.held}
    for word in dict.fromkeys(words.values()):
        names = [name for name, found in words.items() if found == word]
        whose = f" ({listed(names)})" if len(names) < len(came) else ""
        told = f"`.grad` held {word} before: this pass was added to {'them' if word == 'values' else 'it'}{whose}"
        yield Finding("accumulated", names[0], told, (len(names),))


def _stepped_twice(tree: CallTree) -> Iterator[Finding]:
    names = [one.name for one in tree.record.grads if one.is_stepped_twice]
    if names:
        whose = f" ({listed(names)})" if len(names) < len(tree.record.grads) else ""
        told = f"`.grad` was not zeroed between two steps: the second took the gradients of the first once more{whose}"
        yield Finding("stepped twice", names[0], told, (len(names),))


def _is_odd(one: Gradient) -> bool:
    return one.figures is not None and not one.figures.is_finite


def _several_backwards(tree: CallTree) -> Iterator[Finding]:
    came = [one for one in tree.record.grads if one.order >= 0]
    # Of one that was not finite before, that is what is told.
    several = {one.name: one.num_backwards for one in came if one.num_backwards > 1 and not _is_odd(one)}
    if several:
        whose = f" ({listed(list(several))})" if len(several) < len(came) else ""
        up_to = "up to " if len(set(several.values())) > 1 else ""
        between = " with no step of theirs between" if tree.record.steps else ""
        told = f"gradients came in {up_to}{max(several.values()):,} backwards{between}: the last of them is told"
        yield Finding("several backwards", next(iter(several)), f"{told}{whose}", (max(several.values()),))


def _recomputed_otherwise(tree: CallTree) -> Iterator[Finding]:
    before: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for call in tree.ended:
        before[call.name][_went_in(call)].add(_came_out(call))
    # What got something else is none of these calls anew.
    other = [
        call
        for call in tree.again
        if call.outputs and (came := before[call.name].get(_went_in(call))) and _came_out(call) not in came
    ]
    inner = sorted(tree.innermost(other), key=lambda call: call.order)
    yield from _folded(
        "recomputed", (call.title for call in inner), "came out otherwise when it was recomputed", "call",
        "came out otherwise when they were recomputed", ": RNG or state had moved",
    )  # fmt: skip


def _went_in(call: ModuleCall) -> str:
    return repr([one.figures for one in call.inputs])


def _came_out(call: ModuleCall) -> str:
    # A NaN is like another NaN in words alone.
    return str([one.figures and astuple(one.figures) for one in call.outputs])


def _dead(tree: CallTree) -> Iterator[Finding]:
    alive = {call.name for call in tree.ended if any(one.max != one.min for one in _figures(call))}
    dead = [call for call in _constant_calls(tree) if _is_dead(call) and call.name not in alive]
    num = max((one.count for call in dead for one in _figures(call)), default=0)
    told = f"gave {counted(num, 'value')}, all of them 0: its units are dead"
    yield from _folded("dead units", map(named, dead), told, "activation", "gave 0 and nothing else")


def _constant(tree: CallTree) -> Iterator[Finding]:
    same = [call for call in _constant_calls(tree) if not _is_dead(call)]
    value = number(_figures(same[0])[0].min) if same else ""
    yield from _folded("constant", map(named, same), f"gave one value only, {value}", "call", "gave one value only")


def _constant_calls(tree: CallTree) -> Iterator[ModuleCall]:
    """Yield innermost calls that gave one value, of inputs that had several."""
    for call in tree.ended:
        gave, ends = _figures(call), reach_of(call.inputs)
        is_constant = gave and all(one.min == one.max and one.is_finite and one.count > 1 for one in gave)
        if is_constant and not tree.below(call) and (ends is None or ends[0] != ends[1]):
            yield call


def _is_dead(call: ModuleCall) -> bool:
    return bool(_ACTIVATION.search(call.class_name)) and all(one.min == 0 for one in _figures(call))


def _figures(call: ModuleCall) -> list[Figures]:
    return [one.figures for one in call.outputs if one.figures and is_floating(one)]


def _near_the_edge(tree: CallTree) -> Iterator[Finding]:
    for dtype in ("float16", "bfloat16"):
        edge = largest(dtype)
        reached = {call.index: max((_reach(one, dtype) for one in call.outputs), default=0) for call in tree.ended}
        near = tree.innermost([call for call in tree.ended if edge / 2 <= reached[call.index] <= edge])
        furthest = max((reached[call.index] for call in near), default=0)
        told = f"within a factor of 2 of {dtype}'s range ({number(edge)})"
        after = f"; {'they' if len(near) > 1 else 'it'} reached {number(furthest)}"
        names = (call.title for call in near)
        yield from _folded("near the edge", names, f"comes {told}", "call", f"come {told}", after)


def _reach(value: Value, dtype: str) -> float:
    """Return how far a value of a dtype is from 0; of another dtype, and of what is not finite, 0."""
    if name_of(value.dtype) != dtype or not value.figures or not value.is_finite:
        return 0
    return max(abs(value.figures.min), abs(value.figures.max)) if value.figures.count else 0


def _called_again(tree: CallTree) -> Iterator[Finding]:
    nths = defaultdict(set)
    for call in tree.ended:
        if call.parent is not None and any(one.requires_grad for one in call.params):
            nths[call.parent, call.name].add(call.nth)
    times = {name: len(found) for (_, name), found in nths.items() if len(found) > 1}
    told = f"is called {max(times.values(), default=0):,} times; one set of weights"
    yield from _folded("called again", times, told, "module", "are called several times")


_RULES: tuple[Callable[[CallTree], Iterator[Finding]], ...] = (
    _inference,
    _scaled,
    _not_finite_before,
    _spoilt,
    _lost_gradient,
    _no_gradient,
    _not_called,
    _in_their_place,
    _stepped_without_gradient,
    _stepped_others,
    _stepped_frozen,
    _accumulated,
    _stepped_twice,
    _several_backwards,
    _recomputed_otherwise,
    _dead,
    dead_units,
    _near_the_edge,
    growing,
    _constant,
    _called_again,
)
