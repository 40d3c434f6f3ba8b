"""Open an object in memory: a module, an optimizer, or a tree of these and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance, is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.namespace.caller import name_of
from tensornp.core.tensor.containers import is_container, is_seen, leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.models.entries.relations import relate
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.listing import MAX_LEAVES, Listing
from tensornp.models.live.module import list_module
from tensornp.models.live.optimizer import list_optimizer
from tensornp.models.optimizers import is_saved_optimizer, with_states
from tensornp.models.quantization import with_meaning


@outside_modes
def explorer_of(obj: Any, expression: str, namespace: Mapping[str, Any]) -> WeightsExplorer:
    """Return the explorer of an object in memory; no code of the user runs.

    States of optimizers are named by a module that is in there, or by the namespace. Objects that may hold more are
    among the problems.
    """
    root, listing = expression or name_of(obj, namespace), Listing()
    is_of_module = is_module(obj)
    if is_of_module:
        list_module(listing, obj, "", root)
    elif _is_optimizer(obj):
        list_optimizer(listing, obj, "", root, [_modules_in(namespace)])
    elif is_container(obj) and not is_tensor_like(obj):
        is_of_module = _list_container(listing, obj, root, namespace)
    else:
        raise BadRequestError(
            "weights takes a module, an optimizer, a dictionary or list of tensors, or a path, "
            f"not {an_instance(obj)}{'; tnp.card and tnp.stats take one tensor' if is_tensor_like(obj) else ''}"
        )
    entries, values, problems = listing.named()
    if is_container(obj):
        if not entries and not is_saved_optimizer(obj):
            raise BadRequestError("; ".join((why_nothing(obj), *problems)))
        entries = with_states(obj, entries)
    entries, _ = with_meaning(relate(entries))
    return WeightsExplorer(
        entries, expression or type(obj).__name__, metadata=values, problems=problems,
        is_of_module=is_of_module, classes=listing.classes,
    )  # fmt: skip


def _list_container(listing: Listing, tree: Any, code: str, namespace: Mapping[str, Any]) -> bool:
    has_module = False
    for leaf in listing.leaves(tree, "", code):
        if is_module(leaf.what):
            has_module = True
            list_module(listing, leaf.what, leaf.name, leaf.code)
        elif _is_optimizer(leaf.what):
            own = [(one.name, one.what) for one in Listing().leaves(tree, "", "") if is_module(one.what)]
            list_optimizer(listing, leaf.what, leaf.name, leaf.code, [own, _modules_in(namespace)])
        elif (entry := listing.weight(leaf)) is not None:
            listing.entries.append(entry)
    return has_module


def _is_optimizer(obj: Any) -> bool:
    return issubclass(type(obj), torch.optim.Optimizer)


def _modules_in(namespace: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in namespace.items() if is_module(value)]


def has_weights(obj: Any) -> bool:
    """Return whether a container has weights among its first values."""
    every = islice(leaves(obj), MAX_LEAVES) if is_container(obj) and not is_tensor_like(obj) else ()
    objects = (leaf for _, leaf in every if id(type(leaf)) not in PLAIN_CLASSES)
    return any(is_tensor_like(one) or is_array(one) or is_module(one) or _is_optimizer(one) for one in objects)


def why_nothing(obj: Any) -> str:
    """Return why a container has no weights; an unknown mapping may load its values."""
    name = type(obj).__name__
    if not is_seen(obj):
        return f"a {name} may load or compute what it gives, and is not asked; pass a dict of its values"
    return f"this {name} holds no tensor and no array"
