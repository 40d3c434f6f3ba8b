"""`follow`: record a block of a program, each call in it, and the gradients that come back."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.namespace.caller import names_of_caller, names_of_now
from tensornp.errors import BadRequestError, NoSuchCallError
from tensornp.models.scan.table import frame_of
from tensornp.passes.compare import PassComparison, compared
from tensornp.passes.findings import failed_call, findings_of
from tensornp.passes.finish import finished
from tensornp.passes.names import matches
from tensornp.passes.origin import origin_of
from tensornp.passes.recorder import Recorder
from tensornp.passes.records import BLOCK, Call, Figures, Finding, PassRecord, Step

_COLUMNS = (
    "class_name", "nth", "phase", "status", "inside", "line", "shape", "dtype", "min", "max", "mean", "norm",
    "grad_norm",
)  # fmt: skip


class FollowedPass:
    """The calls of a block: entered by ``with``, once, and a frozen record after the block.

    It holds no tensor and no module, so that it can be kept and pickled.
    """

    def __init__(
        self,
        modules: Sequence[torch.nn.Module] = (),
        options: Mapping[str, Any] | None = None,
        namespace: Mapping[str, Any] | None = None,
    ) -> None:
        self._modules, self._options, self._namespace = tuple(modules), dict(options or {}), namespace
        self._recorder: Recorder | None = None
        self._made: PassRecord | None = None
        self._cell = ""

    def __enter__(self) -> FollowedPass:
        if self._recorder is not None or self.is_over:
            raise BadRequestError("a pass is followed once; call tnp.follow again for each block")
        namespace = self._namespace
        names = names_of_now(sys._getframe()) if namespace is None else lambda: namespace
        self._recorder = Recorder(self._modules, names=names, **self._options)
        self._modules = ()
        self._recorder.begin()
        return self

    def __exit__(self, cls: Any, error: BaseException | None, traceback: Any) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.leave()
            names = names_of_caller(sys._getframe()) if self._namespace is None else self._namespace
            self._namespace = None
            lost = "the record could not be made: {}"
            self._made = first_that_works(
                "the record of a pass",
                lambda: finished(recorder, names, error),
                lambda reason: PassRecord([Call(0, BLOCK)], notes=(lost.format(reason),)),
            )

    @property
    def _record(self) -> PassRecord:
        if self._made is None:
            raise BadRequestError("this pass is not over; read it after its with block")
        return self._made

    @property
    def is_over(self) -> bool:
        return self._made is not None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of modules, in the order of their begin."""
        return tuple(self._record.modules())

    @property
    def operators(self) -> tuple[Call, ...]:
        """The calls of operators, in the order of their begin; none if modules alone were followed."""
        return tuple(self._record.operators())

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __getitem__(self, name: str | int) -> Call:
        """Return the first call of the module `name`, as `tnp.weights` or an expression names it.

        A number is the index of a call, with 0 for the block: ``run[run.origin.call]``.

        Raises
        ------
        NoSuchCallError
            A KeyError, if no such call was recorded.
        """
        calls = self._record.calls
        if isinstance(name, int):
            if not -len(calls) <= name < len(calls):
                raise NoSuchCallError(f"there is no call {name:,}; the last one is call {len(calls) - 1:,}")
            return calls[name]
        for call in self.calls:
            if name in _names_of(call):
                return call
        names = list(dict.fromkeys(one for call in self.calls for one in _names_of(call) if one))
        closest = difflib.get_close_matches(name, names, 1) if isinstance(name, str) else []
        hint = f"; the closest name is {quoted(closest[0])}" if closest else f'; run.find("*{name}*") searches'
        raise NoSuchCallError(f"no call of {quoted(name)} was recorded{hint}")

    def find(self, pattern: str) -> list[Call]:
        """Return the calls of modules whose name or expression matches a pattern with ``*`` and ``?``."""
        return [call for call in self.calls if matches(pattern, _names_of(call))]

    @property
    def findings(self) -> list[Finding]:
        """Everything concluded from the record, the most serious first."""
        return findings_of(self._record)

    @property
    def origin(self) -> Finding | None:
        """The place where the first NaN or infinity was produced; None if all results were finite."""
        return origin_of(self._record)

    @property
    def failed(self) -> Call | None:
        """The innermost call that raised the error of the block, or that Ctrl-C left; None if none did."""
        return failed_call(self._record)

    @property
    def problems(self) -> list[str]:
        """At most five findings as sentences, the most serious first."""
        return [str(finding) for finding in self.findings[:5]]

    @property
    def grads(self) -> dict[str, Figures | None]:
        """Gradients that came for the parameters, by name; None if none came.

        They are read before anything is done to them: for a loss that a gradient scaler has scaled, the scaled ones.
        """
        return {one.name: one.figures for one in self._record.grads}

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of optimizers, in the order of their begin."""
        return tuple(self._record.steps)

    @property
    def complete(self) -> bool:
        """Whether the block ended without an error and everything was recorded."""
        return not self._record.error and not self._record.notes

    def _compared_with(self, other: Any) -> PassComparison:
        """Return the differences from another pass; ``tnp.compare(run_a, run_b)`` is the same."""
        if not isinstance(other, FollowedPass):
            raise BadRequestError(f"other must be a followed pass, got {an_instance(other)}")
        return compared(self._record, other._record)

    def to_frame(self, of: str = "calls") -> Any:
        """Return a pandas DataFrame of calls, each with its first result.

        `of` is "calls", those of modules, or "operators".

        Raises
        ------
        BadRequestError
            If `of` is neither "calls" nor "operators".
        MissingLibraryError
            Without pandas.
        """
        if of not in ("calls", "operators"):
            raise BadRequestError(f"of must be 'calls' or 'operators', got {quoted(of)}")
        calls = self.calls if of == "calls" else self.operators
        return frame_of([call.title for call in calls], _COLUMNS, map(self._row, calls))

    def _row(self, call: Call) -> list[Any]:
        value = next(iter(call.outputs.values()), None)
        figures, grad = getattr(value, "figures", None), getattr(value, "grad", None)
        inside = self._record.calls[call.parent].title if call.parent else None
        return [
            call.class_name or call.name, call.nth, call.phase, call.status, inside, str(call.source or ""),
            *(getattr(value, fact, None) for fact in ("shape", "dtype")),
            *(getattr(figures, fact, None) for fact in ("min", "max", "mean", "norm")), getattr(grad, "norm", None),
        ]  # fmt: skip

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        if not self.is_over:
            return f"<FollowedPass, {'not over yet' if self._recorder is not None else 'not entered yet'}>"
        problems = counted(len(self.problems), "problem") if self.problems else ""
        said = [counted(len(self.calls), "call"), "" if self.complete else "not complete", problems]
        return f"<FollowedPass of {', '.join(filter(None, said))}>"


def _names_of(call: Call) -> tuple[str, ...]:
    return call.name, call.code or call.name, call.title


def follow(
    *modules: torch.nn.Module,
    level: str = "modules",
    only: str | None = None,
    grads: bool = True,
    keep: str | None = None,
    max_calls: int = 100_000,
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
        Follow operators only in these modules (a glob), and in the backward of their results and tensors they keep.
    grads : bool
        Read gradients as well.
    keep : str, optional
        Copy inputs and outputs of the modules that match this pattern to the host, up to 256 MB (`Value.tensor`).
    max_calls : int
        Record this many calls of modules and operators.
    namespace : mapping of str to object, optional
        Names of models. By default, the caller's variables.

    Returns
    -------
    FollowedPass
        A context manager. After the block it has `calls`, ``run[name]``, `find`, `origin`, `grads`, `steps`, `problems`
        and `to_frame`, and shows as a card.

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
    - Keyword arguments are read after the call. Writes through NumPy or ``.data`` are not seen.
    - Each rank reports its own part. A call takes four frames of Python's recursion limit instead of three.

    Examples
    --------
    >>> import tensornp as tnp, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> with tnp.follow(model) as run:
    ...     loss = model(torch.tensor([[1.0, float("nan")]])).sum()
    >>> run["0"].inputs["[0]"].figures.has_nan
    True
    """
    for module in modules:
        if not issubclass(type(module), torch.nn.Module):
            raise BadRequestError(f"modules must be torch modules, got {an_instance(module)}")
    if level not in ("modules", "operators"):
        raise BadRequestError(f"level must be 'modules' or 'operators', got {quoted(level)}")
    for option, pattern in (("only", only), ("keep", keep)):
        if pattern is not None and not isinstance(pattern, str):
            raise BadRequestError(f"{option} must be a pattern for names of modules, got {an_instance(pattern)}")
    if only is not None and level != "operators":
        raise BadRequestError(f"only must be None at level 'modules', got {quoted(only)}; pass level='operators'")
    if isinstance(max_calls, bool) or not isinstance(max_calls, int) or max_calls < 2:
        raise BadRequestError(f"max_calls must be an integer of 2 or more, got {quoted(max_calls)}")
    if namespace is not None and not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace must be a mapping of names to objects, got {an_instance(namespace)}")
    options = {"has_operators": level == "operators", "only": only, "keep": keep, "has_grads": grads}
    return FollowedPass(modules, {**options, "max_calls": max_calls}, namespace)
