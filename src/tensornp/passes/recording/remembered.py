"""A call, a module and a tensor, as they are remembered while a pass is followed."""

from __future__ import annotations

import keyword
import threading
import weakref
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from tensornp.core.tensor.paths import Path
from tensornp.passes.recording.distributed import own_class, wrapper_of
from tensornp.passes.recording.seen_tensors import Seen
from tensornp.passes.recording.zero_units import Units, is_activation
from tensornp.passes.records import FORWARD, LEFT


class Module:
    """A module that was called or may be: its place in a model, and nothing that keeps it alive.

    `code` is the expression that reaches it from its model, None of one that is no registered part of it.
    """

    __slots__ = (
        "class_name", "code", "is_activation", "is_observer", "is_torch", "name", "num_calls", "reference", "root",
        "wrapper",
    )  # fmt: skip

    def __init__(self, module: torch.nn.Module, root: int, name: str, code: str | None) -> None:
        self.reference = weakref.ref(module)
        self.root, self.name, self.code = root, name, code
        self.class_name, self.wrapper, self.is_torch, self.is_observer, is_activation = facts_of(type(module))
        self.num_calls = 0
        self.is_activation = is_activation and not module.__dict__.get("_modules")

    def parameter(self, name: str) -> torch.Tensor | None:
        """Return the parameter that has a name in the module now, or in one that it holds; None where there is none."""
        module, (*path, last) = self.reference(), name.split(".")
        for step in path:
            module = _held(module, "_modules", step)
        found: torch.Tensor | None = _held(module, "_parameters", last)
        return found


class ClassFacts(NamedTuple):
    """What the class of a module tells: its own name, and by what the gradients of its modules are brought together."""

    class_name: str
    wrapper: str
    is_torch: bool
    is_observer: bool
    is_activation: bool


def facts_of(cls: type) -> ClassFacts:
    """Return facts about a class of modules, computed once."""
    return _FACTS.get(cls) or _FACTS.setdefault(cls, _facts_of(cls))


_FACTS: WeakKeyDictionary[type, ClassFacts] = WeakKeyDictionary()


def _facts_of(cls: type) -> ClassFacts:
    name, module = own_class(cls).__name__, cls.__module__
    is_observer = module.startswith(_OBSERVERS)
    return ClassFacts(name, wrapper_of(cls), module.startswith("torch.nn."), is_observer, is_activation(name))


def _held(module: Any, table: str, name: str) -> Any:
    """Return what a module holds by a name; the tables of a scripted one have no `get`."""
    held = module.__dict__.get(table, {}) if module is not None else {}
    return held[name] if name in held else None  # noqa: SIM401


_OBSERVERS = "torch.ao.quantization.", "torchao.quantization."
_LISTS = (torch.nn.Sequential, torch.nn.ModuleList)


def step_to(parent: Any, step: str) -> str:
    """Return the code that goes from a module to one that it has registered under a name."""
    if issubclass(type(parent), torch.nn.ModuleDict):
        return f"[{step!r}]"
    if step.isdecimal() and any(issubclass(type(parent), one) for one in _LISTS):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and not keyword.iskeyword(step) else f".get_submodule({step!r})"


class Got:
    """A tensor that a call got or gave; `before` is its storage and version as the call began.

    Of a module's own, `since` is what has happened to it since the block began.
    """

    __slots__ = ("before", "is_in_object", "path", "relation", "seen", "since", "tensor")

    def __init__(
        self, path: Path | None, seen: Seen, before: Any = None, relation: str = "", *, is_in_object: bool = False
    ) -> None:
        self.path, self.seen, self.before, self.relation = path, seen, before, relation
        self.is_in_object = is_in_object
        self.tensor: torch.Tensor | None = None
        self.since = ""


def _name_of(thread: int) -> str:
    """Return the name of a thread; `threading.current_thread` would make an object of one that Python has not begun."""
    known = getattr(threading, "_active", {}).get(thread)
    return known.name if known is not None else ""


class Call:
    """A call, from its begin on.

    `frame` is the address of the frame that calls, `task` the number of the backward that recomputes it, and `edges`
    keep the nodes of its parameters until it has used them.
    """

    __slots__ = (
        "attributes",
        "depth",
        "edges",
        "error",
        "frame",
        "has_grads",
        "has_keywords",
        "index",
        "inputs",
        "is_compiled",
        "is_functional",
        "is_grad_enabled",
        "is_kept",
        "is_lazy",
        "is_training",
        "is_within",
        "module",
        "notes",
        "nth",
        "num_gradients",
        "order",
        "outputs",
        "params",
        "parent",
        "phase",
        "source",
        "status",
        "task",
        "thread",
        "thread_name",
        "units",
        "zero_units",
    )  # fmt: skip

    def __init__(self, index: int, module: Module, parent: Call | None, thread: int, frame: int) -> None:
        self.index, self.module, self.thread, self.frame = index, module, thread, frame
        self.parent = parent.index if parent is not None else None
        # Asked for at once: another thread may have the same number later.
        self.thread_name: str = parent.thread_name if parent is not None else _name_of(thread)
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.nth, self.order, self.num_gradients, self.task = module.num_calls, -1, 0, 0
        self.phase, self.status, self.error = FORWARD, LEFT, ""
        self.source: tuple[CodeType, int] | None = None
        self.notes: tuple[str, ...] = ()
        self.inputs: list[Got] = []
        self.outputs: list[Got] = []
        self.params: list[Got] = []
        self.attributes: list[Got] = []
        self.edges: list[Any] = []
        self.zero_units: tuple[int, int, int] | None = None
        self.units: Units | None = None
        self.is_grad_enabled = self.is_training = True
        self.has_grads = self.has_keywords = self.is_compiled = self.is_kept = self.is_lazy = False
        self.is_within: bool = parent is not None and parent.is_within
        self.is_functional: bool = parent is not None and parent.is_functional
