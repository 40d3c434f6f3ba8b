"""Two tensors side by side: the verdict, the figures of their difference, and a heat map of it."""

from __future__ import annotations

from collections.abc import Iterator

from tensornp.core.lowlevel.text import counted
from tensornp.core.summary.stats import ComparisonSummary
from tensornp.core.values.compare.compare import Comparison
from tensornp.render.layout.document import Alarm, Both, Document, Pictures, headed
from tensornp.render.layout.table import Table, TableRow
from tensornp.render.layout.words import share_text
from tensornp.render.pictures.stats_line import number_text
from tensornp.render.values.stats import picture_html


def comparison_document(summary: ComparisonSummary) -> Document:
    """Return the verdict over the heat map of the difference, which only a page has, and the figures."""
    comparison = summary.comparison
    head = headed([(name, "") for name in summary.names], comparison.verdict)
    picture = summary.picture
    pictures = Both() if picture is None else Pictures(lambda: picture_html(picture))
    said, _, cure = comparison._note.partition(": ")
    return Document((head, *([Alarm(said, f": {cure}")] if said else []), pictures, _table(summary)))


def _table(summary: ComparisonSummary) -> Table:
    rows = [TableRow((name, value, said)) for name, value, said in _rows(summary.comparison, summary.names)]
    return Table(("figure", "value", "what it means"), tuple(rows))


def _rows(found: Comparison, names: tuple[str, str]) -> Iterator[tuple[str, str, str]]:
    if found._shapes[0] != found._shapes[1]:
        return
    yield "elements", f"{found.count:,}", found.scope
    if found._dtypes[0] != found._dtypes[1]:
        yield "dtypes", f"{found._dtypes[0]} and {found._dtypes[1]}", ""
    if not found._num_changed:
        return
    share = share_text(found._num_changed, found.count)
    yield "not equal", f"{found._num_changed:,} ({share})", "NaN equals NaN, and 0.0 equals -0.0"
    if found.first_difference is not None and found._first_values is not None:
        a, b = found._first_values
        yield "first", str(list(found.first_difference)), f"{a!r} and {b!r}"
    for count, name in ((found._only_finite_first, names[0]), (found._only_finite_second, names[1])):
        if count:
            yield "finite on one side", f"{count:,}", f"only in {name}"
    if found.max_abs is None:
        return
    at = f"at {list(found._largest_difference)}, " if found._largest_difference is not None else ""
    yield "largest |Δ|", number_text(found.max_abs), f"{at}of {counted(found._finite, 'pair')}, finite on both sides"
    if found.relative is not None and found.cosine_distance is not None:
        yield "relative", f"{found.relative:.4g}", f"the norm of the difference over that of {names[0]}"
        yield "1 − cos", f"{found.cosine_distance:.4g}", "of the angle between the two"
    if found.max_ulp is not None:
        yield "largest in ulp", f"{found.max_ulp:,}", f"representable {found._dtypes[0]} numbers apart"
