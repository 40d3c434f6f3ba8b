"""The names of one shell: what they refer to, whether they may be bound, and IPython's history."""

from __future__ import annotations

import builtins
import gc
import inspect
import keyword
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.text import counted, format_nbytes, quoted
from tensornp.errors import NameTakenError

if TYPE_CHECKING:
    from tensornp.core.memory.identity import TensorReference
    from tensornp.core.memory.storages import Group

MAX_RELEASE_SECONDS = 20.0
"""For a release, which must search all names to the end."""
_IN_HISTORY = re.compile(r"(?:Out|_oh)\[(\d+)\]")


class ShellSession:
    """A shell as the memory of the session knows it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The namespace, including IPython's history."""
        return self._shell.user_ns  # type: ignore[no-any-return]

    @property
    def cell(self) -> str:
        """The cell that runs now: "In[4]"."""
        return f"In[{self._shell.displayhook.prompt_count}]"

    @property
    def source(self) -> str:
        """The source of the cell that runs now; of one that is not stored, that of the last one."""
        return str((self._shell.history_manager.input_hist_parsed or [""])[-1])


def bind(shell: Any, name: str, make: Callable[[], Any], overwrite: bool) -> None:
    """Bind the result of `make` to `name`; raise NameTakenError if the name is invalid or taken."""
    check_name(shell, name)
    if name in shell.user_ns and not overwrite:
        kind = type(shell.user_ns[name]).__name__
        text = f"{name} already names something of type {kind}; press Overwrite to replace it"
        raise NameTakenError(text, can_overwrite=True)
    shell.push({name: make()})


def check_name(shell: Any, name: str) -> None:
    """Raise NameTakenError if `name` is no identifier, or belongs to Python or IPython."""
    check_identifier(name)
    namespace, hidden = shell.user_ns, shell.user_ns_hidden
    is_users = name in namespace and hidden.get(name, hidden) is not namespace[name]
    if name.startswith("__") or (not is_users and (name in hidden or hasattr(builtins, name))):
        raise NameTakenError(f"{name} already names something of Python or IPython; choose another name")


def check_identifier(name: str) -> None:
    """Raise NameTakenError if `name` is no identifier."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise NameTakenError(f"{quoted(name)} is not a valid Python name; choose letters, digits and _")


def likely(shell: Any, reached: str) -> Iterator[Any]:
    """Yield likely tensors of a card: its expression, variables, results of cells."""
    from tensornp.core.namespace.lookup import look_up
    from tensornp.core.namespace.search import history_name

    namespace = shell.user_ns
    if reached:
        with suppress(Exception):
            yield look_up(reached, namespace)
    yield from list(namespace.values())
    yield from list(namespace["_oh"].values()) if history_name(namespace) else []


def suggested(shell: Any, reference: TensorReference, reached: str = "") -> str:
    """Return ``layer_weight_np`` for layer.weight, ``array_np`` for a tensor without a name."""
    names = (name for name, value in list(shell.user_ns.items()) if reference.is_of(value))
    own = reached or next((name for name in names if not name.startswith("_")), "")
    name = re.sub(r"\W+", "_", own).strip("_") + "_np"
    return name if own and name.isidentifier() else "array_np"


def release(shell: Any) -> str:
    """Release objects in the history and in the functions of the last error; return a report.

    Nothing is released if the search for names was not complete, as a name may reach the objects.
    """
    from tensornp.core.lowlevel.modes import outside_modes
    from tensornp.core.memory.extents import nbytes_by_device
    from tensornp.core.memory.identity import freed_test
    from tensornp.core.memory.storages import Survey, history_entry

    with outside_modes():
        survey = Survey(shell.user_ns, MAX_RELEASE_SECONDS)
        if survey.stopped:
            return f"nothing was released: {survey.stopped}; %reset -f out drops all results"
        groups = [one for one in survey.groups if one.nbytes and all(found.is_result for found in one.found)]
        entries = {history_entry(found.path) for group in groups for found in group.found}
        numbers = dict(sorted((int(found[1]), found[0]) for found in map(_IN_HISTORY.fullmatch, entries) if found))
        behind = held_by_last_error({id(found.obj) for group in survey.groups for found in group.found})
        released = [*numbers.values(), *["the locals of the last error"] * bool(behind)]
        groups += behind
        memory = [([freed_test(f.obj) for f in group.found], nbytes_by_device(group.spans)) for group in groups]
        # They hold what is released here.
        del survey, groups, behind
    if not released:
        return "nothing to release: every tensor and array that was found has a name of yours"
    for number in numbers:
        _drop(shell, number)
    for frame in _frames_of_last_error():
        # A generator or a function that waits is still running.
        with suppress(RuntimeError):
            frame.clear()
            # Python 3.12 or older keeps a second dictionary of the locals, which this updates.
            _ = frame.f_locals
    gc.collect()
    freed, kept = Counter[str](), 0
    for tests, nbytes in memory:
        if all(is_freed() for is_freed in tests):
            freed.update(nbytes)
        else:
            kept += sum(nbytes.values())
    came = ", ".join(f"{counted(nbytes, 'byte')} on {device}" for device, nbytes in freed.items() if nbytes)
    still = f"; {format_nbytes(kept)} are still held elsewhere" if kept else ""
    return f"released {', '.join(released)}: {came or 'nothing'} came free{still}"


def held_by_last_error(named: set[int]) -> list[Group]:
    """Return the tensors in the frames of the last error, but not those with these ids."""
    from tensornp.core.lowlevel.attributes import is_tensor
    from tensornp.core.memory.footprint import footprint_of
    from tensornp.core.memory.storages import Found, grouped

    found: list[Found] = []
    for value in (one for frame in _frames_of_last_error() for one in frame.f_locals.values()):
        if is_tensor(value) and id(value) not in named:
            # A tensor without readable memory has nothing to release.
            with suppress(Exception):
                found.append(Found(value, "", (None, None), tuple(footprint_of(value)[1])))
    return grouped(found)


def _frames_of_last_error() -> list[FrameType]:
    """Return the frames of functions in the last error and its causes."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    errors: list[BaseException] = []
    while isinstance(error, BaseException) and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    frames = (frame for one in errors for frame, _ in walk_tb(one.__traceback__))
    return [frame for frame in frames if frame.f_code.co_flags & inspect.CO_OPTIMIZED]


def _drop(shell: Any, number: int) -> None:
    """Drop the result of one cell, with the names that IPython has bound for it."""
    namespace, hook = shell.user_ns, shell.displayhook
    value = namespace.get("_oh", {}).pop(number, None)
    if value is not None and namespace.get(f"_{number}") is value:
        shell.del_var(f"_{number}")
    for under in ("_", "__", "___"):
        held = getattr(hook, under, None)
        # `del_var` has put None there, and has dropped the name.
        if held is None or held is value:
            setattr(hook, under, "")
            namespace.setdefault(under, "")
    # A second table of the names that are IPython's own.
    hidden = shell.user_ns_hidden
    hidden.update({name: "" for name, one in hidden.items() if one is value})
