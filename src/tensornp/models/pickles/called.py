"""What a function reads of its arguments when it is called: what a pickle makes of them later, it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from tensornp.models.pickles.records import Call, Global
from tensornp.models.pickles.tensors import (
    BY_POSITION,
    BY_TYPE,
    MAPPINGS,
    NUM_BEFORE_METADATA,
    PARAMETERS,
    QUANTIZED,
    REBUILT,
    SETS,
    SIZE,
    WRAPPER,
)

_MAX_READ = 10
"""Arguments of a tensor that are read, tensors that are made within each other, and parts of a quantizer."""
_TENSORS = frozenset(Global("torch._utils", name) for name in REBUILT)
_QUANTIZED, _BY_TYPE, _WRAPPER = Global("torch._utils", QUANTIZED), Global(*BY_TYPE), Global(*WRAPPER)
_SEQUENCES = frozenset((*(Global(*names) for names in SETS), Global(*SIZE)))
MAPPING_CLASSES = frozenset(Global(*names) for names in MAPPINGS)
MAKES_TENSOR = frozenset((*_TENSORS, _QUANTIZED, _BY_TYPE, *(Global("torch._utils", name) for name in PARAMETERS)))
ReadBy = Callable[[tuple[Any, ...]], Iterable[Any]]
"""Tells which lists, dictionaries and other mappings among the arguments are looked into."""


def given_to_mapping(func: Global, args: tuple[Any, ...]) -> Mapping[Any, Any] | list[Any] | tuple[Any, ...] | None:
    """Return what a class of mappings takes its items from: a mapping, or pairs; None for another thing."""
    if len(args) != 1 + (func.name == "defaultdict"):
        return None
    given = args[-1]
    if isinstance(given, Call):
        return given.items if type(given.func) is Global and given.func in MAPPING_CLASSES and not given.args else None
    return given if type(given) in (dict, list, tuple) else None


def keys_and_values(given: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> list[Any] | None:
    """Return the keys, each with its value behind it; None of what are no pairs."""
    if isinstance(given, Mapping):
        return [one for pair in given.items() for one in pair]
    is_told = all(type(pair) in (list, tuple) and len(pair) == 2 for pair in given)
    return [one for pair in given for one in pair] if is_told else None


def reader_of(func: Global) -> ReadBy | None:
    """Return what tells which containers a function looks into when it is called; None of one that looks into none."""
    if func in _TENSORS:
        return _by_tensor
    if func == _QUANTIZED:
        return _by_quantized
    if func == _BY_TYPE:
        return _by_subclass
    return _by_sequence if func in _SEQUENCES or func.module == BY_POSITION else None


def _by_tensor(args: tuple[Any, ...]) -> Iterable[Any]:
    # Of hundreds of thousands, few have any.
    if 3 < len(args) <= NUM_BEFORE_METADATA and type(args[2]) is tuple is type(args[3]):
        return ()
    metadata = (one for one in args[NUM_BEFORE_METADATA:_MAX_READ] if type(one) is Call)
    return chain(_containers(args), metadata)


def _by_quantized(args: tuple[Any, ...]) -> Iterable[Any]:
    quantizer = args[4] if len(args) > 4 and type(args[4]) is tuple else ()
    return chain(_containers(args), _containers(quantizer))


def _by_sequence(args: tuple[Any, ...]) -> Iterable[Any]:
    return _containers(args[:1])


def _by_subclass(args: tuple[Any, ...]) -> Iterable[Any]:
    """Yield what is read by a call that makes a tensor by another: of `function, class, arguments, state`."""
    for _ in range(_MAX_READ):
        if len(args) != 4 or type(args[0]) is not Global or type(args[2]) is not tuple:
            return
        func, _, args, state = args
        if func == _WRAPPER:
            yield from chain(_containers(args), _containers(state if type(state) is tuple else (state,)))
        if func != _BY_TYPE:
            reader = reader_of(func)
            yield from reader(args) if reader is not None else ()
            return


def _containers(values: tuple[Any, ...]) -> Iterator[Any]:
    return (one for one in values[:_MAX_READ] if type(one) in (list, dict))
