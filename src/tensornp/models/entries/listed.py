"""What is listed of each weight, as plain facts: a page that shows these keeps no tensor alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tensornp.models.entries.entry import COMPUTED, Related, WeightEntry

WHOLE = ("same elements", "reinterpreted")
"""Relations of which both sides take the same bytes."""


def is_trained(one: WeightEntry | Listed) -> bool | None:
    """Return whether a parameter requires a gradient; None of what nobody trains, and nobody freezes."""
    return one.requires_grad if one.kind == "parameter" or one.requires_grad else None


def same_elements_as(entry: WeightEntry) -> list[str]:
    """Return the names of other objects of the same elements in the same order; of many, the first."""
    return [other.name for other in entry.related if other.relation == WHOLE[0]]


def first_of_each(entries: Iterable[WeightEntry]) -> Iterator[WeightEntry]:
    """Yield the weights, but of objects of the same elements the first: a state dict has two of what a model ties."""
    earlier: set[str] = set()
    for one in entries:
        same = same_elements_as(one)
        if earlier.isdisjoint(same):
            yield one
        if same:
            earlier.add(one.name)


class NotListed(str):
    """A problem that hides weights, of which nothing is listed: what is compared is not all."""

    __slots__ = ()


class Listed(NamedTuple):
    """The facts of one weight; as those of `WeightEntry`.

    `number` counts the weights of an explorer, and `is_repeated` says that no sum counts it: its bytes are listed under
    an earlier name, or it is computed from others.
    """

    number: int
    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    numel: int
    nbytes: int
    location: str
    requires_grad: bool | None
    tied_to: tuple[str, ...]
    related: tuple[Related, ...]
    note: str
    problem: str
    code: str
    is_repeated: bool


def listed(entries: Iterable[WeightEntry]) -> list[Listed]:
    """Return the facts of weights, in their order; of what is registered as None, nothing."""
    found: list[Listed] = []
    earlier: set[str] = set()
    for one in entries:
        if one.is_nothing:
            continue
        same = [*one.tied_to, *(other.name for other in one.related if other.relation in WHOLE)]
        is_repeated = one.kind == COMPUTED or (bool(same) and not earlier.isdisjoint(same))
        if same:
            earlier.add(one.name)
        found.append(
            Listed(
                len(found), one.name, one.kind, one.shape, one.dtype, one.numel, one.nbytes, one.location,
                one.requires_grad, one.tied_to, one.related, one.note, one.problem, one.code, is_repeated,
            )
        )  # fmt: skip
    return found
