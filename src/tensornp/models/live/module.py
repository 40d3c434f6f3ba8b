"""List the weights of a live module: registered tensors and attributes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import an_instance, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.namespace.members import registered, registered_names, unregistered
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path, expression_of
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import META, WeightEntry, noted, nothing
from tensornp.models.entries.repeated import NotListed
from tensornp.models.entries.tensor import TensorSource, weight_of
from tensornp.models.formats.contents import Contents
from tensornp.models.live.computed import OffloadMap, computed_weights, is_packed, offload_maps
from tensornp.models.live.steps import bracket_of, is_writable, key_of, steps_below
from tensornp.models.names.quoted import shown_name, shown_names, unique_names

MAX_REPEATED = 2000
"""Names that are given to what has one already: of modules that hold a shared one twice, each, there are 2**depth."""
_COMPILED = "_orig_mod"
"""The name under which `torch.compile` keeps a module; it is not shown, and stays in the expression."""
_PARALLEL = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


class _Place(NamedTuple):
    """The place of a module: the displayed names and the path.

    `offloaded` are the maps of accelerate's hooks on the module and above that have its weights.
    """

    names: tuple[str, ...]
    path: Path
    offloaded: tuple[OffloadMap, ...] = ()

    @property
    def code(self) -> str:
        """The expression of the module."""
        return expression_of(self.path)


@outside_modes
def contents_of_module(module: torch.nn.Module, expression: str) -> Contents:
    """Return the weights of a module, the problems, and each module's class by name.

    No code of the user runs.
    """
    walk = _Walk(module)
    found = walk.without_registered(list(walk.entries(module, _Place((), (None, expression)))))
    names = unique_names([entry.name for entry in found])
    entries = [one if one.name == name else one._with_(name=name) for one, name in zip(found, names, strict=True)]
    return Contents(entries, {}, list(_problems(walk, entries)), is_of_module=True, classes=walk.classes)


def _problems(walk: _Walk, entries: list[WeightEntry]) -> Iterator[str]:
    if num_skipped := walk.num_skipped:
        yield (
            f"weights of shared modules have more than {MAX_REPEATED:,} further names; {num_skipped:,} "
            "places of shared modules are not listed"
        )
    if walk.cut:
        yield NotListed(
            f"a list or a dictionary of a module has more than {MAX_HELD:,} values, and is only read in part"
        )
    if num_hidden := walk.num_hidden(entries):
        said = "a module that is an attribute, or lies in a plain list or dictionary, is"
        many = f"{num_hidden:,} modules that are attributes, or lie in plain lists or dictionaries, are"
        yield NotListed(f"{said if num_hidden == 1 else many} not registered, and not listed")
    if walk.packed:
        are, of_it = ("is an object", "it") if len(walk.packed) == 1 else ("are objects", "them")
        said = f"{are} of torch that may hold packed weights; nothing of {of_it} is listed"
        yield NotListed(f"{shown_names([*walk.packed.values()])} {said}")
    yield from map(NotListed, walk.broken)


class _Walk:
    """One walk through a module, depth first and without recursion."""

    def __init__(self, root: Any) -> None:
        self.num_skipped = 0
        self.cut: set[str] = set()
        self.classes: dict[str, str] = {}
        self.broken: list[str] = []
        self._root = root
        self._loose: set[int] = set()
        self._hidden: dict[int, Any] = {}
        self.packed: dict[int, str] = {}
        self._seen: set[int] = set()
        self._num_repeated = 0

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
                    self.num_skipped += 1
                    continue
            self._seen.add(id(one))
            above.add(id(one))
            # A wrapper has the name of its inner module, which counts.
            self.classes[".".join(its_place.names)] = type(one).__name__
            stack.append((one, None))
            if "_hf_hook" in object.__getattribute__(one, "__dict__"):
                its_place = its_place._replace(offloaded=(*offload_maps(one, its_place.code), *its_place.offloaded))
            yield from _own_entries(one, members, its_place)
            if not is_packed(one):
                yield from self._attributes(one, members, its_place)
                stack.extend(reversed(list(self._below(one, members, its_place))))
            yield from _computed_entries(one, its_place)

    def _attributes(self, module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[WeightEntry]:
        """Yield the tensors that the module has not registered; modules are noted."""
        known = {id(child) for _, _, child, _ in members}
        for step, names, brackets, value, has_code in attributes_of(module):
            if value is None:
                self.cut.add(".".join((*place.names, *names)))
            elif is_module(value):
                self._hidden[id(value)] = value
            elif is_packed_object(value):
                self.packed.setdefault(id(value), ".".join((*place.names, *names)))
            elif id(value) not in known:
                code = expression_of((place.path, step)) + brackets if has_code else ""
                entry = weight_of(".".join((*place.names, *names)), "tensor", value, code)
                entry = noted(entry._with_(_saved_as=None), "not registered")
                if brackets:
                    self._loose.add(id(entry._source))
                yield entry

    def _below(self, module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[tuple[Any, _Place]]:
        """Yield the registered modules; others are noted."""
        for name, step, child, kind in members:
            if kind == "" and is_module(child):
                names = place.names if _is_wrapped(module, name) else (*place.names, name)
                offloaded = tuple(one.below(name) for one in place.offloaded if one.reaches_below)
                yield child, _Place(names, (place.path, step), offloaded)
            elif kind == "" and child is not None:
                where = shown_name(".".join((*place.names, name)))
                self.broken.append(f"{where} is {an_instance(child)}, and no module; nothing of it is listed")

    def without_registered(self, found: list[WeightEntry]) -> list[WeightEntry]:
        """Return the weights without those in lists and dictionaries listed elsewhere."""
        if not self._loose:
            return found
        listed = {id(one.tensor) for one in found if id(one._source) not in self._loose}
        return [one for one in found if id(one._source) not in self._loose or id(one.tensor) not in listed]

    def num_hidden(self, entries: list[WeightEntry]) -> int:
        """Return the number of unregistered modules with unlisted weights."""
        left = [one for key, one in self._hidden.items() if key not in self._seen]
        listed = {id(one.tensor) for one in entries} if left else set()
        return sum(hides_weights(one, self._root, listed) for one in left)


def _own_entries(module: Any, members: list[tuple[Any, ...]], place: _Place) -> Iterator[WeightEntry]:
    passing = object.__getattribute__(module, "__dict__").get("_non_persistent_buffers_set", ())
    for name, step, child, kind in members:
        if kind == "":
            continue
        shown = ".".join((*place.names, name))
        code = expression_of((place.path, step))
        if child is None:
            yield nothing(shown, kind, code, "it is registered as None")
            continue
        entry = weight_of(shown, kind, child, code)
        if place.offloaded and entry.location == META:
            entry = place.offloaded[0].weight(entry, name)
        if kind == "buffer" and name in passing:
            entry = noted(entry._with_(_saved_as=None), "not in the state dict")
        yield entry


def _computed_entries(module: Any, place: _Place) -> Iterator[WeightEntry]:
    """Yield the weights that the module unpacks or computes on request."""
    for entry in computed_weights(module, place.code):
        saved_as = tuple(".".join((*place.names, name)) for name in entry._saved_as or ())
        yield entry._with_(name=".".join((*place.names, entry.name)), _saved_as=saved_as)


def _is_wrapped(module: Any, name: str) -> bool:
    """Return whether a module stands for the one that it holds by that name."""
    if name == _COMPILED:
        return any(cls.__name__ == "OptimizedModule" for cls in type(module).__mro__)
    return name == "module" and any(issubclass(type(module), cls) for cls in _PARALLEL)


def parameters_of(model: torch.nn.Module | None) -> list[WeightEntry] | None:
    """Return the parameters in the order of `model.parameters()`, each once.

    A parameter has its first name. The result is None for None; other objects raise BadRequestError.
    """
    if model is None:
        return None
    if not is_module(model):
        raise BadRequestError(f"model is the module whose parameters are optimized, not {an_instance(model)}")
    found: dict[int, WeightEntry] = {}
    for entry in contents_of_module(model, "model").entries:
        if isinstance(entry._source, TensorSource) and entry.kind == "parameter":
            found.setdefault(id(entry.tensor), entry)
    return list(found.values())


MAX_HELD = 10_000
"""Values of one attribute that are looked at."""
_CONTAINERS = frozenset(map(id, (list, tuple, dict, OrderedDict)))


class Attribute(NamedTuple):
    """A tensor, module or packed object in an attribute, and the steps to it.

    `value` is None if a list or a dictionary has more values than are read. A member of a set has no expression.
    """

    step: Any
    names: tuple[str, ...]
    brackets: str
    value: Any
    has_code: bool = True


def attributes_of(module: Any) -> Iterator[Attribute]:
    """Yield tensors, modules and packed objects in the attributes of a module."""
    for step, child in unregistered(module):
        name = step.lstrip(".")
        if _is_meant(child):
            yield Attribute(step, (name,), "", child)
        elif id(type(child)) in _CONTAINERS and not _is_plain(child):
            found = leaves(child, (None, ""))
            for path, leaf in islice(found, MAX_HELD):
                if path is not None and _is_meant(leaf):
                    steps = steps_below(path)
                    yield Attribute(
                        step, (name, *map(key_of, steps)), "".join(map(bracket_of, steps)), leaf, is_writable(steps)
                    )
            if next(found, None) is not None:
                yield Attribute(step, (name,), "", None)


def _is_meant(value: Any) -> bool:
    return is_packed_object(value) or issubclass(type(value), torch.Tensor) or issubclass(type(value), torch.nn.Module)


def is_packed_object(value: Any) -> bool:
    """Return whether a value may hold packed weights; a scripted module does not."""
    return type(value) is torch.ScriptObject


def _is_plain(container: Any) -> bool:
    """Return whether a container has numbers and texts alone, as most attributes do."""
    values: Iterable[Any] = container.values() if isinstance(container, dict) else container
    return PLAIN_CLASSES.issuperset(map(id, map(type, list(values))))


def hides_weights(module: Any, root: Any, listed: set[int]) -> bool:
    """Return whether a module has unlisted weights and does not contain `root`."""
    waiting, seen, hides_any = [module], {id(module)}, False
    while waiting:
        one = waiting.pop()
        if one is root:
            return False
        for _, child, kind in registered(one):
            if kind != "":
                hides_any = hides_any or id(child) not in listed
            elif issubclass(type(child), torch.nn.Module) and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)
        held = (found.value for found in attributes_of(one))
        hides_any = hides_any or any(is_tensor(own) and id(own) not in listed for own in held)
    return hides_any
