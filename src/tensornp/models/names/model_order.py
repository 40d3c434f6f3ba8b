"""Sort names as in a model: embeddings first, layers by number, the head last.

A safetensors file lists names alphabetically: the head before the layers, and layer 10 before layer 2.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_FIRST = (
    r"shared|(tok|token|word)_?emb\w*|embed_tokens|wte|stem\w*|patch_embed\w*",
    r"wpe|pos|pos_\w+|position\w*|embed_pos\w*",
    r"\w*embed\w*|encoder",
)
_LAST = r"decoder|(final_|post_)?(layer_?)?norm|ln_f|pooler|classifier|fc|head|lm_head|\w+_head|output|score"
"""Modules above the layers that stand before all others, each row before the next one, and behind them."""
_DIGITS = re.compile(r"(\d{1,18})", re.ASCII)


def in_model_order(names: Sequence[str]) -> list[int]:
    """Return the positions of names in model order; unknown modules keep their order."""
    seen: dict[str, int] = {}
    keys = []
    for name in names:
        key: list[tuple[int, int, list[int]]] = []
        above, is_above, parts = "", True, name.split(".")
        for i, part in enumerate(parts, 1):
            rank, pattern, numbers = _facts(part)
            above = f"{above}.{pattern}"
            place = -1 if part == "weight" and i == len(parts) else seen.setdefault(above, len(seen))
            key.append((rank if is_above else 0, place, numbers))
            is_above = is_above and pattern != "0"
        keys.append(key)
    return sorted(range(len(names)), key=keys.__getitem__)


@functools.lru_cache(maxsize=2**16)
def _facts(part: str) -> tuple[int, str, list[int]]:
    """Return the rank of a module (negative: first, 1: last), and its text apart from its numbers."""
    lower = part.lower()
    early = next((i for i, pattern in enumerate(_FIRST) if re.fullmatch(pattern, lower)), None)
    rank = early - len(_FIRST) if early is not None else int(re.fullmatch(_LAST, lower) is not None)
    return rank, _DIGITS.sub("0", part), list(map(int, _DIGITS.findall(part)))
