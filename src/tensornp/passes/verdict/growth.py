"""Norms that grow or fall from layer to layer, forward or backward, by far and steadily."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tensornp.passes.records import Finding, ModuleCall
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import is_floating, number

_MIN_LAYERS = 4
_MIN_RATE = 1.5
_MIN_STEP = 1.25
"""What each layer grows by at least, where they grow by `_MIN_RATE` on average."""
_MIN_GROWTH = 10
"""In all: less is common between the first layer of a model and its last."""
_NUMBER = re.compile(r"(?<![^.])[0-9]+(?![^.])")


def growing(tree: CallTree) -> Iterator[Finding]:
    """Yield the layers over which norms grow most, and fall most, then those over which those of gradients do."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for calls in _layers(tree):
        outputs = [next(one for one in call.outputs if is_floating(one)) for call in calls]
        norms = [one.figures.norm if one.figures else 0 for one in outputs]
        grads = [one.grad.norm if one.grad else 0 for one in outputs]
        for finding in (*_steep("norms", calls, norms), *_steep("gradient norms", calls[::-1], grads[::-1])):
            found[finding.kind].append(finding)
    for several in found.values():
        # Of a layer and its parts, which grow alike, the layer began first.
        yield max(several, key=lambda one: round(abs(math.log(one.figures[2]) - math.log(one.figures[1]))))


def _layers(tree: CallTree) -> Iterator[list[ModuleCall]]:
    """Yield calls that are alike but for one number in their names, as they began."""
    found: dict[tuple[object, ...], list[ModuleCall]] = defaultdict(list)
    for call in sorted(tree.ended, key=lambda call: call.index):
        shape = next((one.shape for one in call.outputs if is_floating(one)), None)
        for match in _NUMBER.finditer(call.name) if shape is not None and not call.nth else ():
            found[call.name[: match.start()], call.name[match.end() :], call.class_name, shape].append(call)
    return (calls for calls in found.values() if len(calls) >= _MIN_LAYERS)


def _steep(what: str, calls: Sequence[ModuleCall], norms: Sequence[float]) -> Iterator[Finding]:
    """Yield the longest stretch over which norms grow, and that over which they fall, where they do by far."""
    for verb, is_up in (("grow", True), ("fall", False)):
        rising = [(norm if is_up else 1 / norm) if 0 < norm < math.inf else 0 for norm in norms]
        first, last = _longest(rising)
        num_steps, growth = last - first, rising[last] / rising[first] if last else 0
        if num_steps + 1 >= _MIN_LAYERS and growth >= _MIN_GROWTH and growth ** (1 / num_steps) >= _MIN_RATE:
            rate = (norms[last] / norms[first]) ** (1 / num_steps)
            ends = [f"{number(norms[i])} at {calls[i].title}" for i in (first, last)]
            sentence = f"{what} {verb} ×{rate:.2g} a layer, from {ends[0]} to {ends[1]}"
            yield Finding(f"{what} {verb}", calls[first].title, sentence, (rate, norms[first], norms[last]))


def _longest(norms: Sequence[float]) -> tuple[int, int]:
    """Return the ends of the longest stretch in which each number is `_MIN_STEP` times the one before, or more."""
    best, start = (0, 0), 0
    for i, (before, norm) in enumerate(pairwise(norms), 1):
        if not before or norm < _MIN_STEP * before:
            start = i
        best = max(best, (start, i), key=lambda ends: ends[1] - ends[0])
    return best
