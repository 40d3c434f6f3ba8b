"""What is known of a weight that was not finite when a call began: since when it was so, and what was done to it."""

from __future__ import annotations

from collections.abc import Iterable

from tensornp.passes.records import BEFORE, FORWARD, GIVEN, NOT_SEEN, PUT_IN, WRITTEN, ModuleCall, Value
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import holds, named, parameter_name, word_of

_SINCE = {WRITTEN: ", and had been written in the pass", PUT_IN: ", and had been put there in the pass", NOT_SEEN: ""}
_SEVERAL = {
    "": "held {} before the pass",
    WRITTEN: "that had been written in the pass held {} when first read",
    PUT_IN: "that had been put there in the pass held {} when first read",
    GIVEN: "held {} in what was given for them in a functional call",
    NOT_SEEN: "held {} when first read",
}


def held_told(call: ModuleCall, value: Value) -> str:
    """Return since when a weight of a call, which is not finite, is known to have been so."""
    assert value.figures is not None
    name, word = parameter_name(call, value), word_of(value.figures)
    if not value.since:
        return f"{name} held {word} before the pass"
    if value.since == GIVEN:
        return f"what was given for {name} in a functional call held {word} when {named(call)} was called"
    first = "" if call.nth else "first "
    return f"{name} held {word} when {named(call)} was {first}called{_SINCE[value.since]}"


def several_told(since: str, words: Iterable[str]) -> str:
    """Return the same of several weights of which the same is known, but for their names."""
    return _SEVERAL[since].format(" or ".join(sorted(set(words))))


def held_since(tree: CallTree, call: ModuleCall, value: Value, what: str) -> tuple[str, str]:
    """Return in which phase a weight became not finite, and that in a sentence."""
    # What was given in its place is another tensor.
    earlier = [
        one
        for other in tree.ended
        for one in other.params
        if other.name == call.name and other.index < call.index and one.path == value.path and one.since != GIVEN
        and one.figures is not None
    ]  # fmt: skip
    before = next((one.figures for one in reversed(earlier) if not holds(what, one.figures)), None)
    if value.since != GIVEN and before is not None and value.figures is not None:
        told = "was finite" if before.is_finite else f"held {word_of(before)}"
        when = f"{parameter_name(call, value)} held {word_of(value.figures)} when {named(call)} was called"
        return FORWARD, f"{when}, and {told} before: written since"
    return FORWARD if value.since else BEFORE, held_told(call, value)
