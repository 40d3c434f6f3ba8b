"""List the weights of modules, optimizers and containers in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import GATHERED, gathered_addresses, is_strided, storage_address
from tensornp.core.namespace.caller import name_of
from tensornp.core.tensor.containers import is_container, is_seen
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Contents


def explorer_of(
    obj: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> WeightsExplorer:
    """Return the explorer of an object in memory, which has a name or an expression."""
    from tensornp.models.live.module import contents_of_module, parameters_of
    from tensornp.models.live.optimizer import contents_of_optimizer, modules_in, names_in
    from tensornp.models.live.state_dict import contents_of_tree

    root = expression or name_of(obj, namespace)
    if issubclass(type(obj), torch.nn.Module):
        found = contents_of_module(obj, root or "model")
        return _explorer(obj, expression, found, _related(found.entries))
    if issubclass(type(obj), torch.optim.Optimizer):
        own = root or "optimizer", model, lambda one: names_in(one, modules_in(namespace))
        found = contents_of_optimizer(obj, *own)
        return _explorer(obj, expression, found, found.entries)
    if is_container(obj) and not is_tensor_like(obj):
        from tensornp.models.optimizers import with_names

        found = contents_of_tree(obj, root or "state_dict", model, namespace)
        if not found.entries and not found.optimizers:
            raise BadRequestError("; ".join((why_nothing(obj), *found.problems)))
        entries, why = with_names(found.entries, found.optimizers, parameters_of(model))
        problems = [f"the states are not named by this model, {one}" for one in why if one]
        return _explorer(obj, expression, found, _related(entries), problems)
    raise BadRequestError(
        "weights takes a module, an optimizer, a dictionary or list of tensors, or a path, "
        f"not {an_instance(obj)}{'; tnp.card and tnp.stats take one tensor' if is_tensor_like(obj) else ''}"
    )


def _explorer(
    obj: Any, expression: str, found: Contents, entries: list[WeightEntry], problems: Sequence[str] = ()
) -> WeightsExplorer:
    return WeightsExplorer(
        entries, expression or type(obj).__name__, metadata=found.metadata, problems=[*found.problems, *problems],
        is_of_module=found.is_of_module, classes=found.classes,
    )  # fmt: skip


def _related(entries: list[WeightEntry]) -> list[WeightEntry]:
    """Return the weights with ties, packed codes and pairs of adapters noted."""
    from tensornp.models.quantization.layouts import with_packed, with_pairs
    from tensornp.models.storage.relations import relate

    return with_pairs(with_packed(relate(_with_gathered(entries))))


@outside_modes
def _with_gathered(entries: Iterable[WeightEntry]) -> list[WeightEntry]:
    addresses = gathered_addresses()
    if not addresses:
        return list(entries)
    return [noted(one, GATHERED, first=False) if _lies_in(one, addresses) else one for one in entries]


def _lies_in(entry: WeightEntry, addresses: set[int]) -> bool:
    return is_strided(entry.tensor) and storage_address(entry.tensor) in addresses


def why_nothing(obj: Any) -> str:
    """Return why a container has no weights; an unknown mapping may load its values."""
    name = type(obj).__name__
    if not is_seen(obj):
        return f"a {name} may load or compute what it gives, and is not asked; pass a dict of its values"
    return f"this {name} holds no tensor and no array"
