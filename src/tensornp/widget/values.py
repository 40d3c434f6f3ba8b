"""Serve windows of a tensor to a page, whose requests may be anything."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.values.pictures.planes import may_be_read_unasked, overview_of
from tensornp.core.values.shown.window import Index, Window, index_here, parse_index, window_of, window_text
from tensornp.core.values.shown.window_values import Subject, read_window, subject_of
from tensornp.errors import BadRequestError, NoDataError
from tensornp.render.pictures.legend import heatmap_alt, overview_legend, window_legend
from tensornp.render.pictures.png import data_uri, heatmap_png
from tensornp.widget.looked_at import LookedAt

Request = Mapping[str, Any]
Answer = dict[str, Any]
Handler = Callable[[Request], Answer | tuple[Answer, list[bytes]]]
"""Answers a request of a page, perhaps with numbers that travel as bytes."""
MAX_NBYTES = 19_000
"""Bytes of one answer, without the kernel's envelope."""
NONSENSE = "the page has asked for something that is not here; reload the page"
SEEN_WHOLE = 16, 16
"""Rows and columns of a plane without an overview."""
_SIZE = 16, 12
"""Rows and columns of a window if the page does not say how many it has room for."""
_GONE = "the tensor of this card is gone; show it again"
_NOT_FOUND = {"nan": "there is no NaN", "inf": "there is no infinity"}
SOUGHT = ("absmax", "min", "max", "nan", "inf")


def integer_of(value: Any) -> int:
    """Return the value if it is an integer, or raise BadRequestError."""
    if type(value) is not int:
        raise BadRequestError(NONSENSE)
    return value


def _integers(value: Any) -> Index:
    if not isinstance(value, (list, tuple)):
        raise BadRequestError(NONSENSE)
    return tuple(map(integer_of, value))


class Values:
    """The window on values of one live part.

    A request is complete by itself; only the tensor that was shown last is remembered, and not kept alive.
    """

    def __init__(self) -> None:
        self.looked_at = LookedAt()
        self.is_shown = False
        self.is_latest: Callable[[Request], bool] = lambda request: True

    @property
    def handlers(self) -> dict[str, Handler]:
        """The functions that answer the requests of a window."""
        return {"move": self._moved, "overview": self._draw, "bind window": self._bound}

    def show(self, looked_at: LookedAt, goal: str | Index = "") -> Answer:
        """Look at another tensor, and return what the page needs to open a window on it.

        `goal` is where it opens: "nan", "inf", "min", "max", "absmax", or an index.
        """
        if not isinstance(goal, tuple) and goal not in ("", *SOUGHT):
            raise BadRequestError(NONSENSE)
        self.looked_at, self.is_shown = looked_at, True
        suggestion = looked_at.suggestion if looked_at.binder is not None else ""
        return {
            "type": "values",
            "name": looked_at.name or "the tensor",
            "suggestion": suggestion,
            "goal": list(goal) if isinstance(goal, tuple) else goal,
        }

    def _face(self, request: Request) -> int:
        """Return the number of the requested face; the last one by default."""
        last = len(self.looked_at.faces) - 1
        return min(max(integer_of(request.get("face", last)), 0), last)

    def _face_of(self, request: Request) -> LookedAt:
        faces = self.looked_at.faces
        return faces[self._face(request)][1] if faces else self.looked_at

    def _subject(self, request: Request) -> Subject:
        return _subject_of(self._face_of(request), integer_of(request.get("part", 0)))

    # --- a window

    def _moved(self, request: Request) -> tuple[Answer, list[bytes]]:
        """Return the answer to a request for a window, and the shades as bytes."""
        looked_at, subject = self._face_of(request), self._subject(request)
        window, shown, text = self._aimed(subject, _window_asked(subject.shape, request), request)
        while True:
            seen = read_window(subject, window)
            legend = window_legend(seen, is_complex=subject.info.dtype.is_complex)
            answer = {
                **_window_data(subject, window),
                **looked_at.expressions(subject, window),
                "texts": seen.texts,
                "exact": seen.exact,
                "legend": " · ".join([legend, *([subject.shard.scope] if subject.shard else [])]),
                "overview": _overview_offered(subject, window, looked_at.options.stats_nbytes),
                "show": shown,
                "text": text,
                **self._faces(request, window),
            }
            nbytes = len(json.dumps(answer, ensure_ascii=False).encode()) + len(seen.shades)
            if nbytes <= MAX_NBYTES or window.num_rows <= 1:
                return answer, [bytes(shade & 255 for shade in seen.shades)]
            window = replace(window, num_rows=window.num_rows * MAX_NBYTES // (nbytes + 1) or 1)
            window = window if shown is None else window.moved_to_show(shown)

    def _faces(self, request: Request, window: Window) -> Answer:
        """Return the labels of all faces, and the exact values of each element on all of them."""
        faces = self.looked_at.faces
        if not faces:
            return {"faces": []}
        labels = [label for label, _ in faces]
        exact = [read_window(_subject_of(one), window).exact for _, one in faces]
        texts = [
            "  ".join(f"{label} {text}" for label, text in zip(labels, some, strict=True))
            for some in zip(*exact, strict=True)
        ]
        return {"faces": labels, "face": self._face(request), "exact": texts}

    def _aimed(self, subject: Subject, window: Window, request: Request) -> tuple[Window, Index | None, str]:
        """Return the window at the requested element, its index, and a text on a search."""
        index, what, shown = request.get("index"), request.get("seek"), request.get("show")
        if index is not None:
            chosen = _index_asked(index, subject)
            first = tuple(item.start if isinstance(item, slice) else item for item in chosen)
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
        """Return the window at the next matching element."""
        from tensornp.core.values.locate import place_beside

        if what not in SOUGHT:
            raise BadRequestError(f"seek must be a known kind of element, got {str(what)[:20]!r}")
        begin = None if after is None else _integers(after)
        # The search in a tensor with another shape begins at the first element.
        is_in = begin is not None and len(begin) == len(subject.shape)
        is_in = is_in and all(0 <= i < size for i, size in zip(begin or (), subject.shape, strict=True))
        place = place_beside(subject.tensor, what, begin if is_in else None)
        if place is None:
            return window, None, f"{_NOT_FOUND.get(what, 'there is no such element')} in {_searched(subject)}"
        # Other parts of a nested tensor may have more, and larger ones.
        text = f"looked for in {_searched(subject)}" if subject.num_parts > 1 else ""
        return window.centered_on(place), place, text

    # --- the plane around it

    def _draw(self, request: Request) -> tuple[Answer, list[bytes]]:
        """Return the picture of a plane with its legend, unless there is a later request for one."""
        subject = self._subject(request)
        window = _window_asked(subject.shape, request)
        overview = overview_of(subject, window, lambda: self.is_latest(request)) if window.numel else None
        if overview is None:
            return {"type": "overview"}, []
        heatmap, limits = overview.heatmap, overview.limits
        picture = {"src": data_uri(heatmap_png(heatmap, limits)), "alt": heatmap_alt(heatmap, limits)}
        return {"type": "overview", **picture, "words": overview_legend(overview), "plane": heatmap.shape}, []

    # --- a name

    def _bound(self, request: Request) -> tuple[Answer, list[bytes]]:
        """Bind the array of a window to a name."""
        looked_at, name, binder = self._face_of(request), request.get("name"), self.looked_at.binder
        if binder is None:
            raise BadRequestError("there is no notebook to bind a name in")
        if not isinstance(name, str):
            raise BadRequestError(NONSENSE)
        subject = self._subject(request)
        window = _window_asked(subject.shape, request)
        binder(name, lambda: looked_at.array_of(subject, window), request.get("overwrite") is True)
        return {"type": "bound", "text": f"bound to {name}"}, []


def _subject_of(looked_at: LookedAt, part: int = 0) -> Subject:
    tensor = looked_at.held()
    if tensor is None:
        raise NoDataError(_GONE)
    return subject_of(tensor, part)


def _window_asked(shape: Index, request: Request) -> Window:
    """Return the requested window, limited to an array of `shape`."""
    corner, axes, size = request.get("corner"), request.get("axes"), _integers(request.get("size") or _SIZE)
    if axes in ([None, None], [None, 0]):
        # The page has seen an array of fewer dimensions.
        axes = None
    chosen = None if axes is None else _integers(axes)
    if len(size) != 2 or (chosen is not None and len(chosen) != 2):
        raise BadRequestError(NONSENSE)
    is_there = chosen is not None and max(chosen) < len(shape)
    return window_of(
        shape,
        axes=(chosen[0], chosen[1]) if chosen is not None and is_there else None,
        corner=() if corner is None else _integers(corner),
        num_rows=size[0],
        num_columns=size[1],
    )


def _index_asked(text: Any, subject: Subject) -> tuple[int | slice, ...]:
    """Return the index in a text; in a shard, the text has indices of the whole."""
    if not isinstance(text, str):
        raise BadRequestError(NONSENSE)
    shard = subject.shard
    return parse_index(text, subject.shape) if shard is None else index_here(parse_index(text, shard.whole), shard)


def _searched(subject: Subject) -> str:
    """Return the object of a search as text: a tensor, or a part of a nested one."""
    if subject.shard is not None:
        return f"the {subject.shard.scope}"
    if subject.num_parts < 2:
        return "this tensor"
    return f"part {subject.part} of {subject.num_parts}; the others are not searched"


def _window_data(subject: Subject, window: Window) -> Answer:
    """Return the place of a window; `places` are its indices on each axis, those of the whole for a shard."""
    info, shard, places = subject.info, subject.shard, list(window.places)
    if shard is not None and window.numel:
        places = [[first + i for i in some] for first, some in zip(shard.offsets or (), places, strict=True)]
    return {
        "type": "window",
        "shape": window.shape,
        "axes": [window.row_axis, window.column_axis],
        "corner": window.corner,
        "size": [window.num_rows, window.num_columns],
        "places": places,
        "part": subject.part,
        "num_parts": subject.num_parts,
        "dtype": name_of(info.dtype),
        "device": str(info.device),
        "index": window_text(window, shard),
    }


def _overview_offered(subject: Subject, window: Window, unasked_nbytes: int) -> str:
    """Return the cost of an overview: "free", the bytes read, or ``""`` without one."""
    if not window.numel or all(size <= most for size, most in zip(window.plane, SEEN_WHOLE, strict=True)):
        return ""
    if may_be_read_unasked(subject, window.plane, unasked_nbytes):
        return "free"
    return f"reads {format_nbytes(math.prod(window.plane) * subject.info.itemsize)}"
