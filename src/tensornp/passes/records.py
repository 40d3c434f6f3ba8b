"""What is known of a pass once it is over: calls, values and figures, with no tensor and no module inside."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.passes import short

CAME_WITH_THE_CALL = "came with the call"
"""What a value is made by that no call that was followed has given."""
PRE_HOOKS, HOOKS = "ran before it, after its inputs were read", "ran after its outputs were read"
"""What a note says of hooks that a program has put on one module."""
UNCOUNTED = "written in a way that torch does not count"
"""The note of a weight that was finite when it was read, and is not, although its version is the same."""
WARNED = "torch may warn of hooks for all modules: they follow it, and go with the block"
"""The note of a compiled module, at whose calls torch looks for such hooks."""
COMPILED = "OptimizedModule"
"""The class of what `torch.compile` makes of a module."""
IN_PLACE = "compiled by Module.compile: compiled code is one call"
"""The note of a module that was compiled in place."""
NOT_CALLED = "of a module that was not called"
"""The note of the gradient of a parameter that was not used, where it is known to have got none."""
HELD = "of a module that was not called: what its .grad holds was not looked at"
"""The note of the gradient of a parameter that has one, which nobody knows to be of this pass."""
IN_ITS_PLACE = "of what took its place in a functional call"
"""The note of the gradient of a tensor with which a module computed instead of its own parameter."""
WRITTEN, PUT_IN = "written in the pass", "put there in the pass"
"""What is known of a weight since the pass began: it is the same one of another version, or another one."""
GIVEN, NOT_SEEN = "given in a functional call", "not seen before"
"""The same of what stands in for a weight, and of one of which nothing is known that was there before."""
UNSET = "nothing was observed yet"
"""The note of a buffer in which an observer of torch's own has infinities until it has observed something."""
NOT_LOOKED_INTO = "not looked into"
"""The end of the note of an object that may hold tensors which nobody sees, behind its class: it has no dtype."""
OF_KEPT_GRAPH = "gradient of a backward with create_graph"
"""The note of a value that got no later gradient, beside those that others got in a backward without."""
BUFFER = "buffer"
UNWRITTEN = "memory that was not written whole"
"""The note of what `torch.empty` gives, and of what was made of it as long as a part may hold what was there before."""
RETURNED, RAISED, STOPPED_EARLY, LEFT = "returned", "raised", "stopped early", "left"
FORWARD, RECOMPUTED, BACKWARD, OPTIMIZER, BEFORE = "forward", "recomputed", "backward", "optimizer", "before the pass"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a program, as it read when the pass was over; `text` is empty where that is not known.

    `cell` is the cell of a notebook that it stands in, ``In[3]``; empty for a file.
    """

    file: str
    line: int
    function: str
    text: str = ""
    cell: str = ""

    @property
    def place(self) -> str:
        """The cell, or the name of the file."""
        return self.cell or self.file.replace(chr(92), "/").rpartition("/")[2]

    def __str__(self) -> str:
        where = f"{self.place} line {self.line}" if self.cell else f"{self.place}:{self.line}"
        return f"{where} `{self.text}`" if self.text else where


@dataclass(frozen=True, slots=True)
class Figures:
    """What one read of a tensor tells: of complex numbers, of their moduli.

    `min` and `max` are NaN if any element is; whether there are infinities beside is not known then. `sum` and `norm`
    are taken in float32 at least, on the tensor's own device; `norm` is NaN for what has none. Both are NaN of what
    operators alone have read or given: the extremes alone were taken.
    """

    min: float
    max: float
    sum: float
    norm: float
    count: int

    @property
    def mean(self) -> float:
        """The mean of all elements; NaN of none."""
        return self.sum / self.count if self.count else math.nan

    @property
    def has_nan(self) -> bool:
        """Whether an element is NaN."""
        return self.count > 0 and math.isnan(self.min)

    @property
    def has_inf(self) -> bool:
        """Whether an element is known to be infinite, which is not looked for beside a NaN."""
        return self.count > 0 and (math.isinf(self.min) or math.isinf(self.max))

    @property
    def is_finite(self) -> bool:
        """Whether every element is finite."""
        return self.count == 0 or (math.isfinite(self.min) and math.isfinite(self.max))

    def __repr__(self) -> str:
        return short.line_of("Figures", f"of {self.count:,}", (), short.figures_told(self))


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a call got or gave; or an object of which it is not known what it holds, without a dtype.

    Attributes
    ----------
    path : str
        Where it stands in the arguments or the result: ``[0]``, ``.logits``, ``['mask']``; empty for the result itself,
        the name for a parameter.
    relation : str
        Of a result to the arguments: "new", "same object", "view" or "in place"; of a module's own, "buffer" if it is
        one; of anything else, empty.
    made_by : str
        The call that gave it, by name, or "came with the call"; `maker` is its index in `FollowedPass.calls`.
    figures : Figures or None
        None where the values were not read: `note` says why.
    sample : tuple of float
        Up to 256 elements at even distances.
    operator : int or None
        The operator that gave it, by its index in `FollowedPass.operators`.
    tensor : torch.Tensor or None
        A copy on the host, of what was to be kept.
    grad : Figures or None
        Of the gradient that came back for it: of several, of the first that is not finite, else of the last.
    is_in_object : bool
        Whether it is an attribute of an object that is no container, or lies below one.
    since : str
        Of a module's own, what is known of it since the pass began: empty where it is as it was, as far as torch counts
        writes; else "written in the pass", "put there in the pass", "given in a functional call" or "not seen before".
    grad_orders : tuple of int
        How many gradients had come before each that came for it, up to that of `grad`.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool = False
    relation: str = ""
    made_by: str = CAME_WITH_THE_CALL
    maker: int | None = None
    figures: Figures | None = None
    sample: tuple[float, ...] = ()
    note: str = ""
    grad: Figures | None = None
    operator: int | None = None
    tensor: Any = field(default=None, compare=False, repr=False)
    is_in_object: bool = False
    since: str = ""
    grad_orders: tuple[int, ...] = field(default=(), compare=False)

    @property
    def min(self) -> float | None:
        """The least element, NaN if any is NaN; None where nothing was read."""
        return self.figures.min if self.figures else None

    @property
    def max(self) -> float | None:
        """The greatest element, NaN if any is NaN; None where nothing was read."""
        return self.figures.max if self.figures else None

    @property
    def mean(self) -> float | None:
        """The mean of all elements; None where nothing was read."""
        return self.figures.mean if self.figures else None

    @property
    def norm(self) -> float | None:
        """The Euclidean norm of all elements; None where nothing was read."""
        return self.figures.norm if self.figures else None

    @property
    def grad_norm(self) -> float | None:
        """The Euclidean norm of what came back for it; None where nothing did."""
        return self.grad.norm if self.grad else None

    @property
    def has_nan(self) -> bool | None:
        """Whether an element is NaN; None where nothing was read."""
        return self.figures.has_nan if self.figures else None

    @property
    def is_finite(self) -> bool | None:
        """Whether every element is finite; None where nothing was read."""
        return self.figures.is_finite if self.figures else None

    def __repr__(self) -> str:
        name = " ".join(filter(None, (self.path, short.shape_told(self))))
        told = self.note if self.figures is None else short.figures_told(self.figures)
        return short.line_of("Value", name, (self.relation,), told)


@dataclass(frozen=True, slots=True)
class ZeroUnits:
    """How many of the units of an activation gave 0 at all of its positions, in one call or in several."""

    num_zero: int
    num_units: int
    num_positions: int


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module.

    Attributes
    ----------
    index : int
        Its place in `FollowedPass.calls`: calls stand in the order in which they began.
    name : str
        The module's, as `tnp.weights` has it; of the model itself, empty.
    class_name : str
        ``Linear``.
    code : str
        The expression that reaches the module in the notebook; empty where none is known.
    nth : int
        Which call of this module it is, from 0 on.
    parent : int or None
        The call inside which it came; `depth` is how many there are above.
    order : int
        When it ended, beside the others: a call that returned later has a greater one.
    phase : str
        "forward", or "recomputed" for what a checkpoint calls again in the backward.
    status : str
        "returned", "raised" (`error` says what), "stopped early" (a checkpoint had what it needed), or "left": it
        neither returned nor raised what torch tells of, as after Ctrl-C.
    source : SourceLine or None
        Where it was called, in the innermost frame outside of torch.
    params : tuple of Value
        The module's own parameters and buffers, as they were before.
    notes : tuple of str
        What could not be seen.
    is_torch : bool
        Whether the class is one of torch's own.
    num_calls : int
        How many calls of this module there were in all.
    zero_units : ZeroUnits or None
        Of an activation with up to 4,096 units, which stand on the last axis, or on axis 1 of four; behind a module
        such as Conv1d or GroupNorm, where its channels are.
    zero_in_all : ZeroUnits or None
        The same over all calls of the module that got what the same module gave: units that were 0 in each of them.
    is_grad_enabled : bool
        Whether autograd recorded where it was called: not under `torch.no_grad`, nor in inference mode.
    is_training : bool
        Whether the module was in ``train()``, not in ``eval()``.
    attributes : tuple of Value
        Tensors of its that are neither parameters nor buffers and were not finite as the block ended: of a call around
        which something else was not, and none that a call has given.
    num_gradients : int
        How many gradients, of values and parameters, had come before it.
    """

    index: int
    name: str
    class_name: str
    code: str = ""
    nth: int = 0
    parent: int | None = None
    depth: int = 0
    order: int = 0
    phase: str = FORWARD
    status: str = RETURNED
    error: str = ""
    source: SourceLine | None = None
    thread: str = ""
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    params: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()
    is_torch: bool = True
    num_calls: int = 1
    zero_units: ZeroUnits | None = None
    is_grad_enabled: bool = True
    is_training: bool = True
    attributes: tuple[Value, ...] = ()
    zero_in_all: ZeroUnits | None = None
    num_gradients: int = 0

    @property
    def is_fine(self) -> bool:
        """Whether it returned, and nothing that it got, gave or was sent back is known not to be finite."""
        values = (*self.inputs, *self.outputs, *self.params)
        found = (figures for one in values for figures in (one.figures, one.grad) if figures is not None)
        return self.status == RETURNED and all(one.is_finite for one in found)

    @property
    def title(self) -> str:
        """The name, or the class of a model that has none."""
        return self.name or self.class_name

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        phase, status = ("" if fact in (FORWARD, RETURNED) else fact for fact in (self.phase, self.status))
        facts = short.nth_told(self.nth), phase, f"{status} {short.text_told(self.error)}".strip()
        told = short.sides_told(self.inputs, self.outputs)
        return short.line_of("ModuleCall", short.class_told(self.name, self.class_name), facts, told)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator.

    Attributes
    ----------
    index : int
        Its place in `FollowedPass.operators`, which stand in the order in which they were called.
    name : str
        As in the schema: ``_softmax``, ``add_``; with the library of what is none of torch's own, ``c10d.allreduce_``.
    call : int or None
        The index of the innermost call of a module inside which it came; of the backward, inside which its forward did.
    phase : str
        "forward", "backward", "recomputed" or "optimizer".
    status : str
        "returned", or "raised" (`error` says what).
    node : str
        In the backward, the node at work, ``SqrtBackward0``; `forward` is the index of the operator that has made it.
    source : SourceLine or None
        The innermost line outside of torch; in the backward, that of the forward.
    asked_for : str
        "nan" or "inf" where a number says so that it was called with, as a mask's does.
    overwrote : tuple of Value
        What lay where it wrote, as far as that was known.
    is_held : bool
        Whether the program held a result still as the block ended, or has read it as a number.
    notes : tuple of str
        What else was counted.
    """

    index: int
    name: str
    call: int | None = None
    phase: str = FORWARD
    status: str = RETURNED
    error: str = ""
    node: str = ""
    forward: int | None = None
    source: SourceLine | None = None
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    overwrote: tuple[Value, ...] = ()
    asked_for: str = ""
    is_held: bool = False
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        phase, status = ("" if fact in (FORWARD, RETURNED) else fact for fact in (self.phase, self.status))
        facts = phase, self.node, f"{status} {short.text_told(self.error)}".strip()
        return short.line_of("OperatorCall", self.name, facts, short.sides_told(self.inputs, self.outputs))


@dataclass(frozen=True, slots=True)
class Gradient:
    """What came back for a parameter; `figures` is None where nothing did, and `note` says what is known of that.

    `order` counts gradients as they came: the backward begins at the loss. `held` are the figures of what `.grad` held
    when it came, and was added to it; None where there was none. `num_backwards` is in how many backwards one came
    since a step of an optimizer: the figures are those of the last, or of the first that is not finite.
    `is_stepped_twice` tells that a step took what an earlier one had taken, since `.grad` was not zeroed between them.
    """

    name: str
    figures: Figures | None
    order: int = -1
    note: str = ""
    held: Figures | None = None
    num_backwards: int = 1
    is_stepped_twice: bool = False

    def __repr__(self) -> str:
        told = short.figures_told(self.figures) if self.figures is not None else self.note or "none"
        return short.line_of("Gradient", self.name, (), told)


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """A step of an optimizer.

    Attributes
    ----------
    class_name : str
        ``Adam``.
    num_calls, num_gradients : int
        How many calls had begun, and how many gradients had come back, when it began.
    source : SourceLine or None
        Where it was made, in the innermost frame outside of torch.
    is_done : bool
        Whether it came to its end.
    spoilt : tuple of (str, Figures)
        Parameters that were finite before it, and not after it: their names, and figures of what they held then.
    frozen : tuple of str
        Parameters that required no gradient, and that it has changed all the same.
    num_inside : int
        How many gradients came back inside it, by its closure.
    num_parameters : int
        How many parameters of modules that had been called the optimizer has.
    has_gradients : bool
        Whether any parameter of the optimizer had a gradient when it began, or may have had one.
    has_lost : bool
        Whether it had none, though gradients had come back for its parameters since they were last stepped.
    after : bytes
        What tells equal extremes of its parameters after it; empty where not all were read.
    """

    class_name: str
    num_calls: int = 0
    num_gradients: int = 0
    source: SourceLine | None = None
    is_done: bool = True
    spoilt: tuple[tuple[str, Figures], ...] = ()
    frozen: tuple[str, ...] = ()
    num_inside: int = 0
    num_parameters: int = 0
    has_gradients: bool = False
    has_lost: bool = False
    after: bytes = b""


@dataclass(frozen=True, slots=True)
class LossScaling:
    """What is known of a gradient scaler that the program can name.

    Attributes
    ----------
    scale : float
        By which it multiplied losses when the block began.
    num_skipped : int
        Steps that it has skipped since, told by the scale, which it lowers by a factor each time.
    was_used : bool
        Whether anything of it has changed in the block: else it is not known to have scaled the loss of this pass.
    will_skip : bool
        Whether it has found what is not finite, and the step was not tried yet.
    is_sole : bool
        Whether no other one was at work, and its scale was the same throughout.
    """

    scale: float
    num_skipped: int = 0
    was_used: bool = True
    will_skip: bool = False
    is_sole: bool = True


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the first value that is not finite came from.

    Attributes
    ----------
    what : str
        "nan", "inf" or "nonfinite", as it was asked for.
    phase : str
        "before the pass", "forward", "backward" or "optimizer".
    name : str
        The module, parameter or input in which it was first seen.
    operator : str
        The operator, where operators were followed.
    inputs_finite : bool or None
        Whether all that went into it was finite; None where that is not known.
    sentence : str
        All of it in one sentence.
    path : str
        Which of the call's values it was.
    call : int or None
        The index of the call.
    operator_index : int or None
        That of the operator, in `FollowedPass.operators`.
    is_exact : bool
        Whether `source` is the very line, or where it was seen; else it only stands in the same function.
    before : Origin or None
        Of a NaN that a module made of an infinity, where that came from.
    """

    what: str
    phase: str
    name: str
    operator: str
    inputs_finite: bool | None
    source: SourceLine | None
    sentence: str
    path: str = ""
    call: int | None = None
    is_exact: bool = True
    operator_index: int | None = None
    before: Origin | None = None

    @property
    def kind(self) -> str:
        """The same as `what`."""
        return self.what

    @property
    def fact(self) -> str:
        """The first clause of `sentence`: where the value came from."""
        return self.sentence.partition("; ")[0]

    @property
    def explanation(self) -> str:
        """The rest of `sentence`; empty if there is none."""
        return self.sentence.partition("; ")[2]

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return short.line_of("Origin", self.what, (self.phase,), self.sentence)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of a pass that is worth knowing: in a sentence, with the name that it is about."""

    kind: str
    name: str
    sentence: str
    figures: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PassRecord:
    """All of a pass.

    Attributes
    ----------
    calls : tuple of ModuleCall
        In the order in which they began.
    grads : tuple of Gradient
        One for each parameter that was used and requires a gradient, and of a model to which a gradient came back, for
        those of modules that it did not call.
    error : str
        What ended the block; empty where nothing did.
    had_backward : bool
        Whether a gradient came back for anything.
    notes : tuple of str
        What could not be followed, in sentences.
    num_dropped : int
        Calls, of modules or of operators, of which only trouble was kept, since there were more than `max_calls`.
    operators : tuple of OperatorCall
        In the order in which they were called; none but inside the modules that match `only`, where that is given.
    has_operators : bool
        Whether operators were followed too.
    causes : tuple of str
        The error that has ended the block, and those of which it came.
    results : tuple of Value
        What the block has bound to names, which stand in `Value.path`: numbers, and what autograd has computed.
    steps : tuple of OptimizerStep
        In the order in which they began.
    scaling : LossScaling or None
        Of a gradient scaler, where one was found.
    passed_by : str
        Why no call was followed, where modules were called.
    has_inference : bool
        Whether a call was made in inference mode.
    backwards : tuple of int
        How many gradients had come before each backward.
    """

    calls: tuple[ModuleCall, ...] = ()
    grads: tuple[Gradient, ...] = ()
    error: str = ""
    had_backward: bool = False
    notes: tuple[str, ...] = ()
    num_dropped: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    operators: tuple[OperatorCall, ...] = ()
    only: str | None = None
    results: tuple[Value, ...] = ()
    causes: tuple[str, ...] = ()
    has_operators: bool = False
    steps: tuple[OptimizerStep, ...] = ()
    scaling: LossScaling | None = None
    passed_by: str = ""
    has_inference: bool = False
    backwards: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return short.line_of("PassRecord", f"of {len(self.calls):,} calls", ())
