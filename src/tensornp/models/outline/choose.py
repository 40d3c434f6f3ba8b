"""Choose weights: search names, filter by facts, sort by a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.search import fitting
from tensornp.models.outline.columns import COLUMNS, FINDINGS, column_called

MAX_PATTERN = 200
"""Characters of a search; a regular expression is not timed."""
STATES = ("trained", "frozen", "tied", "no values")
NOT_FINITE_STATE, NAN_STATE, INFINITY_STATE = "NaN or infinity", "NaN", "infinity"
FOUND_STATE, QUIET_STATE, UNREAD = "with findings", "probably intended", "not read"
FOUND_STATES = (NOT_FINITE_STATE, NAN_STATE, INFINITY_STATE, FOUND_STATE, QUIET_STATE, UNREAD)
"""States of weights after a scan."""
SUMMED = ("elements", "share")
"""The columns by which groups are ordered that are told of all that is below them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The view that a page asks for."""

    search: str = ""
    sort: str = ""
    descending: bool = False
    filters: tuple[tuple[str, str], ...] = ()
    orders_groups: bool = False

    @property
    def is_list(self) -> bool:
        """Return whether the view is a list of full names instead of a tree."""
        return bool(self.search or self.filters or (self.sort and not self.orders_groups))


def searched(text: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the matching names."""
    if len(text) > MAX_PATTERN:
        raise BadRequestError(f"a search has at most {MAX_PATTERN} characters, got {len(text):,}")
    return fitting(text, names)


def passes(one: WeightEntry, filters: tuple[tuple[str, str], ...], found: Any = None) -> bool:
    """Return whether a weight passes the filters.

    `found` has the results of a scan: by the name of a weight, `worst` returns its worst finding, and `states`.
    """
    for column, wanted in filters:
        if column == FINDINGS:
            is_passed = found is not None and found.worst(one.name) == wanted
        elif column == "state" and wanted in FOUND_STATES:
            is_passed = found is not None and wanted in found.states(one.name)
        elif column == "state":
            is_passed = has_state(one, wanted)
        else:
            choice = column_called(column).choice
            is_passed = choice is None or choice(one) == wanted
        if not is_passed:
            return False
    return True


def has_state(one: WeightEntry, state: str) -> bool:
    """Return whether a weight is trained, frozen, tied, or has no values."""
    if state == "tied":
        return bool(one.tied_to)
    if state == "no values":
        return not one._can_be_read
    return one._is_trained is (state == "trained")


def filters() -> tuple[str, ...]:
    return (*(column.name for column in COLUMNS if column.choice is not None), "state", FINDINGS)
