"""`follow`: a block of a program, each call of a module in it, and what came back."""

from __future__ import annotations

import difflib
import fnmatch
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.namespace.caller import names_of_caller, names_of_now
from tensornp.errors import BadRequestError, NoSuchCallError
from tensornp.models.scan.frame import frame_of
from tensornp.passes.recording.module_hooks import ModuleHooks
from tensornp.passes.recording.operator_mode import OperatorMode
from tensornp.passes.recording.optimizer_hooks import OptimizerHooks
from tensornp.passes.recording.recorded import remembered
from tensornp.passes.recording.recorder import Recorder
from tensornp.passes.recording.results import Results
from tensornp.passes.recording.scalers import Scalers
from tensornp.passes.records import Figures, ModuleCall, OperatorCall, OptimizerStep, Origin, PassRecord, Value
from tensornp.passes.verdict.comparison import PassComparison, compared
from tensornp.passes.verdict.failure import failed_call
from tensornp.passes.verdict.origin import first_origin, origin_of
from tensornp.passes.verdict.problems import problems_of

LEVELS = ("modules", "operators")
_WHAT = ("nan", "inf", "nonfinite")
_COLUMNS = ("class_name", "nth", "phase", "status", "shape", "dtype", "min", "max", "mean", "norm", "grad_norm")
_OF_OPERATORS = ("call", "phase", "status", "line", "shape", "dtype", "min", "max")


@dataclass(frozen=True)
class FollowOptions:
    """How a pass is followed."""

    level: str = LEVELS[0]
    only: str | None = None
    has_grads: bool = True
    keep: str | None = None
    max_calls: int = 10_000


_WHAT_IS_MADE = "the record of a pass"
_LOST = PassRecord(notes=("what was followed is lost: the making of its record was interrupted",))


def _untold(reason: str) -> PassRecord:
    return PassRecord(notes=(f"what was followed cannot be told: {reason}",))


def _raised(error: BaseException | None = None) -> tuple[int, int]:
    """Return by what it is told that an error is the one which was handled before, and was not raised again."""
    error = error or sys.exc_info()[1]
    return id(error), id(error.__traceback__ if error is not None else None)


class FollowedPass:
    """What a block of a program did, call by call: entered by ``with``, once, and a frozen record from its end on.

    It holds no tensor and no module, so that it can be kept and pickled.
    """

    def __init__(
        self,
        modules: Sequence[torch.nn.Module] = (),
        options: FollowOptions | None = None,
        namespace: Mapping[str, Any] | None = None,
    ) -> None:
        self._modules, self._options = tuple(modules), options or FollowOptions()
        self._namespace = namespace
        self._recorder: Recorder | None = None
        self._hooks: ModuleHooks | None = None
        self._steps: OptimizerHooks | None = None
        self._scalers: Scalers | None = None
        self._mode: OperatorMode | None = None
        self._results: Results | None = None
        self._made: PassRecord | None = None
        self._making: Callable[[], PassRecord] | None = None
        self._way: Any = self._following()

    def __enter__(self) -> FollowedPass:
        if self._recorder is not None or self.is_over or self._way.gi_frame is None:
            raise BadRequestError("a pass is followed once; call tnp.follow anew for each block")
        next(self._way)
        return self

    def __exit__(self, cls: Any, error: BaseException | None, traceback: Any) -> None:
        self._way.close()

    def _following(self) -> Generator[None, None, None]:
        """Follow until the generator is closed, and in any case no longer."""
        outer = _raised()
        try:
            self._begin(sys._getframe(1))
            yield
        except GeneratorExit as end:
            try:
                self._leave()
                error = end.__context__
                self._end(None if _raised(error) == outer else error, sys._getframe(1))
            except BaseException:
                self._leave()
                self._forget()
                raise
        except BaseException:
            self._leave()
            raise

    def _begin(self, frame: FrameType) -> None:
        options, namespace = self._options, self._names(frame)
        with modes.outside_modes():
            self._results = Results(namespace)
        recorder = self._recorder = Recorder(
            self._modules,
            has_grads=options.has_grads,
            max_samples=options.max_calls,
            only=options.only,
            keep=options.keep,
            names=names_of_now(frame) if self._namespace is None else lambda: namespace,
        )
        recorder.at_begin.note((*self._modules, *namespace.values()))
        self._modules = ()
        hooks = self._hooks = ModuleHooks(recorder)
        self._scalers = Scalers(recorder.tensors)
        self._steps = OptimizerHooks(recorder, self._scalers)
        self._scalers.begin(namespace)
        hooks.install(namespace)
        self._steps.install()
        if options.level == "operators":
            recorder.has_operators = True
            self._mode = OperatorMode(recorder, lambda: hooks.is_in_context)
            self._mode.enter()

    def _leave(self) -> None:
        """Follow no more; to be called once more where it was interrupted."""
        if self._recorder is not None:
            self._recorder.is_over = True
        for one in (self._mode, self._hooks, self._steps):
            if one is not None:
                one.remove()

    def _end(self, error: BaseException | None, frame: FrameType) -> None:
        """Make the record of a block that an error has ended, or none."""
        recorder, hooks, steps, scalers = self._recorder, self._hooks, self._steps, self._scalers
        if recorder is None or hooks is None or steps is None or scalers is None or self._results is None:
            return
        namespace = self._names(frame)
        try:
            scalers.end(namespace)
            with modes.outside_modes():
                recorder.results = self._results.read(namespace, recorder.tensors)
                recorder.compiled_since = hooks.compiled_since(namespace)
            if self._namespace is None and (place := recorder.lines.place_of(frame)):
                recorder.codes.append(place[0])
        finally:
            recorder.end()
        self._making = first_that_works(
            _WHAT_IS_MADE,
            lambda: remembered(recorder, steps.steps, scalers, namespace, error, self._options.max_calls),
            lambda reason: lambda: _untold(reason),
        )
        self._forget()

    def _forget(self) -> None:
        """Let go of what was needed to follow; where nothing has come of it, say so."""
        if self._recorder is not None:
            self._recorder.end()
        self._made = None if self._making else _LOST
        self._recorder = self._hooks = self._steps = self._scalers = None
        self._mode = self._results = self._namespace = None

    def _names(self, frame: FrameType) -> Mapping[str, Any]:
        """Return the names that are seen where the function of a frame was called."""
        return names_of_caller(frame) if self._namespace is None else self._namespace

    @property
    def _record(self) -> PassRecord:
        """All that is known, frozen.

        Raises
        ------
        BadRequestError
            Before the end of the block.
        """
        # In this order: another thread may have made it meanwhile.
        making = self._making
        if self._made is None:
            if making is None:
                raise BadRequestError("this pass is not over: it is read once its with block has ended")
            self._made, self._making = first_that_works(_WHAT_IS_MADE, making, _untold), None
        return self._made

    @property
    def is_over(self) -> bool:
        """Whether the block has ended."""
        return self._made is not None or self._making is not None

    @property
    def calls(self) -> tuple[ModuleCall, ...]:
        """The calls of modules, in the order in which they began."""
        return self._record.calls

    @property
    def operators(self) -> tuple[OperatorCall, ...]:
        """The operators in the order in which they were called; none where modules alone were followed."""
        return self._record.operators

    def __len__(self) -> int:
        return len(self._record.calls)

    def __iter__(self) -> Iterator[ModuleCall]:
        return iter(self._record.calls)

    def __getitem__(self, name: str | int) -> ModuleCall:
        """Return the first call of the module `name`, as `tnp.weights` or an expression names it.

        Of a number, the call with that index: ``run[run.first("nan").call]`` is the one in which a NaN was born, and
        `failed` the one that raised. The 24th call of a module is ``run.find("layers.5.gate")[23]``.

        Raises
        ------
        NoSuchCallError
            A KeyError, where none was followed.
        """
        if isinstance(name, int):
            if not -len(self.calls) <= name < len(self.calls):
                raise NoSuchCallError(f"there is no call {name:,}: {counted(len(self.calls), 'call')} were followed")
            return self.calls[name]
        found = next((call for call in self.calls if _is_named(call, name)), None)
        if found is None:
            names = list(dict.fromkeys(one for call in self.calls for one in (call.name, call.code) if one))
            closest = difflib.get_close_matches(name, names, 1) if isinstance(name, str) else []
            hint = f"; the closest name is {quoted(closest[0])}" if closest else ""
            raise NoSuchCallError(f"no call of {quoted(name)} was followed{hint}")
        return found

    def find(self, pattern: str) -> list[ModuleCall]:
        """Return the calls of modules whose name, or whose expression, fits a pattern with ``*`` and ``?``.

        They stand in the order in which they began: of a name without these, the first is ``run[name]``.
        """
        return [
            call
            for call in self.calls
            if _is_named(call, pattern)
            or fnmatch.fnmatchcase(call.name, pattern)
            or (call.code and fnmatch.fnmatchcase(call.code, pattern))
        ]

    def first(self, what: str = "nan") -> Origin | None:
        """Return where the first NaN, the first infinity or the first of either came from; None where there is none.

        An infinity beside a NaN in one tensor is not known.

        Raises
        ------
        BadRequestError
            If `what` is none of "nan", "inf" and "nonfinite".
        """
        if what not in _WHAT:
            raise BadRequestError(f"what must be 'nan', 'inf' or 'nonfinite', got {quoted(what)}")
        return origin_of(self._record, what)

    @property
    def origin(self) -> Origin | None:
        """Where the first NaN or infinity came from; None if all values were finite."""
        return first_origin(self._record)

    @property
    def failed(self) -> ModuleCall | None:
        """The innermost call that raised what ended the block; None where none did."""
        return failed_call(self._record)

    @property
    def problems(self) -> list[str]:
        """What is worth knowing, in a few sentences, the most serious first."""
        return problems_of(self._record)

    @property
    def grads(self) -> dict[str, Figures | None]:
        """What came back for each parameter that was used, by name; None where nothing did, as for one that was not.

        It is what came, before anything was done to it: of a loss that a gradient scaler has scaled, the scaled one.
        """
        return {one.name: one.figures for one in self._record.grads}

    @property
    def steps(self) -> tuple[OptimizerStep, ...]:
        """The steps that optimizers made, in the order in which they began."""
        return self._record.steps

    @property
    def complete(self) -> bool:
        """Whether the block ended by itself, and the facts of every call are kept."""
        return not self._record.error and not self._record.num_dropped and not self._record.notes

    def _compared_with(self, other: Any) -> PassComparison:
        """Return what differs between this pass and another one; ``tnp.compare(run_a, run_b)`` is the same.

        Raises
        ------
        BadRequestError
            If `other` is no pass, or one of both is not over.
        """
        if not isinstance(other, FollowedPass):
            raise BadRequestError(
                f"a pass that was followed is compared with another one, not with {an_instance(other)}"
            )
        return compared(self._record, other._record)

    def to_frame(self, of: str = "calls") -> Any:
        """Return a pandas DataFrame of the calls, or of the "operators", each with its first result.

        Raises
        ------
        BadRequestError
            If `of` is neither "calls" nor "operators".
        MissingLibraryError
            Without pandas.
        """
        if of == "calls":
            return frame_of([call.title for call in self.calls], _COLUMNS, map(_row, self.calls))
        if of == "operators":
            return frame_of(
                [one.name for one in self.operators], _OF_OPERATORS, map(self._operator_row, self.operators)
            )
        raise BadRequestError(f"to_frame: of must be 'calls' or 'operators', got {quoted(of)}")

    def _operator_row(self, one: OperatorCall) -> tuple[Any, ...]:
        call = self.calls[one.call].title if one.call is not None else None
        line = str(one.source) if one.source is not None else None
        return call, one.phase, one.status, line, *_facts_of(one.outputs, ("shape", "dtype", "min", "max"))

    def __getstate__(self) -> PassRecord:
        return self._record

    def __setstate__(self, record: PassRecord) -> None:
        FollowedPass.__init__(self)
        self._made = record
        self._way.close()

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        if not self.is_over:
            return f"<FollowedPass, {'not over yet' if self._recorder is not None else 'to be entered by with'}>"
        problems = counted(len(self.problems), "problem") if self.problems else ""
        said = [counted(len(self.calls), "call"), "" if self.complete else "not complete", problems]
        return f"<FollowedPass of {', '.join(filter(None, said))}>"


def _is_named(call: ModuleCall, name: object) -> bool:
    """Return whether `name` is that of the module that was called."""
    return isinstance(name, str) and name in (call.name, call.code)


def _row(call: ModuleCall) -> tuple[Any, ...]:
    facts = ("shape", "dtype", "min", "max", "mean", "norm", "grad_norm")
    return call.class_name, call.nth, call.phase, call.status, *_facts_of(call.outputs, facts)


def _facts_of(outputs: Sequence[Value], facts: Iterable[str]) -> Iterator[Any]:
    """Yield what is known of the first of some results."""
    value = outputs[0] if outputs else None
    return (getattr(value, fact, None) for fact in facts)


def follow(
    *modules: torch.nn.Module,
    level: str = "modules",
    only: str | None = None,
    grads: bool = True,
    keep: str | None = None,
    max_calls: int = 10_000,
    namespace: Mapping[str, Any] | None = None,
) -> FollowedPass:
    """Record the calls of modules in a ``with`` block, and the gradients that come back.

    Parameters
    ----------
    *modules : torch.nn.Module
        Modules to follow with their submodules, in any thread. By default, all modules that this thread calls.
    level : {"modules", "operators"}
        "operators" also records each operator of this thread, with its line.
    only : str, optional
        Follow operators only in these modules: a glob pattern for their names.
    grads : bool
        Read gradients as well.
    keep : str, optional
        Copy inputs and outputs of the modules that match this pattern to the host, up to 256 MB (`Value.tensor`).
    max_calls : int
        Keep all facts of this many calls: the first half, the last half, and all that failed or were not finite.
    namespace : mapping of str to object, optional
        Names of models. By default, the caller's variables.

    Returns
    -------
    FollowedPass
        A context manager. After the block it has `calls`, ``run[name]``, `find`, `grads`, `steps`, `problems` and
        `to_frame`, and shows as a card.

    Raises
    ------
    BadRequestError
        If an argument has the wrong type or value.

    Notes
    -----
    - Results are unchanged to the last bit. Global hooks are removed at the end of the block.
    - Cost: three reads of each value, gradient and weight; with operators, one more for each result.
    - Memory: 16 bytes per value and 1 KiB per sample on the device, about 2 KiB per call on the host.
    - Compiled and scripted modules are one call. A module compiled in the block is compiled once more after it.
    - Writes through NumPy or ``.data`` are not seen. Each rank reports only its own part.
    - Python's recursion limit is reached earlier: a nested call takes four frames instead of three.

    Examples
    --------
    >>> import tensornp as tnp, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> with tnp.follow(model) as run:
    ...     loss = model(torch.tensor([[1.0, float("nan")]])).sum()
    >>> run.first("nan").phase
    'before the pass'
    """
    for module in modules:
        if not issubclass(type(module), torch.nn.Module):
            raise BadRequestError(f"follow takes modules, not {an_instance(module)}")
    if level not in LEVELS:
        raise BadRequestError(f"level is 'modules' or 'operators', not {quoted(level)}")
    for option, pattern in (("only", only), ("keep", keep)):
        if pattern is not None and not isinstance(pattern, str):
            raise BadRequestError(f"{option} is a pattern for the names of modules, not {an_instance(pattern)}")
    if only is not None and level != "operators":
        raise BadRequestError("only says inside which modules operators are followed: pass level='operators' with it")
    if isinstance(max_calls, bool) or not isinstance(max_calls, int) or max_calls < 2:
        raise BadRequestError(f"max_calls is an integer from 2 on, not {quoted(max_calls)}")
    if namespace is not None and not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace is a mapping of names to objects, not {an_instance(namespace)}")
    return FollowedPass(modules, FollowOptions(level, only, bool(grads), keep, max_calls), namespace)
