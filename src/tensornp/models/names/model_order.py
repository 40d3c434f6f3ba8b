"""The order in which a model has its weights, told from names alone: embeddings first, layers by number, the head last.

A file of safetensors lists names by the alphabet: the head before the layers, and layer 10 before layer 2.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_FIRST = (
    r"shared|tok_embeddings?|embed_tokens|wte|word_embeddings?|token_embeddings?|token_embd",
    r"(cls|mask|dist|reg|class)_(token|embedding)s?|register_tokens",
    r"stem\w*|conv_stem|conv_in|patch_embed\w*|patchify|conv0",
    r"bn0",
    r"wpe|pos_embed\w*|embed_positions|position\w*|positional_embedding",
    r"token_type_embeddings|embed\w*|embeddings?_\w+|\w+_embeddings?|rotary\w*|norm_pre|ln_pre|pre_layernorm",
    r"encoder|text_model|features",
)
_LAST = (
    r"decoder",
    r"norm|norm_f|ln_f|ln_final|ln_post|fc_norm|head_norm|(final_|post_)?layer_?norm|conv_norm_out",
    r"pooler|pool|conv_out|\w+_projection",
    r"proj_out|embed_out|output|out|pre_logits|score|qa_outputs|classifier|fc|heads?|lm_head|\w+_head|head_dist|cls",
)
"""What keys are called that stand before all others of their place, or behind them, each row behind the one above it.

They say so above the layers alone: what a layer has stands as in the file. A number is 0.
"""
_EARLY = tuple(map(re.compile, _FIRST))
_LATE = tuple(map(re.compile, _LAST))
_MAX_PASSES = 8
"""An order in which nothing moves any more is found in two, unless layers differ from each other."""
_MAX_SORTED_AGAIN = 20_000
"""Names that are looked at a second time; of more, that would be felt."""
_DIGITS = re.compile(r"(\d{1,18})", re.ASCII)


def in_model_order(names: Sequence[str]) -> list[int]:
    """Return the numbers of names in the order of the model; what is not known of stands as it does.

    What belongs to one module stays together, and a weight stands before its bias.
    """
    found = list(range(len(names)))
    parts = [_parted(name) for name in names]
    for _ in range(_MAX_PASSES if len(names) <= _MAX_SORTED_AGAIN else 1):
        order = _sorted([parts[i] for i in found])
        found = [found[i] for i in order]
        # What was first seen in a late layer stands, once sorted, behind what the early ones have.
        if order == list(range(len(names))):
            break
    return found


_Parts = tuple[tuple[str, ...], list[int]]
"""The texts of a name, and the numbers between them."""


def _parted(name: str) -> _Parts:
    parts = _DIGITS.split(name)
    return tuple(parts[::2]), list(map(int, parts[1::2]))


def _sorted(every: Sequence[_Parts]) -> list[int]:
    """Return the numbers of names by their keys, of which what is not known of stands where it is first seen."""
    seen: dict[tuple[object, ...], int] = {}
    patterns: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
    keys: list[list[int]] = []
    for texts, numbers in every:
        if texts not in patterns:
            patterns[texts] = _places("0".join(texts), seen)
        places, slots = patterns[texts]
        key = places.copy()
        for slot, number in zip(slots, numbers, strict=True):
            key[slot] = number
        keys.append(key)
    return sorted(range(len(every)), key=keys.__getitem__)


def is_alphabetical(names: Sequence[str]) -> bool:
    """Return whether names are sorted as text, which tells nothing of a model."""
    return all(a <= b for a, b in itertools.pairwise(names))


def _places(pattern: str, seen: dict[tuple[object, ...], int]) -> tuple[list[int], list[int]]:
    """Return of each key how early it stands, where it was first seen, and the slots of its numbers."""
    keys = pattern.split(".")
    places: list[int] = []
    slots: list[int] = []
    at, is_above = -1, True
    for i, key in enumerate(keys, 1):
        is_last = i == len(keys)
        rank = _rank(key) if is_above else 0
        at = seen.setdefault((at, key, is_last), len(seen))
        places += (rank, -1 if is_last and key == "weight" else at)
        for _ in range(key.count("0")):
            slots.append(len(places))
            places.append(0)
        is_above = is_above and (rank != 0 or "0" not in key)
    return places, slots


def _rank(key: str) -> int:
    """Return below which others a key stands: negative of what comes first, positive of what comes last."""
    lower = key.lower()
    for i, pattern in enumerate(_EARLY):
        if pattern.fullmatch(lower):
            return i - len(_EARLY)
    return next((i + 1 for i, pattern in enumerate(_LATE) if pattern.fullmatch(lower)), 0)
