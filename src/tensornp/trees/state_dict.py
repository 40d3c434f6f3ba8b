"""The weights of dictionaries and lists of tensors, nested as checkpoints are: a name joins the keys with dots."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import Path, expression_of, is_plain_value, key_text
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.trees.array_entry import ArrayEntry
from tensornp.trees.entry import WeightEntry
from tensornp.trees.live_entry import LiveEntry

MAX_SAID = 1000
"""Items that are no tensors, such as the number of the step, that are kept."""


@unnoticed
def entries_of_tree(tree: Any, expression: str) -> tuple[list[WeightEntry], dict[str, Any]]:
    """Return the weights of a dictionary, which `expression` reaches, and by name what it holds besides.

    Nothing of the user's runs; a module inside is left out.
    """
    found = [(path, leaf) for path, leaf in leaves(tree, (None, expression)) if path is not None]
    keys = [_keys_of(path) for path, _ in found]
    times = Counter(".".join(key) for key in keys)
    entries: list[WeightEntry] = []
    besides: dict[str, Any] = {}
    for (path, leaf), key in zip(found, keys, strict=True):
        name, code = ".".join(key), expression_of(path)
        if times[name] > 1:
            # Two ways to the same name: what tells them apart are the brackets.
            name = code.removeprefix(expression)
        if is_tensor_like(leaf):
            entries.append(LiveEntry(name, _kind_of(leaf), leaf, code))
        elif is_subclass(type(leaf), np.ndarray):
            entries.append(ArrayEntry(name, leaf, code))
        elif is_plain_value(leaf) and len(besides) < MAX_SAID:
            besides[name] = leaf
    return entries, besides


def _kind_of(tensor: Any) -> str:
    return "parameter" if is_subclass(type(tensor), torch.nn.Parameter) else "tensor"


def _keys_of(path: Path | None) -> list[str]:
    """Return the keys that lead to a leaf, without what leads to the root."""
    keys: list[str] = []
    while path is not None and path[0] is not None:
        path, step = path
        if type(step) is tuple:
            keys.append(step[0] if type(step[0]) is str else key_text(step[0]))
        else:
            keys.append(step.strip("[]").lstrip("."))
    return keys[::-1]
