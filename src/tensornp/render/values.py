"""Show statistics of a tensor, comparisons, histograms and places of elements."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from tensornp.core.lowlevel.text import counted
from tensornp.core.summary.stats import ComparisonSummary, StatsSummary
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.locate import Location
from tensornp.core.values.pictures.heatmap import Heatmap
from tensornp.core.values.stats.distribution import NUM_BINS, Histogram
from tensornp.core.values.stats.record import TensorStats
from tensornp.render.layout.document import Document, Part, alarm_line, headed, headline, side_by_side, small_print
from tensornp.render.layout.style import AXIS, CARD, END, PICTURE, SMALL_TEXT
from tensornp.render.layout.table import Drawn, Table, TableRow, name_html
from tensornp.render.layout.words import share_text
from tensornp.render.pictures.palette import heatmap_alt, legend_text
from tensornp.render.pictures.png import heatmap_png, img_html, size_of
from tensornp.render.pictures.stats_line import histogram_img, number_text, sparkline_of, told_histogram
from tensornp.render.tensor.badges import badge_html, badges_of

SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
MAX_INDICES = 10
"""Indices of an axis of which the figures are listed."""
_WIDTH, _HEIGHT = 256, 64
_IN_HEADING = 3
"""Coordinates in the text of a location."""


def stats_document(summary: StatsSummary) -> Document:
    """Return the figures in tables, with the histogram in block characters or as a picture."""
    name = f"{summary.name}: " if summary.name else ""
    bold = f"<b>{name_html(summary.name)}</b> " if summary.name else ""
    badges = "" if summary.card is None else " ".join(map(badge_html, badges_of(summary.card)))
    head = f"<div>{bold}{badges or escape(str(summary.description))}</div>"
    pictures = Part(html=lambda: "".join(_pictures(summary)))
    first, *others = stats_tables(summary)
    bars, histogram = sparkline_of(summary.stats), summary.stats.histogram
    if bars and histogram is not None:
        low, high = (number_text(float(histogram.edges[i])) for i in (0, -1))
        bars = f"{low} |{bars}| {high}"
    figures = side_by_side((first, Part(bars), *others, pictures))
    return Document((Part(f"{name}{summary.description}", head), figures))


def panel_stats_html(summary: StatsSummary) -> str:
    """Return the figures for the panel of a weight; extremes are links to their elements."""
    pictures = Part(html=lambda: "".join(_pictures(summary)))
    return Document((side_by_side((*stats_tables(summary, is_live=True), pictures)),), CARD).html()


def stats_tables(summary: StatsSummary, *, is_live: bool = False) -> Iterator[Table]:
    """Yield the tables: figures with their places, quantiles, and the indices of an axis that stand out."""
    if np.ndim(summary.stats.count):
        yield _axis_table(summary.stats, "index")
        return
    yield Table(("figure", "value", "where"), tuple(_rows(summary, is_live)))
    if summary.stats.distribution is not None and summary.stats.min is not None:
        quantiles = zip(SHARES, summary.stats.quantile(SHARES).tolist(), strict=True)
        rows = tuple(TableRow((f"{100 * share:.4g}%", number_text(value))) for share, value in quantiles)
        heading = "quantiles of the modulus" if summary.stats.is_complex else "quantiles"
        yield Table((heading, summary.stats.distribution.accuracy), rows)
    if summary.by_axis is not None and summary.axis is not None:
        yield _axis_table(summary.by_axis, f"axis {summary.axis}", summary.axis_origin)


def _rows(summary: StatsSummary, is_live: bool) -> Iterator[TableRow]:
    stats, places = summary.stats, {place.what: place for place in summary.places}
    yield TableRow(("elements", f"{stats.count:,}", stats.scope))
    yield TableRow(("NaN", f"{stats.nan:,}", _place(places.get("nan"))))
    infinite = f"{stats.num_infinite:,}"
    if stats.neginf and stats.posinf:
        infinite += f" ({stats.posinf:,} plus, {stats.neginf:,} minus)"
    yield TableRow(("infinite", infinite, _place(places.get("inf"))))
    share = f" ({share_text(stats.zeros, stats.count)})" if stats.zeros and stats.count else ""
    yield TableRow(("zero", f"{stats.zeros:,}{share}", ""))
    if stats.min is None:
        return
    of = "of the modulus" if stats.is_complex else ""
    finite = stats.count - stats.nan - stats.num_infinite
    for name, value in (("min", stats.min), ("max", stats.max)):
        said = number_text(value)
        link = f'<button type="button" class="tensornp-copy tensornp-link" data-seek="{name}" title="Go to the {name}">'
        figure = Drawn(said, f"{link}{said}</button>") if is_live and name in places else said
        yield TableRow((name, figure, _of_what(of, _place(places.get(name)))))
    rows = (("mean", stats.mean), ("std", stats.std), ("norm", stats.norm))
    of_what = {"std": "÷ n", **({"mean": f"of {finite:,} finite"} if finite < stats.count else {})}
    for name, figure in rows:
        yield TableRow((name, number_text(figure), _of_what(of, of_what.get(name, ""))))


def _of_what(*said: str) -> str:
    return ", ".join(filter(None, said))


def _place(place: Location | None) -> str:
    return place._at if place is not None and place.count else ""


def _axis_table(stats: TensorStats, heading: str, origin: int = 0) -> Table:
    """Return the figures of the indices that stand out most; the first index has the number `origin`."""
    size = np.fmax(np.abs(stats.min.astype(float)), np.abs(stats.max.astype(float)))
    odd = stats.nan + stats.num_infinite
    order = np.lexsort((-np.nan_to_num(size, nan=-1), -odd))[:MAX_INDICES]
    rows = [
        TableRow(
            (
                f"{origin + i:,}", f"{stats.nan[i]:,}", f"{stats.num_infinite[i]:,}",
                *(f"{getattr(stats, name)[i]:.4g}" for name in ("min", "max", "mean", "std", "norm")),
            )
        )
        for i in order.tolist()
    ]  # fmt: skip
    total, of = len(stats.count), ", of the modulus" if stats.is_complex else ""
    if total > len(rows):
        rows.append(TableRow((f"the {len(rows)} of {total:,} that stand out: by NaN and infinities, then by size",)))
    return Table((heading + of, "NaN", "infinite", "min", "max", "mean", "std", "norm"), tuple(rows))


def _pictures(summary: StatsSummary) -> Iterator[str]:
    histogram = told_histogram(summary.stats, NUM_BINS)
    if summary.has_pictures and histogram is not None:
        of = "modulus: " if summary.stats.is_complex else ""
        legend = f"{of}{counted(len(histogram.counts), 'bin')} · {summary.stats.scope_of_histogram}"
        yield figure_html(histogram_img(histogram, _WIDTH, _HEIGHT) + _axis_html(histogram), legend)
    if summary.picture is not None:
        yield picture_html(summary.picture)


def _axis_html(histogram: Histogram) -> str:
    low, high = (float(histogram.edges[i]) for i in (0, -1))
    place = -low / (high - low) if low < high else 0
    zero = "<span>0</span>" if 0.2 < place < 0.8 else ""
    width = f' style="width:{100 * place - 1:.1f}%"' if zero else ""
    ends = [f"<span{width}>{number_text(low)}</span>", zero, f'<span style="{END}">{number_text(high)}</span>']
    return f'<div style="{AXIS};width:{_WIDTH}px">{"".join(ends)}</div>'


def picture_html(picture: Heatmap) -> str:
    image = img_html(heatmap_png(picture), heatmap_alt(picture), *size_of(picture))
    return figure_html(image, " · ".join(filter(None, [picture.title, legend_text(picture)])))


def figure_html(image: str, legend: str) -> str:
    return f'<div style="{PICTURE}">{image}<div style="{SMALL_TEXT}">{escape(legend)}</div></div>'


def location_document(place: Location) -> Document:
    """Return the count and the first places of elements, and all known coordinates below."""
    known = ", ".join(str(list(index)) for index in place.indices)
    # The heading has the first ones.
    rest = f"the first {len(place.indices)}: {known}" if len(place.indices) > _IN_HEADING else ""
    return Document((headline(str(place)), small_print(rest)))


def comparison_document(summary: ComparisonSummary) -> Document:
    """Return the verdict over the heat map of the difference, which only a page has, and the figures."""
    comparison = summary.comparison
    head = headed([(name, "") for name in summary.names], comparison.verdict)
    picture = summary.picture
    pictures = Part() if picture is None else Part(html=lambda: picture_html(picture))
    said, _, cure = comparison._note.partition(": ")
    rows = map(TableRow, _comparison_rows(comparison, summary.names))
    table = Table(("figure", "value", "what it means"), tuple(rows))
    return Document((head, *([alarm_line(said, f": {cure}")] if said else []), pictures, table))


def _comparison_rows(found: Comparison, names: tuple[str, str]) -> Iterator[tuple[str, str, str]]:
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
    yield (
        "largest difference",
        number_text(found.max_abs),
        f"{at}of {counted(found._finite, 'pair')}, finite on both sides",
    )
    if found.relative is not None and found.cosine_distance is not None:
        yield "relative", f"{found.relative:.4g}", f"the norm of the difference over that of {names[0]}"
        yield "1 − cos", f"{found.cosine_distance:.4g}", "of the angle between the two"
