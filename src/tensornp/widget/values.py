"""Serve windows of a tensor to a page, whose requests may be anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.values.pictures.planes import overview_of
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window import (
    Index,
    Subject,
    Window,
    parse_index,
    read_window,
    subject_of,
    window_of,
    window_text,
)
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stored import StoredValues
from tensornp.errors import BadRequestError, NoDataError
from tensornp.render.pictures.palette import heatmap_alt, legend_text
from tensornp.render.pictures.png import data_uri, heatmap_png
from tensornp.widget.page import NONSENSE, Answer, Request, integer_of

Binder = Callable[[str, Callable[[], Any], bool], None]
"""Binds a name to the array that the second argument makes, overwriting only if the third says so."""
SEEN_WHOLE = 16, 16
"""Rows and columns of a plane without an overview."""
_SIZE = 16, 12
"""Rows and columns of a window if the page does not say how many it has room for."""
_NOT_FOUND = {"nan": "there is no NaN", "inf": "there is no infinity"}
_SOUGHT = ("absmax", "min", "max", "nan", "inf")
_DEFAULTS = DisplayOptions()
T = TypeVar("T", bound=torch.Tensor | StoredValues)


class LookedAt(NamedTuple):
    """The tensor in the navigator, which this does not keep alive.

    `held` returns it, or None if it is gone. `suggestion` is a name for the array of a window. `faces` replace `held`:
    tensors of one shape with their labels.
    """

    held: Callable[[], torch.Tensor | StoredValues | None] = lambda: None
    name: str = ""
    binder: Binder | None = None
    suggestion: str = "a_np"
    options: DisplayOptions = _DEFAULTS
    faces: tuple[tuple[str, LookedAt], ...] = ()

    def subject(self) -> Subject:
        return subject_of(living(self.held()))

    def array_of(self, subject: Subject, window: Window) -> Any:
        """Return a copy of the elements in a window."""
        array = gathered(subject.tensor, subject.info, subject.plan, window.places)
        array = array[tuple(slice(None) if isinstance(item, slice) else 0 for item in window.index)]
        return array.T if window.is_transposed else array


def _integers(value: Any) -> Index:
    if not isinstance(value, (list, tuple)):
        raise BadRequestError(NONSENSE)
    return tuple(map(integer_of, value))


class Values:
    """Serves windows on the values of one live part, and keeps no tensor alive."""

    def __init__(self, is_latest: Callable[[Request], bool]) -> None:
        self.looked_at, self.is_shown, self._is_latest = LookedAt(), False, is_latest

    def show(self, looked_at: LookedAt, goal: str | Index = "") -> Answer:
        """Look at another tensor, and return what the page needs to open a window on it.

        `goal` is where it opens: "nan", "inf", "min", "max", "absmax", or an index.
        """
        if not isinstance(goal, tuple) and goal not in ("", *_SOUGHT):
            raise BadRequestError(NONSENSE)
        self.looked_at, self.is_shown = looked_at, True
        return {
            "type": "values",
            "name": looked_at.name or "the tensor",
            "suggestion": looked_at.suggestion if looked_at.binder is not None else "",
            "goal": list(goal) if isinstance(goal, tuple) else goal,
        }

    def _face(self, request: Request) -> int:
        """Return the number of the requested face; the last one by default."""
        last = len(self.looked_at.faces) - 1
        return min(max(integer_of(request.get("face", last)), 0), last)

    def _asked(self, request: Request) -> tuple[LookedAt, Subject, Window]:
        faces = self.looked_at.faces
        looked_at = faces[self._face(request)][1] if faces else self.looked_at
        subject = looked_at.subject()
        return looked_at, subject, _window_asked(subject.shape, request)

    # --- a window

    def move(self, request: Request) -> tuple[Answer, list[bytes]]:
        looked_at, subject, window = self._asked(request)
        window, shown, text = self._aimed(subject, window, request)
        seen, shard = read_window(subject, window), subject.shard
        places = list(map(list, window.places))
        if shard is not None and window.numel:
            # The page shows indices in the whole.
            places = [[first + i for i in some] for first, some in zip(shard.offsets or (), places, strict=True)]
        answer: Answer = {
            "type": "window",
            "shape": window.shape,
            "axes": [window.row_axis, window.column_axis],
            "corner": window.corner,
            "size": [window.num_rows, window.num_columns],
            "places": places,
            "dtype": name_of(subject.info.dtype),
            "index": window_text(window, shard),
            "texts": seen.texts,
            "exact": seen.exact,
            "scope": shard.scope if shard is not None else "",
            "overview": _overview_offered(subject, window, looked_at.options.stats_nbytes),
            "show": shown,
            "text": text if window.numel else "no elements",
            "faces": [label for label, _ in self.looked_at.faces],
        }
        if self.looked_at.faces:
            # Each element has its values on all faces.
            exact = (read_window(one.subject(), window).exact for _, one in self.looked_at.faces)
            values = ([f"{label} {text}" for text in some] for label, some in zip(answer["faces"], exact, strict=True))
            answer |= {"face": self._face(request), "exact": list(map("  ".join, zip(*values, strict=True)))}
        return answer, [bytes(shade & 255 for shade in seen.shades)]

    def _aimed(self, subject: Subject, window: Window, request: Request) -> tuple[Window, Index | None, str]:
        """Return the window at the requested element, its index, and a text on a search."""
        index, what, shown = request.get("index"), request.get("seek"), request.get("show")
        if index is not None:
            if not isinstance(index, str):
                raise BadRequestError(NONSENSE)
            # In a shard, the text has indices of the whole.
            shard = subject.shard
            whole, begin = (subject.shape, None) if shard is None else (shard.whole, shard.offsets)
            chosen = parse_index(index, whole, begin)
            first = chosen if shard is None else shard.index_here(chosen)
            if first is None:
                raise BadRequestError(f"{list(chosen)} is not on this rank: {shard}")
            return window.begun_at(first).centered_on(first), first if window.numel else None, ""
        if what is not None:
            return self._found(subject, window, what, request.get("after"))
        place = None if shown is None else _integers(shown)
        # The tensor may have lost dimensions since.
        if place is None or not window.numel or len(place) != len(subject.shape):
            return window, None, ""
        place = tuple(min(max(i, 0), size - 1) for i, size in zip(place, subject.shape, strict=True))
        moved = window.centered_on if request.get("isInMiddle") is True else window.moved_to_show
        return moved(place), place, ""

    def _found(self, subject: Subject, window: Window, what: Any, after: Any) -> tuple[Window, Index | None, str]:
        from tensornp.core.values.locate import place_beside

        if what not in _SOUGHT:
            raise BadRequestError(f"seek must be a known kind of element, got {str(what)[:20]!r}")
        begin = None if after is None else _integers(after)
        # The search in a tensor with another shape begins at the first element.
        is_in = begin is not None and len(begin) == len(subject.shape)
        is_in = is_in and all(0 <= i < size for i, size in zip(begin or (), subject.shape, strict=True))
        place = place_beside(subject.tensor, what, begin if is_in else None)
        if place is None:
            where = "this tensor" if subject.shard is None else f"the {subject.shard.scope}"
            return window, None, f"{_NOT_FOUND.get(what, 'there is no such element')} in {where}"
        return window.centered_on(place), place, ""

    # --- the plane around it

    def draw(self, request: Request) -> tuple[Answer, list[bytes]]:
        """Return the picture of a plane with its legend, unless there is a later request for one."""
        _, subject, window = self._asked(request)
        heatmap = overview_of(subject, window, lambda: self._is_latest(request)) if window.numel else None
        if heatmap is None:
            return {"type": "overview"}, []
        picture = {"src": data_uri(heatmap_png(heatmap)), "alt": heatmap_alt(heatmap)}
        # What a pixel covers can be seen.
        words = [word for word in legend_text(heatmap).split(" · ") if not word.startswith("a pixel is")]
        return {"type": "overview", **picture, "words": words, "plane": heatmap.shape}, []

    # --- a name

    def bind(self, request: Request) -> Answer:
        looked_at, subject, window = self._asked(request)
        name = bound(self.looked_at.binder, request, lambda: looked_at.array_of(subject, window))
        return {"type": "bound", "text": f"assigned to {name}"}


def bound(binder: Binder | None, request: Request, make: Callable[[], Any]) -> str:
    """Bind the array that `make` returns to the requested name, and return the name."""
    name = request.get("name")
    if binder is None:
        raise BadRequestError("there is no notebook to bind a name in")
    if not isinstance(name, str):
        raise BadRequestError(NONSENSE)
    name = name.strip()
    binder(name, make, request.get("overwrite") is True)
    return name


def living(held: T | None) -> T:
    if held is None:
        raise NoDataError("the tensor of this card is gone; show it again")
    return held


def _window_asked(shape: Index, request: Request) -> Window:
    corner, axes, size = request.get("corner"), request.get("axes"), _integers(request.get("size") or _SIZE)
    # The page may have seen an array of fewer dimensions.
    chosen = None if axes in (None, [None, None], [None, 0]) else _integers(axes)
    if len(size) != 2 or (chosen is not None and len(chosen) != 2):
        raise BadRequestError(NONSENSE)
    pair = (chosen[0], chosen[1]) if chosen is not None and max(chosen) < len(shape) else None
    place = () if corner is None else _integers(corner)
    return window_of(shape, axes=pair, corner=place, num_rows=size[0], num_columns=size[1])


def _overview_offered(subject: Subject, window: Window, unasked_nbytes: int) -> str:
    """Return the cost of an overview: "free", the bytes read, or ``""`` without one."""
    if not window.numel or all(size <= most for size, most in zip(window.plane, SEEN_WHOLE, strict=True)):
        return ""
    nbytes = math.prod(window.plane) * subject.info.itemsize
    is_near = type(subject.tensor) is StoredValues or nbytes_unasked(subject.info) > 0
    return "free" if is_near and nbytes <= unasked_nbytes else f"reads {format_nbytes(nbytes)}"
