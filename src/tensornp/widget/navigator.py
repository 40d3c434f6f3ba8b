"""The kernel's side of the navigator: a page asks for a window of a tensor, and gets that window and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
import traitlets

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.locks import Lock
from tensornp.core.tensor import dtypes
from tensornp.core.values.reading.stored import StoredValues
from tensornp.core.values.shown.setting_code import setting_code
from tensornp.core.values.shown.typed_index import expression_of, parse_index
from tensornp.core.values.shown.window import Index, Window
from tensornp.core.values.shown.window_values import Seen, Subject, read_window, subject_of
from tensornp.errors import BadRequestError, NoDataError, TensornpError
from tensornp.render.pictures.window import legend_of
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.window_request import NONSENSE, index_in, integer, integers, window_asked, window_turned

MAX_NBYTES = 19_000
"""Bytes of one answer, without the kernel's envelope."""
_GONE = "the tensor of this card is gone; show it again"
_UNREACHED = "no name reaches this tensor any more, so that no line of code would set it; bind one first"
_NOT_FOUND = {"nan": "there is no NaN", "inf": "there is no infinity"}
_SOUGHT = ("absmax", "min", "max", "nan", "inf")

Held = Callable[[], torch.Tensor | StoredValues | None]
"""Gives the tensor that is looked at, or None where it is gone."""
Reaches = Callable[[str, Any], bool]
"""Tells whether an expression still reaches the tensor."""
Seek = Callable[[torch.Tensor | StoredValues, str, Index | None], Index | None]
"""Gives the index of the next NaN ("nan") or infinity ("inf") after one, of the "min", the "max" or the "absmax"."""


class NavigatorWidget(DockingWidget):
    """A window on the values of a tensor, which docks into the element of class `anchor`.

    A request of the page is complete by itself, so nothing of what it sees is kept here; each has a number, and its
    answer has the same.

    Parameters
    ----------
    held : callable, optional
        What gives the tensor while it lives.
    seek : callable, optional
        What finds the next NaN and the like; without it, `tensornp.core.values.find.locate.next_place`.
    name, array_name : str
        How the tensor, and an array of it, are called in the expressions that are offered.
    """

    _esm = module("navigator")
    _css = stylesheet("navigator")

    name = traitlets.Unicode("t").tag(sync=True)
    rounds = traitlets.Int(0, help="counts what may have changed the tensor: the page asks again").tag(sync=True)
    goal: traitlets.List[Any] = traitlets.List(help="what is looked for at once, and a count of such goals").tag(
        sync=True
    )

    def __init__(
        self,
        held: Held | None = None,
        *,
        anchor: str = "",
        name: str = "t",
        array_name: str = "a",
        printoptions: Mapping[str, Any] = MappingProxyType({}),
        seek: Seek | None = None,
    ) -> None:
        # Requests may come in a thread of their own while a cell runs (a subshell of the kernel).
        self._lock = Lock()
        self._held: Held = held or _none
        self._on_left: Callable[[], None] = _none
        self._array_name, self._printoptions, self._seek = array_name, printoptions, seek or _next_place
        self._reaches: Reaches = _always
        super().__init__(anchor=anchor, name=name)

    def show(
        self,
        held: Held,
        *,
        anchor: str,
        name: str = "t",
        array_name: str = "a",
        printoptions: Mapping[str, Any] = MappingProxyType({}),
        reaches: Reaches | None = None,
        on_left: Callable[[], None] = lambda: None,
        goal: str = "",
    ) -> None:
        """Move to the element of class `anchor` and look at what `held` gives; `on_left` is called when it moves on.

        `reaches` tells whether `name` still reaches that; where it does not, no expression claims so. `goal` is what
        is looked for at once: "nan", "inf", "min", "max", "absmax".
        """
        with self._lock, self.hold_sync():
            self.rest()
            self.aim(goal)
            self._held, self._on_left = held, on_left
            self._array_name, self._printoptions, self._reaches = array_name, printoptions, reaches or _always
            self.name, self.anchor = name, anchor

    def aim(self, goal: str) -> None:
        """Have the page look for the next "nan" or the like; for nothing, if `goal` is empty."""
        self.goal = [goal, (self.goal[1] if self.goal else 0) + 1]

    def look_again(self) -> None:
        """Have the page ask for its window again, since the tensor may have been written to."""
        if self.anchor:
            self.rounds += 1

    def rest(self) -> None:
        """Let go of the tensor, and leave the page until the next `show`."""
        with self._lock, self.hold_sync():
            on_left, self._on_left = self._on_left, _none
            self._held, self.anchor = _none, ""
            on_left()

    def close(self) -> None:
        """Take it out of the page for good."""
        self.rest()
        super().close()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take no state from the browser, which may send anything."""

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        super()._receive(_, content, buffers)
        kind = content.get("type") if isinstance(content, dict) else None
        if kind not in ("move", "edit"):
            return
        page, number = content.get("page"), content.get("number")
        if not isinstance(page, str) or type(number) is not int:
            return
        with self._lock:
            try:
                answer, sent = self._moved(content) if kind == "move" else (self._edited(content), [])
            except TensornpError as error:
                answer, sent = {"type": "error", "text": str(error)}, []
            except Exception as error:
                answer, sent = {"type": "error", "text": error_text(error)}, []
            self.send({**answer, "page": page, "number": number}, sent)

    def _subject(self, request: Mapping[str, Any]) -> Subject:
        tensor = self._held()
        if tensor is None:
            raise NoDataError(_GONE)
        return subject_of(tensor, integer(request.get("part", 0)))

    def _moved(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a request for a window, and the numbers that travel as bytes."""
        subject = self._subject(request)
        window, shown, text = self._aimed(subject, window_asked(subject.shape, request), request)
        while True:
            seen = read_window(subject, window, self._printoptions)
            answer = self._said(subject, window, seen, shown, text)
            nbytes = len(json.dumps(answer, ensure_ascii=False).encode()) + len(seen.shades) + len(seen.bits)
            if nbytes <= MAX_NBYTES or window.num_rows <= 1:
                return answer, [bytes(shade & 255 for shade in seen.shades), seen.bits]
            window = replace(window, num_rows=window.num_rows * MAX_NBYTES // (nbytes + 1) or 1)
            window = window if shown is None else window.moved_to_show(shown)

    def _aimed(self, subject: Subject, window: Window, request: Mapping[str, Any]) -> tuple[Window, Index | None, str]:
        """Return the window moved to what is asked for, the index of that, and what there is to say of it."""
        index, what, shown = request.get("index"), request.get("seek"), request.get("show")
        after = None if request.get("after") is None else integers(request.get("after"))
        if index is not None:
            if not isinstance(index, str):
                raise BadRequestError(NONSENSE)
            return *window_turned(window, parse_index(index, subject.shape), request), ""
        if what is not None:
            if what not in _SOUGHT:
                raise BadRequestError(f"nothing can be looked for that is called {str(what)[:20]!r}")
            # Of a tensor that has another shape by now, the search begins at the first element.
            place = self._seek(subject.tensor, what, after if _is_in(after, subject.shape) else None)
            if place is None:
                return window, None, f"{_NOT_FOUND.get(what, 'there is no such element')} in {_searched(subject)}"
            place = tuple(place)
            # Of a nested tensor the other parts may have more, and larger ones.
            said = f"looked for in {_searched(subject)}" if subject.num_parts > 1 else ""
            return window.centered_on(place), place, said
        # Of a tensor that has lost dimensions meanwhile, another index is no use.
        if shown is None or not window.numel or len(integers(shown)) != len(subject.shape):
            return window, None, ""
        place = tuple(min(max(i, 0), size - 1) for i, size in zip(integers(shown), subject.shape, strict=True))
        # A step goes on by as little as it needs; what has no room any more is what the page is about.
        moved = window.centered_on if request.get("isFit") is True else window.moved_to_show
        return moved(place), place, ""

    def _said(self, subject: Subject, window: Window, seen: Seen, shown: Index | None, text: str) -> dict[str, Any]:
        is_reached = self._is_reached()
        info, code = subject.info, subject.code(self.name if is_reached else "t")
        array = self._array_name if is_reached else "a"
        array = f"{array}[{subject.part}]" if subject.num_parts else array
        return {
            "type": "window",
            "shape": window.shape,
            "axes": [window.row_axis, window.column_axis],
            "corner": window.corner,
            "size": [window.num_rows, window.num_columns],
            "part": subject.part,
            "num_parts": subject.num_parts,
            "dtype": dtypes.name_of(info.dtype),
            "device": str(info.device),
            "texts": seen.texts,
            "exact": seen.exact,
            "digits": 1 if subject.shape != info.shape else 0,
            "bits_dtype": seen.bits_dtype,
            "num_numbers": 2 if info.dtype.is_complex else 1,
            "scale": seen.scale,
            "legend": legend_of(seen, is_complex=info.dtype.is_complex),
            "numpy": expression_of(array, window),
            "torch": expression_of(code, window) if code else "",
            "show": shown,
            "text": text,
        }

    def _is_reached(self) -> bool:
        return self._reaches(self.name, self._held())

    def _edited(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the line of code that would set an element; nothing runs it."""
        subject, text = self._subject(request), request.get("text")
        if not isinstance(text, str):
            raise BadRequestError(NONSENSE)
        index = index_in(request.get("index"), subject.shape)
        if not self._is_reached():
            raise BadRequestError(_UNREACHED)
        name = self.name + subject.access[1:]
        return {"type": "code", "text": setting_code(subject.info, name, index, text)}


def _always(name: str, tensor: Any) -> bool:
    """Stand for a name that nobody can give to another tensor."""
    return True


_the_one: list[NavigatorWidget] = []


def the_navigator() -> NavigatorWidget:
    """Return the one that all cards share, made when it is first asked for: its code travels only then."""
    while _the_one and _the_one[0].comm is None:
        del _the_one[0]
    if not _the_one:
        _the_one.append(NavigatorWidget())
    return _the_one[0]


def look_again() -> None:
    """Have the page of the one navigator read again what it shows, if it is open."""
    for navigator in _the_one:
        if navigator.comm is not None:
            navigator.look_again()


def _none() -> None:
    """Stand for a tensor that is not there, and for what nobody waits for."""


def _is_in(index: Index | None, shape: Index) -> bool:
    return (
        index is not None
        and len(index) == len(shape)
        and all(0 <= i < size for i, size in zip(index, shape, strict=True))
    )


def _next_place(tensor: torch.Tensor | StoredValues, what: str, after: Index | None) -> Index | None:
    from tensornp.core.values.find.locate import next_place

    return next_place(tensor, what, after)


def _searched(subject: Subject) -> str:
    """Return in what an element is looked for: the parts of a nested tensor are seen one by one."""
    if subject.num_parts < 2:
        return "this tensor"
    return f"part {subject.part} of {subject.num_parts}; the others are not searched"
