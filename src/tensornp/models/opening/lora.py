"""Describe low-rank adapters (LoRA): a weight gains their scaled product."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from tensornp.models.entries.entry import WeightEntry, noted

CONFIG = "adapter_config.json"
_HALF = re.compile(r"(?P<stem>.*)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?P<rest>\..*)?", re.DOTALL)


def with_pairs(entries: Iterable[WeightEntry], config: Any = None) -> list[WeightEntry]:
    """Return the weights with notes on the rank and scale of adapter halves.

    `config` is what `adapter_config.json` holds.
    """
    every = list(entries)
    halves: dict[tuple[str | None, ...], dict[str, WeightEntry]] = {}
    for entry in every:
        # This excludes most names in a tenth of the time.
        found = _HALF.fullmatch(entry.name) if ".lora_" in entry.name else None
        if found and len(entry.shape or ()) == 2:
            halves.setdefault((found["stem"], found["embedding"], found["rest"]), {})[found["side"]] = entry
    notes: dict[str, str] = {}
    for pair in halves.values():
        first, second = (pair[side].shape if side in pair else None for side in "AB")
        if first and second and first[0] == second[1]:
            scale = _scale_of(config, first[0])
            said = f"adapter of rank {first[0]}" + (f", scale {scale:.4g}" if scale is not None else "")
            for side, other in ("AB", "BA"):
                notes[pair[side].name] = f"{said}, with lora_{pair[other].name.rpartition('.lora_')[2]}"
    return [noted(one, notes[one.name], first=False) if one.name in notes else one for one in every] if notes else every


def has_halves(entries: Iterable[WeightEntry]) -> bool:
    """Return whether any weight may be half of an adapter."""
    return any(".lora_" in entry.name for entry in entries)


def _scale_of(config: Any, rank: int) -> float | None:
    """Return the factor of the product, None if unknown or different for some."""
    if not isinstance(config, dict) or config.get("alpha_pattern"):
        return None
    alpha = config.get("lora_alpha")
    if not isinstance(alpha, (int, float)) or isinstance(alpha, bool) or not rank:
        return None
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") is True else rank)
