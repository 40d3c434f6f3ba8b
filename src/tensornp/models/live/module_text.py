"""Describe a module in a few words: ``Linear 784 → 256``, ``Dropout p=0.1``."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

import torch

_COMMA = re.compile(r",\s*(?![^()]*\))")
"""A comma outside of parentheses."""
_EQUAL_SIZES = re.compile(r"\((\w+)(?:, \1)*,?\)")
_SIZES = ("in_features={}", "out_features={}"), ("{}", "{}")
_MAX_TEXT = 60


def module_text(module: torch.nn.Module) -> str:
    """Return the class of a module with its settings, except defaults; runs only code of torch."""
    cls: Any = type(module)
    name: str = module.original_name if isinstance(module, torch.jit.ScriptModule) else cls.__name__
    if not str(getattr(cls.extra_repr, "__module__", "")).startswith("torch.nn.modules."):
        return name
    try:
        items = [item for item in _COMMA.split(cls.extra_repr(module)) if item and item not in _defaults(cls)]
        for noun, forms in zip(("features", "channels"), _SIZES, strict=True):
            sizes = [vars(module).get(f"{way}_{noun}") for way in ("in", "out")]
            if items[:2] == [form.format(size) for form, size in zip(forms, sizes, strict=True)]:
                items[:2] = [" → ".join(map(str, sizes))]
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
