"""Statistics and a heat map as a matplotlib figure, without global state."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.lowlevel.attributes import values_of
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.values.pictures.heatmap import Heatmap
from tensornp.core.values.pictures.planes import plane_map
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.distribution import NUM_BINS, Histogram
from tensornp.core.values.stats.record import TensorStats
from tensornp.core.values.stored import described
from tensornp.errors import BadRequestError, TensornpError
from tensornp.render.pictures import palette
from tensornp.render.pictures.palette import legend_text
from tensornp.render.pictures.png import colours_of, steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EVEN = 1e-6
"""Relative difference of the widths of even bins."""


@never_compiled
def plot(x: Any, *, title: str = "", index: int | tuple[int, ...] | None = None) -> Figure:
    """Return a matplotlib `Figure` with a histogram and a heat map of one plane.

    Parameters
    ----------
    x : torch.Tensor, an object that stands for one, numpy.ndarray, WeightEntry, or TensorStats
        Statistics give the histogram alone.
    title : str
        Title of the figure. The default is shape and dtype.
    index : int or tuple of int, optional
        Plane of the heat map if there are more than two dimensions: ``index=(5, 0)`` shows ``batch[5, 0]``. None shows
        the first plane. The title of the heat map names the plane. The histogram counts all elements.

    Raises
    ------
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.
    BadRequestError
        If `index` selects no plane, or is given with statistics.

    Notes
    -----
    Reads all elements, and shows the modulus of complex ones. `pyplot` does not keep the figure.

    Examples
    --------
    >>> import torch
    >>> batch = torch.rand(8, 3, 64, 64)
    >>> tnp.plot(batch, index=(5, 0)).axes[1].get_title()
    'plane [5, 0] of 8 × 3'
    """
    if issubclass(type(x), TensorStats):
        if index is not None:
            raise BadRequestError(f"index must be None for statistics, got {quoted(index)}; pass the tensor itself")
        return figure_of(x, title=title or "TensorStats")
    x = values_of(x)
    if not isinstance(title, str):
        raise BadRequestError(f"title must be a str, got {quoted(title)}")
    stats = scan(x, caller="plot")
    try:
        picture = plane_map(x, index)
    except TensornpError:
        if index is not None:
            raise
        picture = None
    # A name may have dollars; the caller of a title may mean mathematics.
    return figure_of(stats, picture, title or str(described(x)), is_math=bool(title))


@np.errstate(all="ignore")
def figure_of(stats: TensorStats, picture: Heatmap | None = None, title: str = "", *, is_math: bool = True) -> Figure:
    """Return a figure with a histogram and a heat map; `is_math` sets text between dollars as mathematics."""
    counts, notes = stats.histogram, []
    num_parts = (counts is not None) + (picture is not None)
    figure: Figure = _figure_class()(figsize=(4.8 * max(1, num_parts), 3.8), layout="constrained")
    if counts is not None:
        name, of = ("modulus", " of the modulus") if stats.is_complex else ("value", "")
        _draw_histogram(figure.add_subplot(1, num_parts, 1), counts, name)
        # No bin has these elements.
        others = ((stats.nan, "NaN"), (stats.posinf, "+Inf"), (stats.neginf, "−Inf"))
        left_out = ", ".join(f"{count:,} {word}" for count, word in others if count)
        notes.append(f"histogram{of}: {stats.scope_of_histogram}" + (f", without {left_out}" if left_out else ""))
    if picture is not None:
        axes = figure.add_subplot(1, num_parts, num_parts)
        _draw_heatmap(axes, picture)
        axes.set_title(picture.title, fontsize="medium")
        notes.append(legend_text(picture))
    figure.suptitle(title, parse_math=is_math)
    if notes:
        figure.supxlabel("\n".join(notes), fontsize="small", wrap=True)
    return figure


@functools.cache
def _figure_class() -> type[Figure]:
    """Return a subclass of `Figure` that notebooks show as a picture without pyplot."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        @np.errstate(all="ignore")
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return ShownFigure


def _draw_histogram(axes: Axes, histogram: Histogram, name: str) -> None:
    heights, edges, label = histogram.counts, histogram.edges, "elements"
    if edges[0] == edges[-1]:
        # A single value gets a bar with a width.
        edges = edges + np.array([-0.5, 0.5]) * (abs(edges[0]) or 1)
    elif not np.allclose(np.diff(edges) * len(heights), edges[-1] - edges[0], rtol=_EVEN, atol=0):
        # Readers compare areas: a wide bin would seem to hold more elements than it does.
        heights, label = histogram.cells(NUM_BINS), f"elements in 1/{NUM_BINS} of the range"
        edges = np.linspace(edges[0], edges[-1], NUM_BINS + 1)
    axes.stairs(heights, edges, fill=True, color=_share(palette.BARS))
    axes.set(xlabel=name, ylabel=label, ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)


def _draw_heatmap(axes: Axes, heatmap: Heatmap) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = heatmap.limits
    pixels = np.array(colours_of(heatmap))[steps_of(heatmap)] / 255
    # The last pixels may cover less than the others.
    rows, columns = heatmap.shape
    height, width = (pixels.shape[dim] * heatmap.cell[dim] for dim in (0, 1))
    if pixels.size:
        axes.imshow(pixels, aspect="auto", interpolation="nearest", extent=(-0.5, width - 0.5, height - 0.5, -0.5))
    axes.set(xlabel="column", ylabel="row")
    axes.set(xlim=(-0.5, max(1, columns) - 0.5), ylim=(max(1, rows) - 0.5, -0.5))
    if colours.low < colours.high:
        anchors = palette.DIVERGING if heatmap.is_signed else palette.SEQUENTIAL
        under, over = map(_share, palette.BEYOND_DIVERGING if heatmap.is_signed else palette.BEYOND_SEQUENTIAL)
        scale = ListedColormap([_share(colour) for colour in palette.scale(anchors)])
        shades = ScalarMappable(Normalize(colours.low, colours.high), scale.with_extremes(under=under, over=over))
        extend = (("neither", "max"), ("min", "both"))[bool(colours.num_below)][bool(colours.num_above)]
        axes.figure.colorbar(shades, ax=axes, extend=extend).set_label("modulus" if heatmap.is_modulus else "value")


def _share(colour: palette.Colour) -> tuple[float, float, float]:
    return colour[0] / 255, colour[1] / 255, colour[2] / 255
