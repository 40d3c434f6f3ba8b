"""Make the card of a tensor live: a mode toggle, and a name for the array."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch
import traitlets

from tensornp.core.convert.plan import MODES, mode_arguments
from tensornp.core.convert.sharded import has_part
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.text import quoted
from tensornp.core.summary.card import TensorSummary, plan_modes, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.core.tensor.info import check_tensor
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, NameTakenError, NoDataError, TensornpError
from tensornp.render.layout.bundle import bundle
from tensornp.render.static_card import Card
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.widget.dock import DockingWidget, module, stylesheet
from tensornp.widget.looked_at import Binder, LookedAt, Reaches, always
from tensornp.widget.scanning import GoOn, Scanning
from tensornp.widget.toggle_data import body_text, card_data, choice_data, figures_data, is_scan_offered

if TYPE_CHECKING:
    from tensornp.widget.navigator import NavigatorWidget

_GONE = "the tensor of this card is gone; show it again"
_MAX_REQUESTS = 100
"""Requests of pages that are remembered: one that comes a second time is not done again."""

Held = Callable[[], torch.Tensor | None]
"""Gives the tensor of a card, or None where it is gone."""


class TensorWidget(DockingWidget):
    """A live card: `mode` toggles, `array` is the array of that mode, `close` lets go of the tensor.

    Parameters
    ----------
    tensor : torch.Tensor, or None for one that rests until `show`
    look : callable, optional
        What looks around the tensor, in a notebook: for other names of its memory and for what backward has saved.
    held : callable, optional
        What gives the tensor while it lives; without it, the widget keeps it alive until it is closed.
    anchor : str
        The class of the static card that it docks into; empty for one that stands alone, with the array in it.
    suggestion : str
        The name that is offered for binding.
    binder : callable, optional
        What binds a name in the user's namespace; without one, no name is offered.
    has_values : bool
        Whether the navigator is offered: what docks into this toggle must be in the same page.
    reaches : callable, optional
        What tells whether an expression still reaches the tensor.
    """

    _esm = module("toggle")
    _css = stylesheet("toggle")

    answered = traitlets.Unicode(help="the number of the request that was answered last").tag(sync=True)
    mode = traitlets.Unicode("view", help="view, share or copy").tag(sync=True)
    card = traitlets.Dict(help="badges, lines and receipt of the mode").tag(sync=True)
    choices: traitlets.List[Any] = traitlets.List(help="the modes, and whether each is possible").tag(sync=True)
    array_text = traitlets.Unicode(help="what NumPy prints; empty where the static card shows that").tag(sync=True)
    max_height = traitlets.Int(help="lines of the array over a fold").tag(sync=True)
    is_in_row = traitlets.Bool(help="whether the array stands in the row of badges").tag(sync=True)
    suggestion = traitlets.Unicode().tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    message = traitlets.Dict().tag(sync=True)
    place = traitlets.Unicode(help="the class of what the navigator docks into").tag(sync=True)
    has_values = traitlets.Bool(help="whether the navigator is offered").tag(sync=True)
    shows_values = traitlets.Bool(help="whether the navigator is open here").tag(sync=True)
    has_stats = traitlets.Bool(help="whether statistics are offered").tag(sync=True)
    progress = traitlets.Float(-1, help="the share that a scan has read; -1 where none runs").tag(sync=True)
    figures = traitlets.Dict(help="the line of figures, once a scan has ended").tag(sync=True)

    def __init__(
        self,
        tensor: torch.Tensor | None = None,
        *,
        options: DisplayOptions | None = None,
        look: Look | None = None,
        held: Held | None = None,
        anchor: str = "",
        suggestion: str = "array_np",
        binder: Binder | None = None,
        has_values: bool = True,
        reaches: Reaches | None = None,
    ) -> None:
        if tensor is not None:
            check_tensor(tensor, "TensorWidget")
        # Callbacks may run in a thread of their own while a cell runs (a subshell of the kernel).
        self._lock = RLock()
        self._binder = binder
        self._options = options or DisplayOptions()
        self._handled: deque[Any] = deque(maxlen=_MAX_REQUESTS)
        self._bound: list[str] = []
        self._held: Held = _none
        self._has_values, self._reaches = has_values, reaches
        self._scanning: Scanning[TensorStats] | None = None
        self._own_navigator: NavigatorWidget | None = None
        if tensor is None:
            self._aim(_none, _NOTHING, None, anchor)
        else:
            self._aim(held or (lambda: tensor), summarize(tensor, self._options, look), look, anchor)
        place = anchor or f"tnp-{uuid.uuid4().hex[:8]}-values"
        super().__init__(anchor=anchor, suggestion=suggestion, can_bind=binder is not None, place=place, **self._said())

    def show(
        self, held: Held, summary: TensorSummary, *, options: DisplayOptions, look: Look, anchor: str, suggestion: str
    ) -> None:
        """Move to the card of class `anchor`, which shows the tensor `held()`."""
        self._part_from_values()
        with self._lock, self.hold_sync():
            self._forget_values()
            self.parting = self.closing_words()
            self._options = options
            self._aim(held, summary, look, anchor)
            self._paint()
            self.message, self.suggestion = {}, suggestion
            self.anchor = self.place = anchor

    def rest(self) -> None:
        """Leave the card, and wait for the next."""
        self._close_values()
        with self._lock, self.hold_sync():
            self._forget_values()
            self.parting = self.closing_words()
            self.anchor = ""
            self._held = _none

    def _aim(self, held: Held, summary: TensorSummary, look: Look | None, anchor: str) -> None:
        self._held, self._look = held, look
        self._static = self._now = summary
        self._is_in_card = bool(anchor)
        self._bound = []

    def move_into(self, anchor: str) -> str:
        """Move to a new static card of class `anchor`, and return its HTML."""
        self._part_from_values()
        with self._lock, self.hold_sync():
            self._aim(self._held, self._now, self._look, anchor)
            self._paint()
            self.anchor = self.place = anchor
            return tensor_html(self._static, self._options, anchor=anchor)

    def companions(self) -> tuple[DockingWidget, ...]:
        """Return a navigator of its own, made now."""
        from tensornp.widget.navigator import own_navigator

        self._own_navigator = own_navigator()
        return (self._own_navigator,)

    def _navigator(self) -> NavigatorWidget:
        from tensornp.widget.navigator import the_navigator

        return self._own_navigator or the_navigator()

    @property
    def reached(self) -> str:
        """Return the expression that reaches the tensor, empty if none is known."""
        return self._now.surroundings.name

    @property
    def array(self) -> Any:
        """Convert the tensor in the current mode; NoDataError if the tensor is gone."""
        with self._lock:
            return self._array_of(self._held())

    def bind(self, name: str, *, overwrite: bool = False) -> str:
        """Bind the array of the current mode to `name` in the notebook.

        Returns the line that does it again in a cell, or nothing where no name reaches the tensor.

        Raises
        ------
        NameTakenError
            If `name` is no identifier, or is taken and `overwrite` is False.
        BadRequestError
            If there is no notebook to bind in.
        """
        if self._binder is None:
            raise BadRequestError("there is no notebook to bind a name in; take .array instead")
        with self._lock:
            # Kept meanwhile, since the name may be its last one.
            tensor = self._held()
            self._binder(name, lambda: self._array_of(tensor), overwrite)
            # What is shown is what was bound, also where the tensor was written since it was shown.
            self._now = self._seen_in(self.mode, _living(tensor))
            self._paint()
            self._bound.append(f"bound to {name} ({self.mode})")
            # The tensor's own name would be that of the array.
            is_reached = re.match(r"\w+", self.reached) and not re.match(rf"{name}\b", self.reached)
            if not is_reached:
                return ""
            if self._has_part():
                return f'{name} = tnp.to_numpy({self.reached}, shard="local")'
            return f"{name} = %tonumpy --{self.mode} {self.reached}"

    def close(self) -> None:
        """Take the view out of the page and let go of the tensor."""
        self._close_values()
        with self._lock:
            self._end_scan()
            self._scanning, self._held = None, _none
        super().close()

    def closing_words(self) -> str:
        """Return the bound names, which stay in the card as a note."""
        return ", ".join(self._bound)

    def set_state(self, sync_data: Any) -> None:
        """Accept only a mode from the browser, and answer errors as text."""
        with self._lock, self.hold_sync():
            try:
                if isinstance(sync_data, dict) and "mode" in sync_data:
                    super().set_state({"mode": sync_data["mode"]})
                self.message = {}
            except (traitlets.TraitError, TensornpError) as error:
                self._complain(error)
            self._answer()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        with self._lock, self.hold_sync():
            super()._receive(_, content, buffers)
            kind, number = (content.get("type"), content.get("id")) if isinstance(content, dict) else (None, None)
            self.answered = number if isinstance(number, str) else ""
            if kind == "choose":
                self.set_state({"mode": content.get("mode")})
            elif kind == "bind":
                self._bind_once(content)
                self._answer()
            elif kind == "values":
                self._open_values(content.get("goal")) if content.get("open") is True else self._close_values()
                self._answer()
            elif kind == "stats":
                self._scan()
                self._answer()
            elif kind == "end":
                self._end_scan()
                self._answer()

    def _scan(self) -> None:
        """Read all values in a thread, and show the statistics at the end."""
        tensor = self._held()
        if self._scanning is not None or tensor is None or not self.has_stats:
            self.message = {"text": _GONE, "tone": "error"} if tensor is None else self.message
            return
        self.message, self.progress = {}, 0.0
        self._scanning = Scanning(partial(stats_of, tensor), self._progressed, self._scanned)

    def _progressed(self, scanning: Scanning[TensorStats], share: float) -> None:
        """Show the progress of a scan if it is the current one."""
        with self._lock:
            if scanning is self._scanning:
                self.progress = share

    def _scanned(self, scanning: Scanning[TensorStats], stats: TensorStats | None, reason: str) -> None:
        """Show the statistics of a scan if it is the current one."""
        with self._lock, self.hold_sync():
            if scanning is not self._scanning:
                return
            self._scanning, self.progress = None, -1.0
            if stats is None:
                self.message = {"text": reason, "tone": "error"}
            else:
                self._now = dataclasses.replace(self._now, stats=stats)
                self._paint()
            self._answer()

    def _end_scan(self) -> None:
        """End the scan, which then shows its results."""
        if self._scanning is not None:
            self._scanning.end()

    def _forget_values(self) -> None:
        """End the scan, and forget it."""
        self._end_scan()
        self._scanning, self.progress = None, -1.0

    def _open_values(self, goal: Any = "") -> None:
        """Open the navigator on the tensor, at its next NaN or extreme if `goal` is one."""
        goal = goal if goal in ("nan", "inf", "min", "max", "absmax") else ""
        if self.shows_values:
            self._navigator().aim(goal)
            return

        def left() -> None:
            self.shows_values = False

        shard = ', shard="local"' if self._has_part() else ""
        looked_at = LookedAt(
            self._held,
            name=self.reached,
            array_name=f"tnp.to_numpy({self.reached}{shard})" if self.reached else "",
            reaches=self._reaches or always,
            binder=self._binder,
            suggestion=self.suggestion,
            options=self._options,
        )
        self._navigator().show(looked_at, anchor=self.place, on_left=left, goal=goal)
        self.shows_values = True

    def _has_part(self) -> bool:
        """Return whether this rank holds values of a sharded tensor."""
        return self._now.info is not None and has_part(self._now.info)

    def _close_values(self) -> None:
        """Send the navigator away, if it is here."""
        if self.shows_values:
            self._navigator().rest()

    def _part_from_values(self) -> None:
        """Leave the navigator with its tensor in the old card."""
        if self.shows_values:
            self._navigator().stay()
            self.shows_values = False

    def _bind_once(self, request: dict[str, Any]) -> None:
        """Bind a name, unless the request is repeated because of a late answer."""
        name, number = request.get("name"), request.get("id")
        if number is not None and number in self._handled:
            return
        self._handled.append(number)
        try:
            again = self.bind(str(name), overwrite=request.get("overwrite") is True)
            self.message = {"text": f"bound to {name} ({self.mode})", "again": again}
        except Exception as error:
            self._complain(error)
            if isinstance(error, NameTakenError) and error.can_overwrite:
                self.message = {**self.message, "confirm": name}

    def _complain(self, error: Exception) -> None:
        self.message = {"text": str(error), "tone": "error"}

    def _answer(self) -> None:
        self.send_state("mode")
        super()._answer()

    def _array_of(self, tensor: torch.Tensor | None) -> Any:
        limit = self._options.max_nbytes or None
        shard = "local" if self._has_part() else None
        return to_numpy(_living(tensor), max_nbytes=limit, shard=shard, **mode_arguments(self.mode))

    @traitlets.validate("mode")
    def _check_mode(self, proposal: Any) -> str:
        mode = str(proposal["value"])
        if mode not in MODES:
            raise traitlets.TraitError(f"{quoted(mode)} is not a mode; choose view, share or copy")
        if mode != self._now.mode:
            try:
                self._now = self._seen_in(mode, _living(self._held()))
            except TensornpError as error:
                raise traitlets.TraitError(str(error)) from None
        return mode

    def _seen_in(self, mode: str, tensor: torch.Tensor) -> TensorSummary:
        """Return the card in `mode`, which keeps the statistics of a scan."""
        options = dataclasses.replace(self._options, mode=mode)
        summary = summarize(tensor, options, self._look)
        if summary.mode != mode and summary.info is not None:
            raise BadRequestError(str(plan_modes(summary.info, self._options)[mode]))
        around = dataclasses.replace(summary.surroundings, typed=self._static.surroundings.typed)
        return dataclasses.replace(
            summary, surroundings=around, style=self._static.style, stats=summary.stats or self._now.stats
        )

    @traitlets.observe("mode")
    def _follow(self, _: Any) -> None:
        if self._painted is not self._now:
            self._paint()

    def _paint(self) -> None:
        """Update the texts of each mode."""
        for name, value in self._said().items():
            setattr(self, name, value)

    def _said(self) -> dict[str, Any]:
        now = self._painted = self._now
        plans = plan_modes(now.info, self._options) if now.info is not None else dict.fromkeys(MODES, now.refusal)
        text, is_in_row = body_text(now), now.has_values_in_row
        has_array = is_in_row or now.style == "card"
        is_there = self._is_in_card and not is_in_row and text == body_text(self._static)
        return {
            "card": card_data(now, now.mode, plans[now.mode]),
            "choices": [choice_data(mode, plan) for mode, plan in plans.items()],
            "array_text": text if has_array and not is_there else "",
            "max_height": self._options.max_height,
            "is_in_row": is_in_row,
            "figures": {} if is_in_row or now.stats is None else self._figures_of(now.stats),
            "mode": now.mode,
            "has_values": self._has_values and now.preview is not None,
            "has_stats": self._options.stats != "off" and now.style == "card" and is_scan_offered(self._static),
        }

    def _figures_of(self, stats: TensorStats) -> dict[str, Any]:
        return figures_data(stats, self._now.info, has_picture=self._options.has_pictures)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # One that was made for a file has no comm.
        data, metadata = self.view_bundle() if self.comm is not None else ({}, {})
        # What is read where no widget can be shown: the static card.
        return {**data, **self._static_bundle()}, metadata

    def _display_(self) -> Card:
        """Return marimo's display, as its own for widgets has no place for the navigator."""
        import tensornp

        return Card(tensor_text(self._static), tensornp._mime_of(self)[1])

    def _repr_html_(self) -> str:
        return self._static_bundle()["text/html"]

    def _static_bundle(self) -> dict[str, str]:
        return bundle("a card", lambda: tensor_text(self._static), self._static_html)

    def _static_html(self) -> str:
        return tensor_html(self._static, self._options)

    def __repr__(self) -> str:
        return f"<TensorWidget in mode {self.mode}; .array is its array>"


def _none() -> None:
    """Stand for a tensor that is not there."""


def stats_of(tensor: torch.Tensor, go_on: GoOn) -> TensorStats:
    """Return the statistics of a tensor, and leave other threads to the kernel."""
    return scan(tensor, progress=go_on, num_threads=1)


def _living(tensor: torch.Tensor | None) -> torch.Tensor:
    if tensor is None:
        raise NoDataError(_GONE)
    return tensor


_NOTHING = TensorSummary("Tensor", "view", None, None, _GONE, None)
