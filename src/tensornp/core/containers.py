"""Trees of dicts, lists and tuples: their leaves by name, and the same tree with other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensornp.errors import BadRequestError

MAX_DEPTH = 100
"""Levels that are followed; a container that holds itself is found before that."""

MAX_KEY = 120
"""Characters of a dictionary key that are shown."""


def map_leaves(
    function: Callable[[Any], Any],
    tree: Any,
    *,
    leaf_type: type | tuple[type, ...],
    _parents: tuple[int, ...] = (),
) -> Any:
    """Return `tree` with `function` applied to each leaf of `leaf_type`, structure and container types kept.

    Raises
    ------
    BadRequestError
        If a container holds itself.
    """
    if isinstance(tree, leaf_type):
        return function(tree)
    if not isinstance(tree, (dict, list, tuple)):
        return tree
    if id(tree) in _parents or len(_parents) >= MAX_DEPTH:
        raise BadRequestError(f"a {type(tree).__name__} that holds itself cannot be converted; pass its parts")
    below = (*_parents, id(tree))

    def convert(child: Any) -> Any:
        return map_leaves(function, child, leaf_type=leaf_type, _parents=below)

    if isinstance(tree, dict):
        return _same_dict(tree, {key: convert(child) for key, child in tree.items()})
    children = [convert(child) for child in tree]
    kind = type(tree)
    if hasattr(kind, "_make"):
        return kind._make(children)
    return children if kind is list else kind(children)


def _same_dict(original: dict[Any, Any], items: dict[Any, Any]) -> dict[Any, Any]:
    if type(original) is dict:
        return items
    copy = original.copy()
    copy.update(items)
    return copy


def _key_text(key: Any) -> str:
    """Return the repr of a plain key, shortened; other keys by their type alone, since a tensor's repr can crash."""
    if type(key) in (str, int, float, bool, bytes, type(None)):
        text = repr(key)
        return text if len(text) <= MAX_KEY else text[: MAX_KEY - 1] + "…"
    return f"<{type(key).__name__}>"


def walk(tree: Any, name: str = "", _parents: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it from `tree`: ``["a"][0].values``, depth first.

    A container that holds itself is yielded as a leaf the second time.
    """
    if not isinstance(tree, (dict, list, tuple)) or id(tree) in _parents or len(_parents) >= MAX_DEPTH:
        yield name, tree
        return
    below = (*_parents, id(tree))
    if isinstance(tree, dict):
        children = ((f"[{_key_text(key)}]", child) for key, child in tree.items())
    else:
        # torch.return_types name their fields for pattern matching only.
        kind = type(tree)
        fields: tuple[str, ...] = getattr(kind, "_fields", None) or getattr(kind, "__match_args__", None) or ()
        children = ((f".{fields[i]}" if i < len(fields) else f"[{i}]", child) for i, child in enumerate(tree))
    for step, child in children:
        yield from walk(child, name + step, below)
