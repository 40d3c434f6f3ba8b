"""List the weights of a live module: registered, in attributes, or computed."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.namespace.search import registered, registered_names, unregistered
from tensornp.models.entries.entry import META, NotListed, noted, nothing
from tensornp.models.entries.in_memory import weight_of
from tensornp.models.live.computed import computed_weights, offloaded_weight
from tensornp.models.live.listing import Listing, code_of, joined
from tensornp.models.names.quoted import shown_names

MAX_REPEATED = 2000
"""Names that are given to what has one already: of modules that hold a shared one twice, each, there are 2**depth."""
_COMPILED = "_orig_mod"
"""The name under which `torch.compile` keeps a module; it is not shown, and stays in the expression."""
_NONE = "it is registered as None"
_PARALLEL = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


def list_module(listing: Listing, module: Any, name: str, code: str) -> None:
    """List the weights of a module and the classes below it; runs no code of the user."""
    walk = _Walk(listing, module)
    walk.enter(module, name, code)
    listing.problems += walk.problems()


class _Walk:
    """One walk through a module, depth first."""

    def __init__(self, listing: Listing, root: Any) -> None:
        self._listing, self._root = listing, root
        self._registered = {id(one) for module in modules_below(root) for _, one, kind in registered(module) if kind}
        self._hidden: dict[int, tuple[str, Any]] = {}

    def enter(self, module: Any, name: str, code: str, above: tuple[int, ...] = ()) -> None:
        """List a module and those below it."""
        members = list(registered_names(module))
        if id(module) in above:
            return
        if members and id(module) in self._listing.seen:
            self._listing.num_repeated += len(members)
            if self._listing.num_repeated > MAX_REPEATED:
                return
        self._listing.seen.add(id(module))
        # A wrapper has the name of its inner module, which counts.
        self._listing.classes[name] = module_text(module)
        own = object.__getattribute__(module, "__dict__")
        passing = own.get("_non_persistent_buffers_set", ())
        for key, step, child, kind in members:
            if kind:
                facts = joined(name, key), kind, child, code and code + code_of(step)
                entry = weight_of(*facts) if child is not None else nothing(*facts[:2], facts[3], _NONE)
                if "_hf_hook" in own and entry.location == META:
                    entry = offloaded_weight(entry, module, key, code)
                if kind == "buffer" and key in passing and child is not None:
                    entry = noted(entry._with_(_saved_as=None), "not in the state dict")
                self._listing.entries.append(entry)
        self._list_attributes(module, name, code)
        for entry in computed_weights(module, code):
            self._listing.entries.append(entry._with_(name=joined(name, entry.name)))
        for key, step, child, kind in members:
            if kind == "" and is_module(child):
                its_name = name if _is_wrapper(module, key) else joined(name, key)
                self.enter(child, its_name, code and code + code_of(step), (*above, id(module)))
            elif kind == "" and child is not None:
                self._listing.note(joined(name, key), child)

    def _list_attributes(self, module: Any, name: str, code: str) -> None:
        """List the tensors that are registered nowhere; modules and packed objects are noted."""
        for step, child, _ in unregistered(module):
            for leaf in self._listing.leaves(child, joined(name, step.lstrip(".")), code and code + step):
                if is_module(leaf.what) or type(leaf.what) is torch.ScriptObject:
                    # An object of a script may hold packed weights.
                    self._hidden.setdefault(id(leaf.what), (leaf.name, leaf.what))
                elif issubclass(type(leaf.what), torch.Tensor) and id(leaf.what) not in self._registered:
                    entry = weight_of(leaf.name, "tensor", leaf.what, leaf.code)
                    self._listing.entries.append(noted(entry._with_(_saved_as=None), "not registered"))

    def problems(self) -> Iterator[str]:
        if self._listing.num_repeated > MAX_REPEATED:
            yield f"weights of shared modules have more than {MAX_REPEATED:,} further names, and others are not listed"
        hidden = [one for key, one in self._hidden.items() if key not in self._listing.seen]
        listed = {id(one.tensor) for one in self._listing.entries} if hidden else set()
        names = [name for name, one in hidden if not is_module(one) or self._hides_weights(one, listed)]
        if names:
            are = "is" if len(names) == 1 else "are"
            yield NotListed(f"{shown_names(names)} {are} not registered, and what they hold is not listed")

    def _hides_weights(self, module: Any, listed: set[int]) -> bool:
        """Return whether a module has unlisted weights and does not contain the root."""
        below = list(modules_below(module))
        held = (id(one) for part in below for _, one, kind in registered(part) if kind)
        return all(part is not self._root for part in below) and not listed.issuperset(held)


def modules_below(module: Any) -> Iterator[Any]:
    """Yield a module and those that are registered below it, each once."""
    waiting, seen = [module], {id(module)}
    while waiting:
        one = waiting.pop()
        yield one
        for _, child, kind in registered(one):
            if kind == "" and is_module(child) and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)


def _is_wrapper(module: Any, key: str) -> bool:
    is_compiled = key == _COMPILED and any(cls.__name__ == "OptimizedModule" for cls in type(module).__mro__)
    return is_compiled or (key == "module" and issubclass(type(module), _PARALLEL))


_COMMA = re.compile(r",\s*(?![^()]*\))")
_EQUAL_SIZES = re.compile(r"\((\w+)(?:, \1)*,?\)")
_MAX_TEXT = 60


def module_text(module: torch.nn.Module) -> str:
    """Return the class of a module with its settings, except defaults.

    ``Linear 784 → 256``, ``Dropout p=0.1``. Only code of torch runs.
    """
    cls: Any = type(module)
    name: str = module.original_name if isinstance(module, torch.jit.ScriptModule) else cls.__name__
    if not str(getattr(cls.extra_repr, "__module__", "")).startswith("torch.nn.modules."):
        return name
    try:
        items = [item for item in _COMMA.split(cls.extra_repr(module)) if item and item not in _defaults(cls)]
        for noun in ("features", "channels"):
            if f"in_{noun}" in (own := vars(module)):
                items[:2] = [f"{own[f'in_{noun}']} → {own[f'out_{noun}']}"]
    except Exception:
        # A module may lack the attributes that its class expects.
        return name
    text = ", ".join("no bias" if item == "bias=False" else _EQUAL_SIZES.sub(r"\1", item) for item in items)
    return f"{name} {text}" if 0 < len(text) <= _MAX_TEXT else name


@functools.cache
def _defaults(cls: type[Any]) -> frozenset[str]:
    """Return the settings that a class has by default, as `extra_repr` writes them."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    texts = (f"{one.name}={text}" for one in parameters for text in (one.default, repr(one.default)))
    return frozenset((*texts, "track_running_stats=True"))
