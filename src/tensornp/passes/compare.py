"""Two passes side by side: the first call that differs, other weights and other gradients.

Shapes, dtypes, statistics and samples are compared. Where all of these are equal, single elements may still differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, format_number
from tensornp.passes.records import MODULE, Call, Figures, PassRecord, Value
from tensornp.passes.wording import at, line_of, listed, shape_text

_WRAPPERS = frozenset({"module", "_orig_mod"})
"""Names that DataParallel, DistributedDataParallel, AveragedModel and `torch.compile` put before the names inside."""
_ROUNDING = 1e-6
"""Relative difference of two sums of one tensor, added in another order."""


@dataclass(frozen=True, slots=True)
class Difference:
    text: str
    figures: tuple[Figures | None, Figures | None] = (None, None)


@dataclass(frozen=True, slots=True)
class CallDifference:
    """A call in both passes with other results; `inputs_equal` is None if some were not read, weights too."""

    call: Call
    other: Call
    difference: Difference
    inputs_equal: bool | None = None
    weights_equal: bool | None = None


@dataclass(frozen=True, slots=True)
class PassComparison:
    """Differences between two followed passes.

    Attributes
    ----------
    calls : tuple of CallDifference
        Calls with other results, in the order of their ends.
    weights, grads : dict of str to Difference
        Parameters and buffers that differed when they were first read, and parameters with other gradients.
    missing, unexpected : tuple of Call
        Calls of the first pass alone, and of the second alone.
    num_calls, num_unread : int
        Calls in both passes, and outputs of these without statistics.
    problems : tuple of str
        All differences in sentences.
    """

    calls: tuple[CallDifference, ...] = ()
    weights: dict[str, Difference] = field(default_factory=dict)
    grads: dict[str, Difference] = field(default_factory=dict)
    missing: tuple[Call, ...] = ()
    unexpected: tuple[Call, ...] = ()
    num_calls: int = 0
    num_unread: int = 0
    problems: tuple[str, ...] = ()

    @property
    def first(self) -> CallDifference | None:
        """The first call that differs."""
        return self.calls[0] if self.calls else None

    @property
    def equal(self) -> bool:
        """Whether all calls are in both passes, all outputs were read, and nothing differs."""
        return not self.problems and not self.num_unread

    @property
    def verdict(self) -> str:
        """A few words: "statistics are equal", "the first call that differs is layers.3 (Block)"."""
        if self.calls:
            return f"the first call that differs is {self.calls[0].call.title}"
        found = {"weights": self.weights, "gradients": self.grads, "calls": self.missing or self.unexpected}
        if self.problems:
            return f"other {' and '.join(noun for noun, each in found.items() if each)}"
        unread = f"; {counted(self.num_unread, 'output')} without statistics" if self.num_unread else ""
        return f"statistics are equal{unread}"

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return line_of("PassComparison", "", (), "; ".join((self.verdict, *self.problems[:1])))


def compared(first: PassRecord, second: PassRecord) -> PassComparison:
    own, others = _keyed(first), _keyed(second)
    pairs = sorted(((own[key], others[key]) for key in own if key in others), key=lambda pair: pair[0].ended)
    calls, weights = tuple(_call_differences(pairs)), _other_weights(pairs)
    grads = dict(_other_gradients(first, second))
    missing = tuple(own[key] for key in own if key not in others)
    unexpected = tuple(others[key] for key in others if key not in own)
    problems = (
        *(_call_text(one) for one in calls[:1]),
        *_names_text(weights, "weight", "differed when first read"),
        *_names_text(grads, "parameter", "got another gradient"),
        *_alone_text(missing, "first"),
        *_alone_text(unexpected, "second"),
    )
    outputs = (value for pair in pairs for call in pair for value in call.outputs.values())
    num_unread = sum(one.figures is None for one in outputs)
    return PassComparison(calls, weights, grads, missing, unexpected, len(pairs), num_unread, problems)


def _plain(name: str, record: PassRecord) -> str:
    """Return a name without wrappers, and without the name of the outermost module if there is one alone."""
    plain, *others = (
        ".".join(part for part in one.split(".") if part not in _WRAPPERS) for one in (name, *record.outermost)
    )
    root = others[0] if len(set(others)) == 1 else ""
    return plain[len(root) :].lstrip(".") if f"{plain}.".startswith(f"{root}.") else plain


def _keyed(record: PassRecord) -> dict[tuple[object, ...], Call]:
    """Return calls by name, phase and number; operators by their place in the call around them."""
    keys: dict[int, tuple[object, ...]] = {0: ()}
    counts: Counter[tuple[object, ...]] = Counter()
    # A wrapper has the name of the module inside, which comes first here.
    for call in (*reversed([*record.modules()]), *record.operators()):
        is_module = call.kind == MODULE
        key = (_plain(call.name, record), call.nth) if is_module else (keys[call.parent or 0], call.name)
        keys[call.index] = *key, call.phase, counts[key, call.phase]
        counts[key, call.phase] += 1
    return {keys[one.index]: one for one in record.calls[1:]}


def _call_differences(pairs: Sequence[tuple[Call, Call]]) -> Iterator[CallDifference]:
    for call, other in pairs:
        difference: Difference | None
        if call.status != other.status:
            ends = (f"{one.status} {one.error}".rstrip() for one in (call, other))
            difference = Difference(" and ".join(ends))
        elif len(call.outputs) != len(other.outputs):
            difference = Difference(" and ".join(counted(len(one.outputs), "tensor") for one in (call, other)))
        else:
            found = map(_difference_of, call.outputs.values(), other.outputs.values())
            difference = next((one for one in found if one is not None), None)
        if difference is not None:
            inputs = [*zip_longest(call.inputs.values(), other.inputs.values())]
            weights = [(one, other.params.get(path)) for path, one in call.params.items()]
            yield CallDifference(call, other, difference, _are_equal(inputs), _are_equal(weights))


def _difference_of(a: Value, b: Value) -> Difference | None:
    if a.shape != b.shape or a.dtype != b.dtype:
        return Difference(f"{shape_text(a)} and {shape_text(b)}", (a.figures, b.figures))
    if a.figures is None or b.figures is None:
        return None
    found = _difference_of_figures(a.figures, b.figures)
    if found is None and a.device == b.device == "cpu" and repr(a.sample) != repr(b.sample):
        return Difference("other elements with the same statistics", (a.figures, b.figures))
    return found


def _difference_of_figures(a: Figures, b: Figures) -> Difference | None:
    if a.word != b.word:
        return Difference(f"{a.word or 'finite'} and {b.word or 'finite'}", (a, b))
    reach, size = max(abs(end) for one in (a, b) for end in (one.min, one.max)), max(a.norm, b.norm)
    found = {}
    for name, scale in (("norm", size), ("min", reach), ("max", reach), ("sum", size * math.sqrt(a.count))):
        x, y = getattr(a, name), getattr(b, name)
        is_same = x == y or (math.isnan(x) and math.isnan(y))
        found[name] = 0.0 if is_same else abs(x - y) / scale if scale and math.isfinite(x - y) else math.inf
    name = max(found, key=lambda name: found[name])
    if found[name] <= _ROUNDING:
        return None
    ends = " and ".join(format_number(getattr(one, name) + 0.0, 7) for one in (a, b))
    return Difference(f"{name} {ends}", (a, b))


def _are_equal(pairs: Sequence[tuple[Value | None, Value | None]]) -> bool | None:
    """Return whether values are equal in pairs; None if some were not read."""
    if any(a is None or b is None or _difference_of(a, b) is not None for a, b in pairs):
        return False
    return None if any(one is not None and one.figures is None for pair in pairs for one in pair) else True


def _other_weights(pairs: Sequence[tuple[Call, Call]]) -> dict[str, Difference]:
    found: dict[str, Difference | None] = {}
    for call, other in sorted(pairs, key=lambda pair: pair[0].index):
        for path in call.params.keys() & other.params.keys():
            name = f"{call.name}.{path}".lstrip(".")
            if name not in found:
                found[name] = _difference_of(call.params[path], other.params[path])
    return {name: one for name, one in found.items() if one is not None}


def _other_gradients(first: PassRecord, second: PassRecord) -> Iterator[tuple[str, Difference]]:
    others = {_plain(one.name, second): one for one in second.grads}
    for one in sorted(first.grads, key=lambda one: one.order):
        other = others.get(_plain(one.name, first))
        if other is None or one.note or other.note:
            continue
        a, b = one.figures, other.figures
        if a is not None and b is not None:
            difference = _difference_of_figures(a, b)
            if difference is not None:
                yield one.name, difference
        elif a is not None or b is not None:
            yield one.name, Difference(f"a gradient in the {'second' if a is None else 'first'} alone", (a, b))


def _call_text(one: CallDifference) -> str:
    parts = (("inputs", one.inputs_equal), ("weights", one.weights_equal if one.call.params else None))
    texts = [f"its {noun} {'are equal' if is_equal else 'differ'}" for noun, is_equal in parts if is_equal is not None]
    return "; ".join((f"{one.call.title}{at(one.call.source)}: {one.difference.text}", *texts))


def _names_text(found: Mapping[str, Difference], noun: str, verb: str) -> Iterator[str]:
    if found:
        detail = f" ({next(iter(found.values())).text})" if len(found) == 1 else ""
        yield f"{counted(len(found), noun)} {verb}: {listed(list(found))}{detail}"


def _alone_text(calls: Sequence[Call], side: str) -> Iterator[str]:
    if calls:
        titles = listed(list(dict.fromkeys(one.title for one in calls)))
        yield f"{counted(len(calls), 'call')} in the {side} alone: {titles}"
