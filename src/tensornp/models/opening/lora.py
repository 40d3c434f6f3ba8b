"""Describe low-rank adapters (LoRA): a weight gains their scaled product."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tensornp.models.entries.entry import WeightEntry, noted

CONFIG = "adapter_config.json"
_HALF = re.compile(r"(?P<stem>.*)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?P<rest>\..*)?", re.DOTALL)
_OTHER = {"A": "B", "B": "A"}


def with_pairs(entries: Iterable[WeightEntry], config: Any = None) -> list[WeightEntry]:
    """Return the weights with notes on the rank and scale of adapter halves.

    `config` is what `adapter_config.json` holds.
    """
    every = list(entries)
    halves: dict[tuple[str, ...], dict[str, WeightEntry]] = {}
    for entry in every:
        # Most names are told by this, in a tenth of the time.
        found = _HALF.fullmatch(entry.name) if ".lora_" in entry.name else None
        if found and entry.shape is not None and len(entry.shape) == 2:
            key = found["stem"], found["embedding"] or "", found["rest"] or ""
            halves.setdefault(key, {})[found["side"]] = entry
    notes: dict[str, str] = {}
    for pair in halves.values():
        rank = _rank_of(pair)
        if rank is None:
            continue
        scale = _scale_of(config, rank)
        said = f"adapter of rank {rank}" + (f", scale {scale:.4g}" if scale is not None else "")
        for side, entry in pair.items():
            other = pair[_OTHER[side]].name.rpartition(".lora_")[2]
            notes[entry.name] = f"{said}, with lora_{other}"
    return [noted(one, notes[one.name], first=False) if one.name in notes else one for one in every] if notes else every


def has_halves(entries: Iterable[WeightEntry]) -> bool:
    """Return whether any weight may be half of an adapter."""
    return any(".lora_" in entry.name for entry in entries)


def _rank_of(pair: Mapping[str, WeightEntry]) -> int | None:
    """Return the common dimension of both halves, None if they do not fit."""
    if len(pair) < 2:
        return None
    first, second = pair["A"].shape, pair["B"].shape
    assert first is not None
    assert second is not None
    return first[0] if first[0] == second[1] else None


def _scale_of(config: Any, rank: int) -> float | None:
    """Return the factor of the product, None if unknown or different for some."""
    if not isinstance(config, dict) or config.get("alpha_pattern"):
        return None
    alpha = config.get("lora_alpha")
    if not isinstance(alpha, (int, float)) or isinstance(alpha, bool) or not rank:
        return None
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") is True else rank)
