"""Define the columns of weights, and search and sort by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, shape_text
from tensornp.models.names.quoted import MAX_SHOWN, cut, file_name, names_above, natural
from tensornp.models.names.search import fitting
from tensornp.models.outline.fold import Row

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

_MAX_NOTE = 400
_Some = TypeVar("_Some")


def at_a_glance(value: float) -> str:
    """Return a number in three digits with trailing zeros, such as ``16.0``.

    Numbers with four or five digits before the point are whole: ``1122`` is shorter than ``1.12e+03``.
    """
    text = f"{value:.0f}" if 999.5 <= abs(value) < 99_999.5 else f"{value:#.3g}".removesuffix(".")
    return text if value else "0"


class Column(NamedTuple):
    """One column of weights; `figure` returns a number from a scan, or None if it is unknown."""

    name: str
    text: Callable[[Row], str] | None = None
    order: Callable[[WeightEntry], Any] | None = None
    figure: Callable[[TensorStats], float | None] | None = None
    figure_text: Callable[[float], str] = at_a_glance
    is_always: bool = False
    is_said_once: bool = False
    has_large_first: bool = False

    def sorted(self, some: Iterable[_Some], entry_of: Callable[[_Some], WeightEntry]) -> list[_Some]:
        """Return objects in the first order of their entries by this column."""
        order = self.order
        assert order is not None
        return sorted(some, key=lambda one: order(entry_of(one)), reverse=self.has_large_first)

    @property
    def is_sortable(self) -> bool:
        return self.order is not None or self.figure is not None or self.name == FINDINGS

    @property
    def is_scanned(self) -> bool:
        return self.text is None and self.order is None


def _where(row: Row) -> str:
    places = {entry.location for entry in row.entries}
    return cut(file_name(places.pop()), MAX_SHOWN) if len(places) == 1 else f"{len(places)} places"


def _grad(row: Row) -> str:
    grads = {entry._is_trained for entry in row.entries}
    if grads == {True}:
        return "grad"
    return "frozen" if grads == {False} else "" if grads == {None} else "some frozen"


def _bytes_of_each(row: Row) -> str:
    every = [entry.nbytes for entry in row.entries]
    if len(set(every)) > 1:
        return f"{format_nbytes(sum(every))} in all"
    return (f"{len(every):,} × " if len(every) > 1 else "") + format_nbytes(every[0])


def _notes(row: Row) -> str:
    first = row.entries[0]
    notes = [first.note, "" if first._can_be_read else f"no values: {first.problem}"]
    if len(row.entries) > 1:
        notes += ["tied" if first.tied_to else ""]
    else:
        notes += [f"tied to {cut(name, MAX_SHOWN)}" for name in first.tied_to[:1]]
    return cut(", ".join(filter(None, (*notes, row.unlike))), _MAX_NOTE)


def cells_of(row: Row) -> dict[str, str]:
    return {column.name: column.text(row) for column in COLUMNS if column.text is not None}


def figures_of(stats: TensorStats) -> dict[str, float]:
    """Return the numbers of a scan by column."""
    found = {column.name: column.figure(stats) for column in COLUMNS if column.figure is not None}
    return {name: float(value) for name, value in found.items() if value is not None}


def column_called(name: str) -> Column:
    """Return a column by its heading; BadRequestError if there is none."""
    found = next((column for column in COLUMNS if column.name == name), None)
    if found is None:
        raise BadRequestError(f"there is no column {cut(name, 20)!r}")
    return found


def _largest(stats: TensorStats) -> float | None:
    return None if stats.min is None else max(abs(stats.min), abs(stats.max))


def _percent(share: float) -> str:
    """Return a share in percent; only 0 gives 0, and only 1 gives 100%."""
    if 0 < share < 0.001:
        return "< 0.1%"
    if 0.999 < share < 1:
        return "> 99.9%"
    return f"{100 * share:.3g}%" if share else "0"


def _figure(name: str, of: Callable[[TensorStats], float | None], **facts: Any) -> Column:
    return Column(name, figure=of, has_large_first=True, **facts)


GRAD = "grad"
"""Whether backward adds up a gradient; of a live model, a scan tells where there is none."""
GRADIENT, GRADIENT_RATIO = "grad norm", "grad / weight"
"""Columns of a live model: the norm of a gradient, and its ratio to that of the weight."""
ABOUT = "≈"
"""Before a figure of a sample."""
FINDINGS = "findings"
"""The heading of what a scan has found, by which it ranks weights."""
COLUMNS: tuple[Column, ...] = (
    # An empty name could not be seen.
    Column("name", lambda row: cut(row.pattern, MAX_SHOWN) or "''", lambda one: natural(one.name), is_always=True),
    Column("kind", lambda row: row.entries[0].kind, lambda one: one.kind, is_said_once=True),
    Column(
        "shape", lambda row: shape_text(row.entries[0].shape, row.entries[0].kind), lambda one: one.numel,
        is_always=True, has_large_first=True,
    ),
    Column("elements", None, lambda one: one.numel, is_always=True, has_large_first=True),
    Column(
        "dtype", lambda row: cut(row.entries[0].dtype, MAX_SHOWN), lambda one: one.dtype, is_said_once=True,
    ),
    Column("where", _where, lambda one: one.location, is_said_once=True),
    Column(
        "bytes", _bytes_of_each, lambda one: one.nbytes,
        is_always=True, has_large_first=True,
    ),
    Column(GRAD, _grad, lambda one: {True: 0, False: 1, None: 2}[one._is_trained], is_said_once=True),
    Column("figures"),
    _figure("norm", lambda stats: stats.norm),
    _figure("mean", lambda stats: stats.mean),
    _figure("std", lambda stats: stats.std),
    _figure("max |x|", _largest),
    _figure("zeros", lambda stats: stats.zeros / stats.count if stats.count else None, figure_text=_percent),
    _figure(GRADIENT, lambda _: None),
    _figure(GRADIENT_RATIO, lambda _: None),
    Column(FINDINGS),
    Column(
        "notes", _notes, lambda one: (not one.problem, not one.tied_to, not one.note, one.note),
    ),
)  # fmt: skip
"""In the order in which they stand."""

MAX_PATTERN = 200
"""Characters of a search; a regular expression is not timed."""


class Asked(NamedTuple):
    """The view that a page asks for."""

    search: str = ""
    sort: str = ""
    descending: bool = False

    @property
    def is_list(self) -> bool:
        """Return whether the view is a list of full names instead of a tree."""
        return bool(self.search or self.sort)


def searched(
    text: str, names: Sequence[str], facts: Callable[[], Sequence[str]] = tuple, lowered: Sequence[str] = ()
) -> list[int]:
    """Return the indices of the matching names, as `fitting` does, for a search of a page."""
    if len(text) > MAX_PATTERN:
        raise BadRequestError(f"a search has at most {MAX_PATTERN} characters, got {len(text):,}")
    return fitting(text, names, facts, lowered)


def facts_of(one: WeightEntry, classes: Mapping[str, str]) -> str:
    """Return the words of a weight that a search takes besides its name."""
    above = [classes[name] for name in names_above(one.name) if name in classes] if classes else []
    state = {True: "trained grad", False: "frozen", None: ""}[one._is_trained]
    words = (*above, one.dtype, one.kind, state, "tied" * bool(one.tied_to), file_name(one.location))
    return " ".join(filter(None, words))
