"""List parametrized weights, which a module computes at each access.

Listing computes nothing. Reading computes on copies, as a spectral norm writes to its vectors.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.modes import outside_modes, with_overrides
from tensornp.core.memory.footprint import check_parts
from tensornp.core.namespace.members import members_of
from tensornp.core.tensor.paths import is_attribute_name
from tensornp.errors import NoDataError
from tensornp.models.entries.entry import COMPUTED, IN_PARTS, WeightEntry
from tensornp.models.entries.tensor import weight_of
from tensornp.models.live.made import MadeSource, Recipe

_LISTS = "parametrizations"
_OWN = "torch.nn.utils.parametrizations"
_KEEP_SHAPE = ("_SpectralNorm", "_Orthogonal", "_WeightNorm")
"""Those of torch, which are deterministic: as `_WeightNorm`, whose second original has the shape of the weight."""
_HOOKS = {"WeightNorm": "name", "SpectralNorm": "name", "BasePruningMethod": "_tensor_name"}
"""Hooks that compute an attribute before each forward, and what they call its name."""
_SUFFIXES = ("_orig", "_g", "_u", "_v", "_mask")
_NEEDS_RANKS = "it is computed from sharded tensors, which takes all ranks"


def _computed_weight(name: str, code: str, module: Any, holder: str, parametrization: Any) -> WeightEntry:
    """Return a weight that is computed on request from copies of its originals."""
    originals = dict(_originals(parametrization))
    told = _told_by(parametrization, originals)
    shape, dtype = (told.shape, told.dtype) if told is not None else (None, "")
    lives = [weight_of("", "", one, "") for one in originals.values()]
    places = {one.location for one in lives}
    location = places.pop() if len(places) == 1 else ""
    problem = "what it is computed from is on the meta device" if location == "meta" else ""
    if any(one.problem == IN_PARTS for one in lives):
        problem = _NEEDS_RANKS
    source = MadeSource(module, partial(_made, name), Recipe(holder, computed_of, name), location=location)
    note = f"computed from {_LISTS}.{name}.{', '.join(originals)}"
    return WeightEntry(name, COMPUTED, shape, dtype, 0, source, code, note, problem)


def _made(name: str, module: Any) -> Any:
    """Return the current computed weight, with hooks, without changing its originals."""
    lists = dict(_lists_of(module))
    return _computed(lists[name]) if name in lists else None


def is_parametrized(module: Any) -> bool:
    """Return whether a module computes some of its weights."""
    return next(_lists_of(module), None) is not None


def computed_of(module: Any, code: str) -> Iterator[WeightEntry]:
    """Yield the parametrized weights of a module without computing them."""
    for name, parametrization in _lists_of(module):
        own_code = f"{code}.{name}" if is_attribute_name(name) else f"getattr({code}, {name!r})"
        yield _computed_weight(name, own_code, module, code, parametrization)


def computed_by_hooks(module: Any) -> dict[str, str]:
    """Return notes on attributes that pruning and norm hooks compute, by name."""
    held = getattr(module, "__dict__", None) or {}
    found = {}
    for _, hook in members_of(held.get("_forward_pre_hooks")):
        for cls in type(hook).__mro__:
            name = (getattr(hook, "__dict__", None) or {}).get(_HOOKS.get(cls.__name__, ""))
            if type(name) is str and cls.__module__.startswith("torch.nn.utils."):
                tables = (dict(members_of(held.get(table))) for table in ("_parameters", "_buffers"))
                every = {key for table in tables for key in table}
                parts = ", ".join(name + suffix for suffix in _SUFFIXES if name + suffix in every)
                found[name] = f"computed from {parts} at each forward"
    return found


def _lists_of(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names of parametrized weights with their parametrizations."""
    modules: Any = (getattr(module, "__dict__", None) or {}).get("_modules")
    holder = modules.get(_LISTS) if type(modules) in (dict, OrderedDict) else None
    for name, child in (
        members_of((getattr(holder, "__dict__", None) or {}).get("_modules")) if holder is not None else ()
    ):
        if any(cls.__name__ == "ParametrizationList" for cls in type(child).__mro__):
            yield name, child


def _originals(parametrization: Any) -> Iterator[tuple[str, Any]]:
    held = getattr(parametrization, "__dict__", None) or {}
    for table in ("_parameters", "_buffers"):
        yield from ((name, one) for name, one in members_of(held.get(table)) if is_tensor(one))


def _told_by(parametrization: Any, originals: Mapping[str, Any]) -> WeightEntry | None:
    """Return the original with the computed shape and dtype, None if unknown."""
    held = getattr(parametrization, "__dict__", None) or {}
    steps = [type(step) for _, step in members_of(held.get("_modules"))]
    are_own = [_is_own(cls) for cls in steps]
    # Without an inverse the original was the weight, of which torch has made sure that it keeps both.
    are_plain = [not any("right_inverse" in vars(base) for base in cls.__mro__) for cls in steps]
    is_safe = held.get("unsafe") is False
    if not all(own or (plain and is_safe) for own, plain in zip(are_own, are_plain, strict=True)):
        return None
    is_normed = bool(steps) and are_own[0] and steps[0].__name__ == "_WeightNorm"
    name = "original1" if is_normed else "original"
    return weight_of("", "", originals[name], "") if name in originals else None


def _is_own(cls: type) -> bool:
    """Return whether a class of torch keeps the shape and draws no random numbers."""
    return cls.__module__ == _OWN and cls.__name__ in _KEEP_SHAPE


@outside_modes
def _computed(parametrization: Any) -> Any:
    """Return the output of a copied parametrization; restores torch's random state."""
    for one in (*parametrization.parameters(), *parametrization.buffers()):
        # A copy of freed memory would end the process.
        check_parts(one)
    devices = {one.device.index for _, one in _originals(parametrization) if one.device.type == "cuda"}
    with with_overrides(), torch.random.fork_rng(devices=sorted(devices)):
        try:
            made = copy.deepcopy(parametrization)
        except Exception as error:
            why = f"a parametrization that cannot be copied ({error_text(error)}) would be run in place"
            raise NoDataError(f"{why}; compute the weight yourself") from None
        return made()
