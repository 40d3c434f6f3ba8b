"""Records of a followed pass: calls, values, gradients, steps and findings, without tensors."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.models.names.quoted import cut
from tensornp.passes import wording

BLOCK, MODULE, OPERATOR = "block", "module", "operator"
"""Kinds of calls."""
FORWARD, RECOMPUTED, BACKWARD, OPTIMIZER = "forward", "recomputed", "backward", "optimizer"
"""Phases of calls: a checkpoint recomputes a forward inside of a backward."""
RETURNED, RAISED, STOPPED, LEFT = "returned", "raised", "stopped early", "left"
"""Ends of calls: a checkpoint stops a recomputation early; "left" is an end that torch does not report."""
NEW, VIEW, IN_PLACE, BUFFER = "new", "view", "in place", "buffer"
"""Relations of an output to the inputs of its call; "buffer" marks buffers among parameters."""
THE_CELL = "the cell"
"""What is followed, where it has no name."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a program; `cell` is ``In[3]``, `THE_CELL` for the followed one, or empty for a file."""

    file: str
    line: int
    text: str = ""
    cell: str = ""

    def __str__(self) -> str:
        name = self.file.replace(chr(92), "/").rpartition("/")[2]
        where = f"{self.cell} line {self.line}" if self.cell else f"{name}:{self.line}"
        if self.cell == THE_CELL:
            where = f"line {self.line} of {self.cell}"
        return f"{where} `{self.text}`" if self.text else where


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of one read of a tensor; complex numbers are read as their absolute values.

    `min` and `max` are NaN if any element is. `sum` and `norm` are taken in float32 or wider, on the device: a norm is
    Inf or 0 if squares leave that range. Both are NaN if the extremes alone were read, as for the results of operators;
    the sum of a gradient is NaN too.
    """

    min: float
    max: float
    sum: float
    norm: float
    count: int

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else math.nan

    @property
    def has_nan(self) -> bool:
        return self.word == "NaN"

    @property
    def is_finite(self) -> bool:
        return not self.word

    @property
    def is_norm_beyond(self) -> bool:
        """Whether the squares of finite numbers left the range, so that the norm is not known."""
        reach = max(abs(self.min), abs(self.max))
        return self.is_finite and self.count > 0 and (math.isinf(self.norm) or (self.norm == 0 < reach))

    @property
    def is_odd(self) -> bool:
        """Whether there is a NaN, or an Inf, or nothing but -Inf; -Inf next to finite numbers is a mask."""
        return self.count > 0 and (math.isnan(self.min) or math.isinf(self.max))

    @property
    def word(self) -> str:
        """ "NaN", "Inf", "−Inf", or empty for finite numbers."""
        if not self.count:
            return ""
        return "NaN" if math.isnan(self.min) else "Inf" if self.max == math.inf else "−Inf" * (self.min == -math.inf)

    def __repr__(self) -> str:
        return wording.line_of("Figures", f"of {self.count:,}", (), wording.figures_text(self))


@dataclass(slots=True, eq=False)
class Value:
    """One state of a tensor, shared by all calls that used or returned it in this state.

    Attributes
    ----------
    maker : int or None
        Index of the finest call that returned it; None if it came from outside of all calls.
    relation : str
        Relation to the inputs of its maker: "new", "view" or "in place"; "buffer" for a buffer.
    figures : Figures or None
        None if the values were not read; `note` has the reason.
    sample : sequence of float
        Up to 256 elements at even distances.
    grad, grad_order : Figures or None, int
        The first gradient that was not finite, else the last; and the gradients before it.
    tensor : torch.Tensor or None
        A copy on the host, if `keep` asked for it.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool = False
    maker: int | None = None
    relation: str = ""
    figures: Figures | None = None
    sample: Sequence[float] = ()
    grad: Figures | None = None
    grad_order: int = -1
    note: str = ""
    tensor: Any = field(default=None, repr=False)

    @property
    def is_odd(self) -> bool:
        return self.figures is not None and self.figures.is_odd

    @property
    def word(self) -> str:
        return "" if self.figures is None else self.figures.word

    def __repr__(self) -> str:
        text = self.note if self.figures is None else wording.figures_text(self.figures)
        return wording.line_of("Value", wording.shape_text(self), (self.relation,), text)


@dataclass(slots=True, eq=False)
class Call:
    """One call of a module or an operator, or the block itself, which is call 0.

    Attributes
    ----------
    index, ended : int
        Its places in the orders of begins and ends: ``run[index]``; `ended` is -1 if it did not end.
    kind, phase, status : str
        "block", "module" or "operator"; "forward", "recomputed", "backward" or "optimizer"; "returned" or "raised".
    name, code : str
        Name of the module as in `tnp.weights`, or of the operator; and the expression of the module, if it is known.
    nth : int
        Number of this call among the calls of the same module, from 0.
    parent : int or None
        Index of the innermost call around it; in a backward, of the module call that made the node. None for the block.
    source : SourceLine or None
        Innermost line outside of torch that called it; in a backward, the line of the forward operator.
    inputs, outputs, params : dict of str to Value
        Values by path: ``[0]``, ``['mask']``, empty for the result itself, the name for a parameter or buffer.
    overwrote : tuple of Value
        States that an operator wrote over.
    asked_for : str
        "NaN" or "Inf" if an argument of the operator was that number.
    forward : int or None
        In a backward, index of the forward operator whose node ran; `detail` is the name of the node if there is none.
    detail : str
        A further fact, such as "2 rows of its input were -Inf throughout".
    zero_units : tuple of int or None
        For ReLU and ReLU6: units that were 0 at all positions, units, positions.
    """

    index: int
    kind: str
    name: str = ""
    class_name: str = ""
    code: str = ""
    nth: int = 0
    parent: int | None = None
    ended: int = -1
    phase: str = FORWARD
    status: str = LEFT
    error: str = ""
    source: SourceLine | None = None
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    params: dict[str, Value] = field(default_factory=dict)
    overwrote: tuple[Value, ...] = ()
    asked_for: str = ""
    forward: int | None = None
    detail: str = ""
    zero_units: tuple[int, int, int] | None = None

    @property
    def title(self) -> str:
        """``layers.3 (Linear)``, the class of a model without a name, `` `softmax` ``, or "the cell"."""
        if self.kind == BLOCK:
            return THE_CELL
        if self.kind == OPERATOR:
            return f"`{self.name.lstrip('_')}`"
        nth = f", call {self.nth + 1:,}" if self.nth else ""
        return f"{self.name} ({self.class_name}{nth})" if self.name else f"{self.class_name}{nth}"

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        facts = [fact for fact in (self.phase, self.status) if fact not in (FORWARD, RETURNED)]
        sides = [wording.shape_text(next(iter(side.values()))) for side in (self.inputs, self.outputs) if side]
        words = [one.word for one in self.outputs.values() if one.is_odd]
        text = ", ".join((*filter(None, (" → ".join(sides),)), *words[:1]))
        return wording.line_of("Call", self.title, (*facts, cut(self.error, 100)), text)


@dataclass(slots=True)
class Gradient:
    """Gradient of a parameter of a called model: the first that was not finite, else the last.

    `figures` is None if none came. `order` counts the gradients before it. `held` has the figures of `.grad` when the
    first one came, and is None if `.grad` was None.
    """

    name: str
    figures: Figures | None = None
    order: int = -1
    held: Figures | None = None
    is_held_at_end: bool = False
    note: str = ""


def add_gradient(target: Value | Gradient, figures: Figures, order: int) -> None:
    """Give a value or a parameter a gradient that came, unless it had one that was not finite."""
    if isinstance(target, Gradient):
        if target.figures is None or target.figures.is_finite:
            target.figures, target.order = figures, order
    elif target.grad is None or target.grad.is_finite:
        target.grad, target.grad_order = figures, order


@dataclass(slots=True)
class Step:
    """Step of an optimizer: calls begun before it, its parameters, and those with a gradient."""

    class_name: str
    source: SourceLine | None
    num_calls: int
    num_parameters: int
    num_with_gradient: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a pass and its explanation; the call is ``run[finding.call]``.

    `kind` is "failed", "overwritten", "nan", "inf", "idle step", "added", "no gradient", "near the end", "growth",
    "dead units" or "buffer".
    """

    kind: str
    fact: str
    explanation: str = ""
    call: int | None = None
    source: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.fact}; {self.explanation}" if self.explanation else self.fact

    def __repr__(self) -> str:
        return wording.line_of("Finding", self.kind, (), str(self))


@dataclass(eq=False)
class PassRecord:
    """Everything recorded of a block.

    `buffers` and `finals` have the last call and the state of each buffer, and each parameter after a step, that became
    non-finite. `causes` are the errors behind `error`; `scaler` is the name and scale of an enabled gradient scaler.
    """

    calls: list[Call]
    grads: list[Gradient] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    buffers: dict[str, tuple[int, Value]] = field(default_factory=dict)
    finals: dict[str, tuple[int, Value]] = field(default_factory=dict)
    error: str = ""
    causes: tuple[str, ...] = ()
    scaler: tuple[str, float] | None = None
    has_operators: bool = False
    scope: str = "all modules"
    notes: tuple[str, ...] = ()

    @cached_property
    def _children(self) -> dict[int, list[Call]]:
        children: dict[int, list[Call]] = {}
        for one in self.calls:
            if one.parent is not None:
                children.setdefault(one.parent, []).append(one)
        return children

    @cached_property
    def outermost(self) -> list[str]:
        found = (one for one in self.children(self.calls[0]) if one.kind == MODULE and one.phase == FORWARD)
        return list(dict.fromkeys(one.name for one in found))

    def step_of(self, call: Call) -> int:
        """Return the number of the step that follows a call in a loop of steps, from 1; 0 for none."""
        before = bisect_right(self.steps, call.index, key=lambda one: one.num_calls)
        return before + 1 if before < len(self.steps) > 1 else 0

    def children(self, call: Call) -> list[Call]:
        return self._children.get(call.index, [])

    def modules(self) -> Iterator[Call]:
        return (one for one in self.calls if one.kind == MODULE)

    def operators(self) -> Iterator[Call]:
        return (one for one in self.calls if one.kind == OPERATOR)
