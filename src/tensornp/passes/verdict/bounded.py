"""A long pass in bounded memory: the first and the last calls, and between them those that are in trouble."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensornp.passes.records import RETURNED, ModuleCall, OperatorCall, PassRecord, Value


def bounded(record: PassRecord, most: int) -> PassRecord:
    """Return a pass with the first and the last half of so many calls of modules, and of operators likewise.

    Those between that are not finite or have failed stay, and the calls inside which what stays came: a part of a model
    is none by itself. What referred to another one does so by its new index.
    """
    calls, operators = record.calls, record.operators
    if max(len(calls), len(operators)) <= most:
        return record
    steps = _kept(len(operators), most, [one.index for one in operators if not _is_fine(one)])
    places = _kept(len(calls), most, [one.index for one in calls if not one.is_fine])
    around = {above for index in places for above in _above(calls, calls[index])}
    indices = sorted(around.union(places))
    places = {index: place for place, index in enumerate(indices)}

    def moved(values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(
            replace(
                one,
                maker=None if one.maker is None else places.get(one.maker),
                operator=None if one.operator is None else steps.get(one.operator),
            )
            for one in values
        )

    return replace(
        record,
        calls=tuple(
            replace(
                calls[index],
                index=place,
                parent=None if (parent := calls[index].parent) is None else places[parent],
                inputs=moved(calls[index].inputs),
                outputs=moved(calls[index].outputs),
            )
            for index, place in places.items()
        ),
        operators=tuple(
            replace(
                operators[index],
                index=place,
                call=next((places[one] for one in _around(calls, operators[index]) if one in places), None),
                forward=steps.get(-1 if (forward := operators[index].forward) is None else forward),
                inputs=moved(operators[index].inputs),
                outputs=moved(operators[index].outputs),
                overwrote=moved(operators[index].overwrote),
            )
            for index, place in steps.items()
        ),
        steps=tuple(replace(one, num_calls=bisect_left(indices, one.num_calls)) for one in record.steps),
        num_dropped=len(calls) - len(places) + len(operators) - len(steps),
    )


def _kept(count: int, most: int, odd: Sequence[int]) -> dict[int, int]:
    """Return the indices of what is kept, each with its new one."""
    first, last = most - most // 2, count - most // 2
    if count <= most:
        return {index: index for index in range(count)}
    kept = sorted({*range(first), *range(last, count), *odd})
    return {index: place for place, index in enumerate(kept)}


def _is_fine(one: OperatorCall) -> bool:
    return one.status == RETURNED and all(value.is_finite is not False for value in (*one.inputs, *one.outputs))


def _above(calls: Sequence[ModuleCall], call: ModuleCall) -> Iterator[int]:
    while call.parent is not None:
        yield call.parent
        call = calls[call.parent]


def _around(calls: Sequence[ModuleCall], operator: OperatorCall) -> Iterator[int]:
    if operator.call is not None:
        yield operator.call
        yield from _above(calls, calls[operator.call])
