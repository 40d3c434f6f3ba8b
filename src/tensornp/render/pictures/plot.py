"""Statistics and a heat map as a matplotlib figure, without global state."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor.shards import Runs, nth, num_of
from tensornp.core.tensor.weight import values_of
from tensornp.core.values.pictures.heatmap import FINITE, NAN, NEGINF, POSINF, Heatmap, Limits, limits
from tensornp.core.values.pictures.planes import plane_map
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.distribution import NUM_BINS, Histogram
from tensornp.core.values.stats.record import TensorStats
from tensornp.core.values.stored import described
from tensornp.errors import BadRequestError, TensornpError
from tensornp.render.pictures import palette
from tensornp.render.pictures.legend import legend_text
from tensornp.render.pictures.png import img_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = np.ndarray[Any, np.dtype[np.float64]]
_EVEN = 1e-6
"""By how much the widths of even bins may differ."""
_DRAWN = 1e-280, 1e300
"""Between these, the largest value of an axis is one that matplotlib can draw."""

_VALUE, _MODULUS = "value", "modulus"
"""What an axis of values is called; of complex ones there is the modulus."""


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
        the first plane, or up to 64 planes of at most 1,024 elements side by side. The title of the heat map names the
        plane. The histogram counts all elements.

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
            said = f"index={quoted(index)} is none, for statistics have no plane"
            raise BadRequestError(f"{said}; pass the tensor itself")
        return figure_of(x, title=title or "TensorStats")
    x = values_of(x)
    if not isinstance(title, str):
        raise BadRequestError(f"title must be a str, got {quoted(title)}")
    found = scan(x, caller="plot")
    try:
        picture = plane_map(x, index)
    except TensornpError:
        if index is not None:
            raise
        picture = None
    # A name may have dollars; a title is the caller's, who may mean mathematics.
    named, is_math = title or str(described(x)), bool(title)
    if picture is None:
        return figure_of(found, title=named, is_math=is_math)
    tiles = picture.tiles
    return figure_of(
        found, picture.heatmap, named, is_math=is_math,
        limits_of_colours=picture.limits, heatmap_title=tiles.title, held=tiles.held,
    )  # fmt: skip


@np.errstate(all="ignore")
def figure_of(
    stats: TensorStats | None,
    heatmap: Heatmap | None = None,
    title: str = "",
    *,
    is_math: bool = True,
    limits_of_colours: Limits | None = None,
    dimensions: Sequence[str] = ("row", "column"),
    caption: str = "",
    heatmap_title: str = "",
    held: Sequence[Runs | None] = (None, None),
) -> Figure:
    """Return a figure with a histogram, a heat map, or both side by side.

    It belongs to nobody but the caller: `pyplot` is not imported, so no list of open figures keeps it. Notebooks show
    it as a PNG, also where ``%matplotlib inline`` was never said; `Figure.savefig` writes it in any format.

    Parameters
    ----------
    stats : TensorStats, optional
    heatmap : Heatmap, optional
    title, caption : str
        What stands over it all, and under it besides the scope and what the colours mean.
    is_math : bool
        Whether what stands between dollars in the title is set as mathematics.
    limits_of_colours : Limits, optional
        None finds robust ones.
    dimensions : sequence of str
        What the axes of the heat map are called, rows first.
    heatmap_title : str
        What stands over the heat map alone.
    held : sequence of Runs or None
        Which rows and columns those of the heat map are, where they are a part of what is spread over ranks.
    """
    counts = stats.histogram if stats is not None else None
    num_parts = (counts is not None) + (heatmap is not None)
    figure: Figure = _figure_class()(figsize=(4.8 * max(1, num_parts), 3.8), layout="constrained")
    notes = [caption] if caption else []
    at = 0
    if counts is not None and stats is not None:
        at += 1
        _draw_histogram(figure.add_subplot(1, num_parts, at), counts, _VALUE if stats.real is None else _MODULUS)
        notes.append(_histogram_note(stats))
    if heatmap is not None:
        colours = limits_of_colours or limits(heatmap)
        axes = figure.add_subplot(1, num_parts, at + 1)
        _draw_heatmap(axes, heatmap, colours, dimensions)
        for axis, runs in zip((axes.yaxis, axes.xaxis), held, strict=True):
            if runs:
                axis.set_major_formatter(functools.partial(_number_of, runs))
        axes.set_title(heatmap_title, fontsize="medium")
        notes.append(legend_text(heatmap, colours))
    if title:
        figure.suptitle(title, parse_math=is_math)
    if notes:
        figure.supxlabel("\n".join(notes), fontsize="small", wrap=True)
    return figure


def _histogram_note(stats: TensorStats) -> str:
    """Return what a histogram is of, and what of it stands in no bin."""
    others = ((stats.nan, "NaN"), (stats.posinf, "+Inf"), (stats.neginf, "−Inf"))
    left_out = [f"{count:,} {word}" for count, word in others if count]
    of = "" if stats.real is None else f" of the {_MODULUS}"
    return f"histogram{of}: {stats.scope_of_histogram}" + (f", without {', '.join(left_out)}" if left_out else "")


@functools.cache
def _figure_class() -> type[Figure]:
    """Return matplotlib's class, which a notebook shows as text only, with what shows it as a picture."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        @np.errstate(all="ignore")
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

        def _static_bundle(self) -> dict[str, str]:
            width, height = map(round, self.get_size_inches() * self.dpi)
            said = ": ".join(filter(None, [f"figure of {width} × {height}", self.get_suptitle()]))
            picture = img_html(self._repr_png_(), said, width, height)
            return {"text/plain": said, "text/html": f'<div class="tensornp">{picture}</div>'}

        def __reduce_ex__(self, protocol: Any) -> Any:
            # Another process, where this class was not made, gets a plain figure.
            return object.__new__, (Figure,), self.__getstate__()

    return ShownFigure


def _draw_histogram(axes: Axes, histogram: Histogram, called: str) -> None:
    heights, label = histogram.counts, "elements"
    edges, name = _drawn(histogram.edges, called)
    if edges[0] == edges[-1]:
        # One value, with a bar around it that can be seen.
        edges = edges + np.array([-0.5, 0.5]) * (abs(edges[0]) or 1)
    elif not np.allclose(np.diff(edges) * len(heights), edges[-1] - edges[0], rtol=_EVEN, atol=0):
        # An area is what is seen: of uneven bins, a wide one would seem to hold more than it does.
        heights, label = histogram.cells(NUM_BINS), f"elements in 1/{NUM_BINS} of the range"
        edges = np.linspace(edges[0], edges[-1], NUM_BINS + 1)
    axes.stairs(heights, edges, fill=True, color=_share(palette.BARS))
    axes.set(xlabel=name, ylabel=label, ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)


def _draw_heatmap(axes: Axes, heatmap: Heatmap, colours: Limits, dimensions: Sequence[str]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    is_signed = colours.centre is not None
    anchors = palette.DIVERGING if is_signed else palette.SEQUENTIAL
    under, over = palette.BEYOND_DIVERGING if is_signed else palette.BEYOND_SEQUENTIAL
    scale = LinearSegmentedColormap.from_list("tensornp", [_share(colour) for colour in anchors]).with_extremes(
        under=_share(under), over=_share(over)
    )
    shares = colours.shares(np.where(heatmap.flags == FINITE, heatmap.values, 0.0))
    # Far beyond is beyond: matplotlib multiplies them.
    pixels = scale(np.clip(shares, -1, 2))
    pixels[heatmap.flags != FINITE] = 0
    for flag, colour in ((NAN, palette.NAN), (POSINF, palette.POSINF), (NEGINF, palette.NEGINF)):
        pixels[heatmap.flags == flag] = (*_share(colour), 1)
    # The last pixels may cover less than the others; between tiles, pixels count.
    rows, columns = heatmap.flags.shape if heatmap.is_tiled else heatmap.shape
    height, width = (pixels.shape[dim] * (1 if heatmap.is_tiled else heatmap.cell[dim]) for dim in (0, 1))
    if pixels.size:
        axes.imshow(pixels, aspect="auto", interpolation="nearest", extent=(-0.5, width - 0.5, height - 0.5, -0.5))
    axes.set(xlabel=dimensions[1], ylabel=dimensions[0])
    axes.set(xlim=(-0.5, max(1, columns) - 0.5), ylim=(max(1, rows) - 0.5, -0.5))
    if colours.low < colours.high:
        (low, high), name = _drawn(np.array([colours.low, colours.high]), _MODULUS if heatmap.is_modulus else _VALUE)
        norm = Normalize(low, high)
        ends = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
        extend = ends[bool(colours.num_below), bool(colours.num_above)]
        axes.figure.colorbar(ScalarMappable(norm, scale), ax=axes, extend=extend).set_label(name)


def _number_of(runs: Runs, place: float, _: object) -> str:
    """Return the number in the whole tensor of a row or a column; empty between two, and beyond them."""
    is_one = float(place).is_integer() and 0 <= place < num_of(runs)
    return str(nth(runs, int(place))) if is_one else ""


def _drawn(values: Values, called: str) -> tuple[Values, str]:
    """Return values as they lie on an axis, and how it is called.

    Matplotlib draws none that are near its limits.
    """
    largest = float(np.abs(values).max())
    if not largest or _DRAWN[0] < largest < _DRAWN[1]:
        return values, called
    exponent = math.floor(math.log10(largest))
    # In two steps, since the inverse of the power itself may be no float.
    near = exponent // 2
    return values * 10.0**-near * 10.0 ** (near - exponent), f"{called}, in units of 1e{exponent}"


def _share(colour: palette.Colour) -> tuple[float, float, float]:
    return colour[0] / 255, colour[1] / 255, colour[2] / 255
