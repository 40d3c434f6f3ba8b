"""Where the first value that is not finite entered the gradients."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from tensornp.passes.records import BACKWARD, RECOMPUTED, Gradient, ModuleCall, Origin
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import are_finite, holds, is_unread, listed, named, odd_output, within, word_of

CAME_IN = ", or came in with targets and the like"
"""What code around the modules was given, and nobody has seen."""

_order_of, _num_gradients_of = attrgetter("order"), attrgetter("num_gradients")


def backward_origin(tree: CallTree, what: str, before: ModuleCall | None = None) -> Origin | None:
    """Return where the gradients hold it first, as each backward goes from the last call to the first.

    Where it was there `before` a call, only what came back before that tells of it, and of values alone: what is known
    of parameters may have come later.
    """
    found = (_entered(tree, what, *backward) for backward in _backwards(tree, before))
    origin = next(filter(None, found), None) or _of_unknown_order(tree, what, before)
    if origin is None or any(are_finite(call.outputs) is False for call in tree.ended):
        return origin
    # Of a loss that nobody holds, and of what a module has computed and dropped, it is not known whether it was.
    is_read = not any(is_unread(call.outputs) for call in tree.ended)
    finite = "what modules gave" if is_read else "what could be read of the forward"
    return replace(origin, sentence=f"{finite} was finite; {origin.sentence}")


def _entered(tree: CallTree, what: str, calls: list[ModuleCall], params: list[Gradient]) -> Origin | None:
    """Return where it entered one backward, by the gradients of calls and parameters in the order of that."""
    first = next((i for i, call in enumerate(calls) if _odd_gradient(what, call)), len(calls))
    odd = [one for one in params if holds(what, one.figures)]
    infinite = (
        _entered(tree, "inf", calls, params) if any(_odd_gradient("inf", call) for call in calls[:first]) else None
    )
    if infinite is None and (origin := _in_own_parameter(tree, calls, first, odd, what)):
        return origin
    if first < len(calls):
        origin = _after(tree, calls, first, what)
    else:
        origin = _among_parameters(params, odd[0], what) if odd else None
    if origin is None or infinite is None:
        return origin
    return replace(origin, inputs_finite=False, sentence=f"{origin.sentence}; before, {infinite.sentence}")


def _backwards(tree: CallTree, before: ModuleCall | None) -> Iterator[tuple[list[ModuleCall], list[Gradient]]]:
    """Yield the calls that got gradients, of each backward the last first, and what came back for parameters then.

    Of one through which several came, only what was first not finite is known. What was recomputed stands where it was
    called before.
    """
    params = sorted((one for one in tree.record.grads if one.order >= 0 and before is None), key=_order_of)
    begins = tree.record.backwards or (0,)
    got = defaultdict[int, list[ModuleCall]](list)
    for call in (*tree.ended, *tree.again):
        came = [one for one in call.outputs if one.grad_orders]
        odd = [one.grad_orders[-1] for one in came if holds("nonfinite", one.grad)]
        orders = [min(odd)] if odd else [order for one in came for order in one.grad_orders]
        for number in {bisect_right(begins, order) - 1 for order in orders}:
            got[number].append(call)
    again, called = {call.index for call in tree.again}, deque(sorted(tree.ended, key=_num_gradients_of))
    last: dict[str, int] = {}
    for number, (begin, end) in enumerate(pairwise((*begins, math.inf))):
        if before is not None and begin >= before.num_gradients:
            return
        own = slice(*(bisect_left(params, order, key=_order_of) for order in (begin, end)))
        while called and called[0].num_gradients <= begin:
            one = called.popleft()
            last[one.name] = one.order
        places = {one.index: last.get(one.name, one.order) for one in got[number] if one.index in again}
        calls = sorted(got[number], key=lambda one: places.get(one.index, one.order), reverse=True)
        yield calls, params[own]


def _odd_gradient(what: str, call: ModuleCall) -> str:
    """Return what is not finite in the gradients of a call's outputs; empty of finite ones."""
    return next((word_of(one.grad) for one in call.outputs if one.grad and holds(what, one.grad)), "")


def _in_own_parameter(
    tree: CallTree, calls: list[ModuleCall], first: int, odd: list[Gradient], what: str
) -> Origin | None:
    """Return the call of whose outputs all gradients are finite, and not those of its own parameters."""
    fine = {call.name: call for call in calls[:first]}
    inside = tree.above(calls[first]) if first < len(calls) else ()
    for other in (*calls[first:], *inside):
        fine.pop(other.name, None)
    for one in odd:
        call = fine.get(one.name.rpartition(".")[0])
        if call is not None and one.figures is not None:
            sentence = (
                f"the first {word_of(one.figures)} came in the backward of {named(call)}: the gradient "
                f"of what it gave was finite, that of {one.name} was not"
            )
            return Origin(what, BACKWARD, call.title, "", True, call.source, sentence, one.name, call.index)
    return None


def _after(tree: CallTree, calls: list[ModuleCall], first: int, what: str) -> Origin:
    """Return behind which call it came: behind the last, in the loss."""
    call = calls[first]
    word, above, source = _odd_gradient(what, call), tree.at(call.parent), call.source
    takers = _takers(tree, calls[:first], call, what)
    others = "Inf" if any(_odd_gradient("inf", one) for one in takers or calls[:first]) else "fine"
    if takers:
        names, source = list(dict.fromkeys(one.title for one in takers)), takers[0].source
        told = f"{word} entered the gradients between {listed(names)} ({others}) and {call.title}"
    elif first == 0 and (gave := odd_output("nonfinite", call)) and gave.figures:
        told = f"what {call.title} gave held {word_of(gave.figures)}, and its gradient held {word}"
    elif first == 0:
        told = f"the first {word} was born in the loss or its backward, after {named(call, has_class=False)}, "
        told += f"the last call with a gradient{CAME_IN}"
    elif call.phase == RECOMPUTED:
        # What one block of a checkpoint gives, the next one gets as another tensor.
        told = f"{word} entered the gradients between {calls[first - 1].title} ({others}) and {call.title}"
    else:
        place = f"{above.title}, after {within(call, above)}" if above else f"the cell, after {call.title}"
        told = f"{word} entered the gradients in {place}: those of the calls that followed were {others}"
    return Origin(what, BACKWARD, call.title, "", first > 0 or None, source, told, "", call.index)


def _takers(tree: CallTree, fine: list[ModuleCall], call: ModuleCall, what: str) -> list[ModuleCall]:
    """Return the calls, beside the one that gave it, that took a value whose gradient is bad, in the order of calls."""
    given = {call.index, *(one.maker for one in call.outputs if one.grad and holds(what, one.grad))} - {None}
    known, around = {one.index for one in fine}, {call.index, *(one.index for one in tree.above(call))}
    found = {}
    for one in reversed(fine):
        if any(value.maker in given for value in one.inputs):
            outer = one
            for above in tree.above(one):
                if above.index in around or above.index not in known:
                    break
                outer = above
            found[outer.index] = outer
    return list(found.values())


def _of_unknown_order(tree: CallTree, what: str, before: ModuleCall | None) -> Origin | None:
    """Return a parameter whose gradient was read where it is kept, of which nothing tells when it came."""
    odd = next((one for one in tree.record.grads if one.order < 0 and holds(what, one.figures)), None)
    if odd is None or odd.figures is None or before is not None:
        return None
    told = f"the gradient of {odd.name} held {word_of(odd.figures)}"
    return Origin(what, BACKWARD, odd.name, "", None, None, told, odd.name)


def _among_parameters(params: list[Gradient], odd: Gradient, what: str) -> Origin | None:
    """Return between which parameters it came, where nothing is known of the gradients of calls."""
    assert odd.figures is not None
    before = [(one.name, one.figures) for one in params[: params.index(odd)] if one.figures]
    word = word_of(odd.figures)
    told = f"the gradient of {odd.name}, the first that came, held {word}"
    if before:
        name, figures = before[-1]
        other = "fine" if figures.is_finite else word_of(figures)
        told = f"{word} entered the gradients between {name} ({other}) and {odd.name}"
    return Origin(what, BACKWARD, odd.name, "", True if before else None, None, told, odd.name)
