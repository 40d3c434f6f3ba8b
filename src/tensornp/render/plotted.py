"""`plot`: a figure of a tensor for publication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.attributes import class_name
from tensornp.core.values.planes import plane_map
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.errors import TensornpError
from tensornp.render.plot import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(x: Any, *, title: str = "", index: tuple[int, ...] | None = None) -> Figure:
    """Return a matplotlib `Figure` with the histogram and the heat map of a tensor or an array.

    Parameters
    ----------
    x : torch.Tensor, an object that stands for one, numpy.ndarray, or TensorStats
        Of statistics there is the histogram alone.
    title : str
        What stands over it; the shape and the dtype where it is empty.
    index : tuple of int, optional
        Which plane the heat map shows of a tensor of more than two dimensions, by an index of each but the last two.

    Raises
    ------
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.
    BadRequestError
        For an index that leads to no plane.

    Notes
    -----
    Made by the object interface: it is in no list of `pyplot`, and goes when nobody keeps it. Reads all elements.
    """
    if isinstance(x, TensorStats):
        return figure_of(x, title=title or "TensorStats")
    found = stats(x)
    try:
        picture = plane_map(x, index)
    except TensornpError:
        if index is not None:
            raise
        picture = None
    named = title or f"{class_name(type(x))} {tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"
    if picture is None:
        return figure_of(found, title=named)
    return figure_of(found, picture.heatmap, named, limits_of_colours=picture.limits, caption=picture.tiles.caption)
