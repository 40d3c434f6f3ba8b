"""Serve windows of a tensor to a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tensornp.core.values.pictures.planes import overview_of
from tensornp.core.values.shown.window import Index, Window, index_here, parse_index
from tensornp.core.values.shown.window_values import Subject, read_window, subject_of
from tensornp.errors import BadRequestError, NoDataError
from tensornp.widget.looked_at import LookedAt
from tensornp.widget.window_data import counts_places, overview_data, window_data
from tensornp.widget.window_request import (
    NONSENSE,
    integer,
    place_asked,
    places_asked,
    window_asked,
    window_turned,
)

Request = Mapping[str, Any]
Answer = dict[str, Any]
Handler = Callable[[Request], Answer | tuple[Answer, list[bytes]]]
"""Answers a request of a page, perhaps with numbers that travel as bytes."""
MAX_NBYTES = 19_000
"""Bytes of one answer, without the kernel's envelope."""
_GONE = "the tensor of this card is gone; show it again"
_NOT_FOUND = {"nan": "there is no NaN", "inf": "there is no infinity"}
SOUGHT = ("absmax", "min", "max", "nan", "inf")


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

    def _face(self, request: Mapping[str, Any]) -> int:
        """Return the number of the requested face; the last one by default."""
        last = len(self.looked_at.faces) - 1
        return min(max(integer(request.get("face") if "face" in request else last), 0), last)

    def _face_of(self, request: Mapping[str, Any]) -> LookedAt:
        faces = self.looked_at.faces
        return faces[self._face(request)][1] if faces else self.looked_at

    def _subject(self, request: Mapping[str, Any]) -> Subject:
        return _subject_of(self._face_of(request), integer(request.get("part", 0)))

    # --- a window

    def _moved(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a request for a window, and the shades as bytes."""
        looked_at, subject = self._face_of(request), self._subject(request)
        window, shown, words = self._aimed(subject, window_asked(subject.shape, request), request)
        while True:
            seen = read_window(subject, window)
            answer = {**window_data(looked_at, subject, window, seen), "show": shown, **words}
            answer |= self._faces(request, window)
            nbytes = len(json.dumps(answer, ensure_ascii=False).encode()) + len(seen.shades)
            if nbytes <= MAX_NBYTES or window.num_rows <= 1:
                return answer, [bytes(shade & 255 for shade in seen.shades)]
            window = replace(window, num_rows=window.num_rows * MAX_NBYTES // (nbytes + 1) or 1)
            window = window if shown is None else window.moved_to_show(shown)

    def _faces(self, request: Mapping[str, Any], window: Window) -> dict[str, Any]:
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

    def _aimed(
        self, subject: Subject, window: Window, request: Mapping[str, Any]
    ) -> tuple[Window, Index | None, dict[str, str]]:
        """Return the window at the requested element, its index and texts on it."""
        index, what, shown = request.get("index"), request.get("seek"), places_asked(request.get("show"))
        words = {"text": "", "position": ""}
        if index is not None:
            if not isinstance(index, str):
                raise BadRequestError(NONSENSE)
            return *window_turned(window, _index_asked(index, subject), request), words
        if what is not None:
            if what not in SOUGHT:
                raise BadRequestError(f"seek must be a known kind of element, got {str(what)[:20]!r}")
            # Of a tensor that has another shape by now, the search begins at the first element.
            after = place_asked(request.get("after"), subject.shape)
            place, position = self._found(request, subject, what, after)
            if place is None:
                words["text"] = f"{_NOT_FOUND.get(what, 'there is no such element')} in {_searched(subject)}"
                return window, None, words
            # Of a nested tensor the other parts may have more, and larger ones.
            words["text"] = f"looked for in {_searched(subject)}" if subject.num_parts > 1 else ""
            return window.centered_on(place), place, {**words, "position": position}
        # Of a tensor that has lost dimensions meanwhile, another index is no use.
        if shown is None or not window.numel or len(shown) != len(subject.shape):
            return window, None, words
        place = tuple(min(max(i, 0), size - 1) for i, size in zip(shown, subject.shape, strict=True))
        # A step goes on by as little as it needs; what has no room any more is what the page is about.
        moved = window.centered_on if request.get("isInMiddle") is True else window.moved_to_show
        return moved(place), place, words

    def _found(
        self, request: Mapping[str, Any], subject: Subject, what: str, after: Index | None
    ) -> tuple[Index | None, str]:
        """Return the next matching element, and its number if counting is cheap."""
        from tensornp.core.values.locate import place_beside

        is_back = request.get("isBack") is True
        # Of extremes there is one that counts.
        is_counted = what in _NOT_FOUND and (is_back or counts_places(self._face_of(request), subject))
        beside = place_beside(subject.tensor, what, after, is_back=is_back, is_counted=is_counted)
        if beside is None:
            return None, ""
        return beside.index, f"{beside.number:,} of {beside.count:,}" if is_counted else ""

    # --- the plane around it

    def _draw(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return an overview, unless there is a later request for one."""
        subject = self._subject(request)
        window = window_asked(subject.shape, request)
        overview = overview_of(subject, window, lambda: self.is_latest(request)) if window.numel else None
        return ({"type": "overview"} if overview is None else overview_data(overview)), []

    # --- a name

    def _bound(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Bind the array of a window to a name."""
        looked_at, name, binder = self._face_of(request), request.get("name"), self.looked_at.binder
        if binder is None:
            raise BadRequestError("there is no notebook to bind a name in")
        if not isinstance(name, str):
            raise BadRequestError(NONSENSE)
        subject = self._subject(request)
        window = window_asked(subject.shape, request)
        binder(name, lambda: looked_at.array_of(subject, window), request.get("overwrite") is True)
        return {"type": "bound", "text": f"bound to {name}"}, []


def _subject_of(looked_at: LookedAt, part: int = 0) -> Subject:
    tensor = looked_at.held()
    if tensor is None:
        raise NoDataError(_GONE)
    return subject_of(tensor, part)


def _index_asked(text: str, subject: Subject) -> tuple[int | slice, ...]:
    """Return the index in a text; in a shard, the text has indices of the whole."""
    shard = subject.shard
    return parse_index(text, subject.shape) if shard is None else index_here(parse_index(text, shard.whole), shard)


def _searched(subject: Subject) -> str:
    """Return the object of a search as text: a tensor, or a part of a nested one."""
    if subject.shard is not None:
        return f"the {subject.shard.scope}"
    if subject.num_parts < 2:
        return "this tensor"
    return f"part {subject.part} of {subject.num_parts}; the others are not searched"
