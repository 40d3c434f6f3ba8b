"""Find tensors in a module's attributes, plain lists and dictionaries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.namespace.members import registered, unregistered
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES
from tensornp.models.live.steps import bracket_of, is_writable, key_of, steps_below

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
