"""Names of modules in the models that a block calls, and expressions that reach them."""

from __future__ import annotations

import fnmatch
import keyword
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from tensornp.core.namespace.caller import name_of
from tensornp.passes.gradients import Awaited


class Root:
    """A model that was given, or is called by no other module; `label` names it next to other models."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.reference, self.class_name = weakref.ref(module), type(module).__name__
        self.has_weights = next(torch.nn.Module.parameters(module), None) is not None
        self.code = self.label = ""


class Known:
    """The place of a module in a model; `code` reaches it from there, None if it is no registered part."""

    def __init__(self, module: torch.nn.Module, root: Root, name: str, code: str | None) -> None:
        self.reference, self.root, self.name, self.code = weakref.ref(module), root, name, code
        self.class_name = type(module).__name__
        self.num_calls = self.first = self.last = 0
        self.parameters: list[Awaited] | None = None
        self.is_kept = self.is_within = False

    @property
    def expression(self) -> str:
        return self.root.code + self.code if self.root.code and self.code is not None else ""


class Names:
    """The modules of a block; one that is not registered gets its class as name, ``layers.0.(Linear)``."""

    def __init__(self, namespace: Callable[[], Mapping[str, Any]], only: str | None, keep: str | None) -> None:
        self.roots: list[Root] = []
        self._namespace, self._only, self._keep = namespace, only, keep
        self._counts: Counter[Any] = Counter()
        self._modules: dict[int, Known] = {}

    def find(self, module: torch.nn.Module) -> Known | None:
        known = self._modules.get(id(module))
        return known if known is not None and known.reference() is module else None

    def called(self) -> Iterator[Known]:
        return (one for one in self._modules.values() if one.num_calls)

    def add_inside(self, module: torch.nn.Module, outer: Known) -> Known:
        return self._add(module, outer.root, joined(outer.name, f"({type(module).__name__})"), None)

    def add_root(self, module: torch.nn.Module) -> Known:
        """Take in a model and its modules."""
        root = Root(module)
        self.roots.append(root)
        self._label(root, self._namespace(), self._counts)
        known = self._add(module, root, "", "")
        found: dict[str, tuple[Any, str]] = {"": (module, "")}
        for name, child in list(torch.nn.Module.named_modules(module))[1:]:
            above, _, step = name.rpartition(".")
            parent, code = found.get(above, (None, ""))
            found[name] = child, code + _step_to(parent, step)
            if self.find(child) is None:
                self._add(child, root, name, found[name][1])
        return known

    def end(self, namespace: Mapping[str, Any]) -> None:
        """Name the models as they are named at the end of the block."""
        self._namespace = dict
        counts: Counter[Any] = Counter()
        for root in self.roots:
            self._label(root, namespace, counts)

    def _add(self, module: torch.nn.Module, root: Root, name: str, code: str | None) -> Known:
        known = self._modules[id(module)] = Known(module, root, name, code)
        names = name or known.class_name, joined(root.label, name), known.expression
        known.is_within = self._only is not None and matches(self._only, names)
        known.is_kept = self._keep is not None and matches(self._keep, names)
        return known

    def _label(self, root: Root, namespace: Mapping[str, Any], counts: Counter[Any]) -> None:
        module = root.reference()
        root.code = name_of(module, namespace) if module is not None else ""
        root.label = root.code or root.class_name
        counts[root.label] += 1
        if (number := counts[root.label]) > 1:
            root.label += f" #{number}"


def matches(pattern: str, names: Iterable[str]) -> bool:
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in names)


def joined(*names: str) -> str:
    return ".".join(filter(None, names))


def _step_to(parent: Any, step: str) -> str:
    """Return the code from a module to one that it has registered under a name."""
    if isinstance(parent, torch.nn.ModuleDict):
        return f"[{step!r}]"
    if step.isdecimal() and isinstance(parent, (torch.nn.Sequential, torch.nn.ModuleList)):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and not keyword.iskeyword(step) else f".get_submodule({step!r})"
