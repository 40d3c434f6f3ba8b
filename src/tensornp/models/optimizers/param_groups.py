"""The groups of parameters that optimizers have, and the parameters of a model in the order in which they get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

GROUPS, STATE, PARAMS, NAMES = "param_groups", "state", "params", "param_names"


def params_of(group: Mapping[Any, Any]) -> Sequence[Any]:
    """Return the parameters of a group, or in a state dict the keys of their states."""
    params = group.get(PARAMS)
    return params if isinstance(params, (list, tuple)) else ()


def told_names(group: Mapping[Any, Any]) -> dict[int, str]:
    """Return the names that a group gives to its parameters, where they are as many."""
    told, params = group.get(NAMES), group.get(PARAMS)
    if not isinstance(told, (list, tuple)) or not isinstance(params, (list, tuple)) or len(told) != len(params):
        return {}
    return {j: name for j, name in zip(count(), told) if type(name) is str and name}
