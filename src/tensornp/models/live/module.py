"""List the weights of a live module: registered tensors and attributes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.namespace.members import registered, registered_names, unregistered
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path, expression_of
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import META, NotListed, WeightEntry, noted, nothing
from tensornp.models.entries.in_memory import TensorSource, weight_of
from tensornp.models.formats.contents import Contents
from tensornp.models.live.computed import OffloadMap, computed_weights, offload_maps, packed_class
from tensornp.models.live.module_text import module_text
from tensornp.models.live.steps import bracket_of, is_writable, key_of, steps_below
from tensornp.models.names.quoted import shown_name, shown_names, unique_names

MAX_REPEATED = 2000
"""Names that are given to what has one already: of modules that hold a shared one twice, each, there are 2**depth."""
MAX_HELD = 10_000
"""Values of one attribute that are looked at."""
_COMPILED = "_orig_mod"
"""The name under which `torch.compile` keeps a module; it is not shown, and stays in the expression."""
_PARALLEL = frozenset(map(id, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)))
_CONTAINERS = frozenset(map(id, (list, tuple, dict, OrderedDict)))


class _Place(NamedTuple):
    """The displayed names and the path of a module, and the hooks of accelerate that have its weights."""

    names: tuple[str, ...]
    path: Path
    offloaded: tuple[OffloadMap, ...] = ()

    def shown(self, *names: str) -> str:
        return ".".join((*self.names, *names))


@outside_modes
def contents_of_module(module: torch.nn.Module, expression: str) -> Contents:
    """Return the weights of a module, the problems, and the classes by name; runs no code of the user."""
    walk = _Walk()
    found = walk.without_registered(list(walk.entries(module, _Place((), (None, expression)))))
    names = unique_names([entry.name for entry in found])
    entries = [one if one.name == name else one._with_(name=name) for one, name in zip(found, names, strict=True)]
    return Contents(entries, {}, list(walk.problems(module, entries)), is_of_module=True, classes=walk.classes)


class _Walk:
    """One walk through a module, depth first and without recursion."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self._num_skipped = self._num_repeated = 0
        self._is_cut = False
        self._broken: list[str] = []
        self._loose: set[int] = set()
        self._hidden: dict[int, tuple[str, Any]] = {}
        self._seen: set[int] = set()

    def entries(self, module: Any, place: _Place) -> Iterator[WeightEntry]:
        """Yield each weight."""
        above: set[int] = set()
        stack: list[tuple[Any, _Place | None]] = [(module, place)]
        while stack:
            one, its_place = stack.pop()
            if its_place is None:
                above.remove(id(one))
                continue
            if id(one) in above:
                continue
            members = list(registered_names(one))
            if members and id(one) in self._seen:
                self._num_repeated += len(members)
                if self._num_repeated > MAX_REPEATED:
                    self._num_skipped += 1
                    continue
            self._seen.add(id(one))
            above.add(id(one))
            # A wrapper has the name of its inner module, which counts.
            self.classes[its_place.shown()] = module_text(one)
            stack.append((one, None))
            code = expression_of(its_place.path)
            if "_hf_hook" in object.__getattribute__(one, "__dict__"):
                its_place = its_place._replace(offloaded=(*offload_maps(one, code), *its_place.offloaded))
            yield from _own_entries(one, members, its_place)
            if not packed_class(one):
                yield from self._attributes(one, members, its_place)
                stack.extend(reversed(list(self._below(one, members, its_place))))
            for entry in computed_weights(one, code):
                saved_as = tuple(map(its_place.shown, entry._saved_as or ()))
                yield entry._with_(name=its_place.shown(entry.name), _saved_as=saved_as)

    def _attributes(self, module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[WeightEntry]:
        """Yield the tensors that the module has not registered; modules and packed objects are noted."""
        known = {id(child) for _, _, child, _ in members}
        for step, child in unregistered(module):
            found: Iterator[tuple[Any, Any]] = iter([((None, ""), child)])
            is_container = id(type(child)) in _CONTAINERS
            if is_container:
                values: Iterable[Any] = child.values() if isinstance(child, dict) else child
                if PLAIN_CLASSES.issuperset(map(id, map(type, list(values)))):
                    # Most have numbers and texts alone.
                    continue
                found = leaves(child, (None, ""))
            for path, value in islice(found, MAX_HELD):
                steps = steps_below(path) if is_container and path is not None else []
                name = place.shown(step.lstrip("."), *map(key_of, steps))
                if is_module(value) or type(value) is torch.ScriptObject:
                    # An object of a script may hold packed weights.
                    self._hidden.setdefault(id(value), (name, value))
                elif issubclass(type(value), torch.Tensor) and id(value) not in known:
                    code = expression_of((place.path, step)) + "".join(map(bracket_of, steps))
                    entry = weight_of(name, "tensor", value, code if is_writable(steps) else "")
                    entry = noted(entry._with_(_saved_as=None), "not registered")
                    if steps:
                        self._loose.add(id(entry._source))
                    yield entry
            self._is_cut |= next(found, None) is not None

    def _below(self, module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[tuple[Any, _Place]]:
        """Yield the registered modules; others are noted."""
        for name, step, child, kind in members:
            if kind == "" and is_module(child):
                bases = type(module).__mro__
                is_compiled = name == _COMPILED and any(cls.__name__ == "OptimizedModule" for cls in bases)
                is_wrapped = is_compiled or (name == "module" and any(id(cls) in _PARALLEL for cls in bases))
                above = (one for one in place.offloaded if one.reaches_below)
                offloaded = tuple(one._replace(prefix=f"{one.prefix}{name}.") for one in above)
                yield child, _Place(place.names if is_wrapped else (*place.names, name), (place.path, step), offloaded)
            elif kind == "" and child is not None:
                said = f"{shown_name(place.shown(name))} is {an_instance(child)}, and no module"
                self._broken.append(f"{said}; nothing of it is listed")

    def without_registered(self, found: list[WeightEntry]) -> list[WeightEntry]:
        """Return the weights without those in lists and dictionaries listed elsewhere."""
        if not self._loose:
            return found
        listed = {id(one.tensor) for one in found if id(one._source) not in self._loose}
        return [one for one in found if id(one._source) not in self._loose or id(one.tensor) not in listed]

    def problems(self, root: Any, entries: list[WeightEntry]) -> Iterator[str]:
        if self._num_skipped:
            said = f"weights of shared modules have more than {MAX_REPEATED:,} further names"
            yield f"{said}; {self._num_skipped:,} places of shared modules are not listed"
        if self._is_cut:
            yield NotListed(f"a list or dictionary of a module has more than {MAX_HELD:,} values, and is read in part")
        listed = {id(one.tensor) for one in entries} if self._hidden else set()
        left = [(name, one) for key, (name, one) in self._hidden.items() if key not in self._seen]
        hidden = [name for name, one in left if not is_module(one) or _hides_weights(one, root, listed)]
        if hidden:
            are = "is" if len(hidden) == 1 else "are"
            yield NotListed(f"{shown_names(hidden)} {are} not registered, and what they hold is not listed")
        yield from map(NotListed, self._broken)


def _own_entries(module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[WeightEntry]:
    passing = object.__getattribute__(module, "__dict__").get("_non_persistent_buffers_set", ())
    for name, step, child, kind in members:
        if kind == "":
            continue
        code = expression_of((place.path, step))
        if child is None:
            yield nothing(place.shown(name), kind, code, "it is registered as None")
            continue
        entry = weight_of(place.shown(name), kind, child, code)
        if place.offloaded and entry.location == META:
            entry = place.offloaded[0].weight(entry, name)
        if kind == "buffer" and name in passing:
            entry = noted(entry._with_(_saved_as=None), "not in the state dict")
        yield entry


def _hides_weights(module: Any, root: Any, listed: set[int]) -> bool:
    """Return whether a module has unlisted weights and does not contain `root`."""
    waiting, seen, hides_any = [module], {id(module)}, False
    while waiting:
        one = waiting.pop()
        if one is root:
            return False
        for _, child, kind in registered(one):
            if kind != "":
                hides_any = hides_any or id(child) not in listed
            elif is_module(child) and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)
    return hides_any


def parameters_of(model: torch.nn.Module | None) -> list[WeightEntry] | None:
    """Return the parameters in the order of `model.parameters()`, each once; None for None."""
    if model is None:
        return None
    if not is_module(model):
        raise BadRequestError(f"model must be the module whose parameters are optimized, got {an_instance(model)}")
    found: dict[int, WeightEntry] = {}
    for entry in contents_of_module(model, "model").entries:
        if isinstance(entry._source, TensorSource) and entry.kind == "parameter":
            found.setdefault(id(entry.tensor), entry)
    return list(found.values())
