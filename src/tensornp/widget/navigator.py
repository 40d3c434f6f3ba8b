"""Serve windows of a tensor to the navigator on a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import traitlets

from tensornp.core.values.pictures.planes import overview_of
from tensornp.core.values.shown.window import Index, Window, index_here, parse_index
from tensornp.core.values.shown.window_values import Subject, read_window, subject_of
from tensornp.errors import BadRequestError, NoDataError
from tensornp.widget.answering import AnsweringWidget, Answers
from tensornp.widget.dock import module, stylesheet
from tensornp.widget.looked_at import LookedAt, nothing
from tensornp.widget.window_data import counts_places, overview_data, window_data
from tensornp.widget.window_request import (
    NONSENSE,
    integer,
    place_asked,
    places_asked,
    window_asked,
    window_turned,
)

MAX_NBYTES = 19_000
"""Bytes of one answer, without the kernel's envelope."""
_GONE = "the tensor of this card is gone; show it again"
_NOT_FOUND = {"nan": "there is no NaN", "inf": "there is no infinity"}
_SOUGHT = ("absmax", "min", "max", "nan", "inf")


class NavigatorWidget(AnsweringWidget):
    """A window on the values of a tensor, which docks into the element of class `anchor`.

    A request of the page is complete by itself, so nothing of what it sees is kept here; each has a number, and its
    answer has the same.
    """

    _esm = module("navigator")
    _css = stylesheet("navigator")

    name = traitlets.Unicode(help="how the grid calls what it shows").tag(sync=True)
    suggestion = traitlets.Unicode(help="the name that is offered for the array of a window").tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    rounds = traitlets.Int(0, help="counts what may have changed the tensor: the page asks again").tag(sync=True)
    goal: traitlets.List[Any] = traitlets.List(help="what is looked for at once, and a count of such goals").tag(
        sync=True
    )

    def __init__(self, looked_at: LookedAt | None = None, *, anchor: str = "") -> None:
        self._on_left: Callable[[], None] = nothing
        self._looked_at = looked_at or LookedAt()
        answers: Answers = {"move": self._moved, "overview": self._draw, "bind": self._bound}
        super().__init__(answers, anchor=anchor, **self._said_of(self._looked_at))

    def show(
        self, looked_at: LookedAt, *, anchor: str, on_left: Callable[[], None] = nothing, goal: str | Index = ""
    ) -> None:
        """Move to the element of class `anchor`; calls `on_left` when it moves on.

        `goal` is what is looked for at once: "nan", "inf", "min", "max", "absmax", or an index.
        """
        with self._lock, self.hold_sync():
            self.rest()
            self.aim(goal)
            self._looked_at, self._on_left = looked_at, on_left
            for trait, value in self._said_of(looked_at).items():
                setattr(self, trait, value)
            self.anchor = anchor

    @staticmethod
    def _said_of(looked_at: LookedAt) -> dict[str, Any]:
        can_bind = looked_at.binder is not None
        return {"name": looked_at.name or "the tensor", "suggestion": looked_at.suggestion, "can_bind": can_bind}

    def stay(self) -> None:
        """Go on without the one who has opened it, and who moves on."""
        with self._lock:
            self._on_left = nothing

    def aim(self, goal: str | Index) -> None:
        """Make the page search for the next `goal`, such as "nan", go to an index, or do nothing."""
        self.goal = [list(goal) if isinstance(goal, tuple) else goal, (self.goal[1] if self.goal else 0) + 1]

    def look_again(self) -> None:
        """Make the page request its window again, as the tensor may have changed."""
        if self.anchor:
            self.rounds += 1

    def rest(self) -> None:
        """Let go of the tensor, and leave the page until the next `show`."""
        with self._lock, self.hold_sync():
            on_left, self._on_left = self._on_left, nothing
            self._looked_at, self.anchor = LookedAt(), ""
            self._latest.clear()
            on_left()

    def close(self) -> None:
        """Take it out of the page for good."""
        self.rest()
        super().close()

    def _waits_as(self, request: Mapping[str, Any]) -> Hashable | None:
        return "overview" if request["type"] == "overview" else None

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "close":
            self.rest()
        super()._receive(_, content, buffers)

    def _face(self, request: Mapping[str, Any]) -> int:
        """Return the number of the requested face; the last one by default."""
        last = len(self._looked_at.faces) - 1
        return min(max(integer(request.get("face") if "face" in request else last), 0), last)

    def _looked_at_by(self, request: Mapping[str, Any]) -> LookedAt:
        faces = self._looked_at.faces
        return faces[self._face(request)][1] if faces else self._looked_at

    def _subject(self, request: Mapping[str, Any]) -> Subject:
        return _subject_of(self._looked_at_by(request), integer(request.get("part", 0)))

    # --- a window

    def _moved(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a request for a window, and the shades as bytes."""
        looked_at, subject = self._looked_at_by(request), self._subject(request)
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
        faces = self._looked_at.faces
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
            if what not in _SOUGHT:
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
        is_counted = what in _NOT_FOUND and (is_back or counts_places(self._looked_at_by(request), subject))
        beside = place_beside(subject.tensor, what, after, is_back=is_back, is_counted=is_counted)
        if beside is None:
            return None, ""
        return beside.index, f"{beside.number:,} of {beside.count:,}" if is_counted else ""

    # --- the plane around it

    def _draw(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return an overview, unless there is a later request for one."""
        subject = self._subject(request)
        window = window_asked(subject.shape, request)
        overview = overview_of(subject, window, lambda: self._is_latest(request)) if window.numel else None
        return ({"type": "overview"} if overview is None else overview_data(overview)), []

    # --- a name

    def _bound(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Bind the array of a window to a name."""
        looked_at, name, binder = self._looked_at_by(request), request.get("name"), self._looked_at.binder
        if binder is None:
            raise BadRequestError("there is no notebook to bind a name in")
        if not isinstance(name, str):
            raise BadRequestError(NONSENSE)
        subject = self._subject(request)
        window = window_asked(subject.shape, request)
        binder(name, lambda: looked_at.array_of(subject, window), request.get("overwrite") is True)
        return {"type": "bound", "text": f"bound to {name}"}, []


_the_one: list[NavigatorWidget] = []
_owned: list[NavigatorWidget] = []


def the_navigator() -> NavigatorWidget:
    """Return the navigator of all cards, made on first use."""
    while _the_one and _the_one[0].comm is None:
        del _the_one[0]
    if not _the_one:
        _the_one.append(NavigatorWidget())
    return _the_one[0]


def own_navigator() -> NavigatorWidget:
    """Return a new navigator that keeps its window; the caller closes it."""
    _owned[:] = [one for one in _owned if one.comm is not None]
    _owned.append(NavigatorWidget())
    return _owned[-1]


def look_again() -> None:
    """Refresh the pages of all open navigators."""
    for navigator in (*_the_one, *_owned):
        if navigator.comm is not None:
            navigator.look_again()


def leave(anchor: str) -> None:
    """Have the one navigator rest, if it is in the element of class `anchor`."""
    for navigator in _the_one:
        if navigator.comm is not None and anchor and navigator.anchor == anchor:
            navigator.rest()


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
