"""The live card of one tensor: a toggle between view, share and copy, and a name to bind the array to."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
import traitlets

from tensornp.core.convert import to_numpy
from tensornp.core.info import inspect
from tensornp.core.options import DisplayOptions
from tensornp.core.plan import ConversionPlan
from tensornp.core.steps import MODES, mode_arguments
from tensornp.core.summary import TensorSummary, looked_at, plan_modes, summarize
from tensornp.core.surroundings import Look
from tensornp.errors import BadRequestError, NameTakenError, NoDataError, TensornpError
from tensornp.render.badges import badges_of
from tensornp.render.html import tensor_html
from tensornp.render.text import receipt_lines, tensor_text
from tensornp.widget.dock import DockingWidget, module, stylesheet

_MODE_TITLES = {
    "view": "Live and read-only: the array sees every write to the tensor, NumPy cannot write.",
    "share": "Live and writeable: a write on either side is seen on the other.",
    "copy": "New memory: no later write is seen on the other side.",
}

Binder = Callable[[str, Any, bool], str]
"""Binds a name to an array, overwriting only where the third argument says so; returns what it did in a few words."""


class TensorWidget(DockingWidget):
    """A live card: `mode` toggles, `array` is the array of that mode, `close` lets go of the tensor.

    Parameters
    ----------
    tensor : torch.Tensor
    look : callable, optional
        What looks around the tensor, in a notebook: for other names of its memory and for what backward has saved.
    keep : bool
        Whether the widget keeps the tensor alive until it is closed; otherwise it holds a weak reference.
    anchor : str
        The class of the static card that it docks into; empty for one that stands alone, with the array in it.
    suggestion : str
        The name that is offered for binding.
    binder : callable, optional
        What binds a name in the user's namespace; without one, no name is offered.
    """

    _esm = module("toggle")
    _css = stylesheet("toggle")

    mode = traitlets.Unicode("view", help="view, share or copy").tag(sync=True)
    cards = traitlets.Dict(help="what the page shows of each mode").tag(sync=True)
    choices: traitlets.List[Any] = traitlets.List(help="the modes, and whether each is possible").tag(sync=True)
    array_text = traitlets.Unicode().tag(sync=True)
    suggestion = traitlets.Unicode().tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    message = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        tensor: torch.Tensor,
        *,
        options: DisplayOptions | None = None,
        look: Look | None = None,
        keep: bool = True,
        anchor: str = "",
        suggestion: str = "array_np",
        binder: Binder | None = None,
    ) -> None:
        # Callbacks may run in a thread of their own while a cell runs (ipykernel 7.0 to 7.3).
        self._lock = threading.RLock()
        self._held: Callable[[], torch.Tensor | None] = (lambda: tensor) if keep else weakref.ref(tensor)
        self._binder = binder
        self._bound: list[str] = []
        self._options = options or DisplayOptions()
        self._look = look
        self._summary = summarize(tensor, self._options, look)
        super().__init__(
            mode=self._summary.mode,
            anchor=anchor,
            suggestion=suggestion,
            can_bind=binder is not None,
            array_text="" if anchor else _body(self._summary),
        )
        self._refresh()

    @property
    def array(self) -> Any:
        """The array of the current mode, converted now; `NoDataError` where the tensor is gone."""
        with self._lock:
            limit = self._options.max_nbytes or None
            return to_numpy(self._tensor(), max_nbytes=limit, **mode_arguments(self.mode))

    def bind(self, name: str, *, overwrite: bool = False) -> str:
        """Bind the array of the current mode to `name` in the notebook; returns what was done in a few words.

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
            done = self._binder(name, self.array, overwrite)
            self._bound.append(f"{name} is its {self.mode}")
            return done

    def close(self) -> None:
        """Take the view out of the page and let go of the tensor."""
        self._held = lambda: None
        super().close()

    def closing_words(self) -> str:
        """Return what a static line should say once the toggle is gone: empty while the card itself says it all."""
        said = [f"{self.mode} was chosen"] if self.mode != self._summary.mode else []
        return ", ".join(said + self._bound)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the browser sends, which may be anything: only a mode is taken, and errors go back as text."""
        with self._lock:
            try:
                super().set_state({key: value for key, value in sync_data.items() if key == "mode"})
                self.message = {}
            except (traitlets.TraitError, TensornpError) as error:
                self._complain(error)
            self._answer()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        with self._lock:
            super()._receive(_, content, buffers)
            if isinstance(content, dict) and content.get("type") == "bind":
                name, overwrite = content.get("name"), content.get("overwrite") is True
                try:
                    self.message = {"text": self.bind(str(name), overwrite=overwrite)}
                except Exception as error:
                    self._complain(error)
                    if isinstance(error, NameTakenError) and error.can_overwrite:
                        self.message = {**self.message, "confirm": name}
                self._answer()

    def _complain(self, error: Exception) -> None:
        self.message = {"text": str(error), "tone": "error"}

    def _answer(self) -> None:
        self.send_state("mode")
        super()._answer()

    def _tensor(self) -> torch.Tensor:
        tensor = self._held()
        if tensor is None:
            raise NoDataError("the tensor of this card is gone; show it again")
        return tensor

    @traitlets.validate("mode")
    def _check_mode(self, proposal: Any) -> str:
        mode = str(proposal["value"])
        if mode not in MODES:
            raise traitlets.TraitError(f"{mode!r} is not a mode; choose view, share or copy")
        tensor = self._held()
        if tensor is None:
            raise traitlets.TraitError("the tensor of this card is gone; show it again")
        plans = plan_modes(inspect(tensor), self._options)
        planned = plans[mode]
        if isinstance(planned, str) and any(isinstance(plan, ConversionPlan) for plan in plans.values()):
            raise traitlets.TraitError(planned)
        return mode

    @traitlets.observe("mode")
    def _refresh(self, _: Any = None) -> None:
        """Say again what each mode means; reads metadata only."""
        tensor = self._held()
        if tensor is not None:
            info, around = looked_at(tensor, inspect(tensor), self._look)
            plans = plan_modes(info, self._options)
            now = dataclasses.replace(self._summary, info=info, surroundings=around)
            self.cards = {mode: _card(now, mode, plan) for mode, plan in plans.items()}
            self.choices = [_choice(mode, plan) for mode, plan in plans.items()]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = super()._repr_mimebundle_()
        data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
        # What is read where no widget can be shown: the static card.
        fallback = {"text/plain": tensor_text(self._summary), "text/html": tensor_html(self._summary)}
        return {**data, **fallback}, metadata

    def _repr_html_(self) -> str:
        return tensor_html(self._summary)

    def __repr__(self) -> str:
        return f"<TensorWidget in mode {self.mode}; .array is its array>"


def _body(summary: TensorSummary) -> str:
    return summary.preview.text if summary.preview else summary.refusal


def _card(summary: TensorSummary, mode: str, plan: ConversionPlan | str) -> dict[str, Any]:
    """Return what the page shows of `mode`, as plain data that it puts in as text and never as HTML."""
    if isinstance(plan, str):
        now = dataclasses.replace(summary, mode=mode, plan=None, refusal=plan)
        receipt = {"mode": mode, "code": "", "lines": [plan]}
    else:
        now = dataclasses.replace(summary, mode=mode, plan=plan, refusal="")
        receipt = {"mode": plan.mode, "code": plan.code, "lines": receipt_lines(plan)}
    return {"badges": [dataclasses.asdict(badge) for badge in badges_of(now)], "receipt": receipt}


def _choice(name: str, plan: ConversionPlan | str) -> dict[str, Any]:
    if isinstance(plan, str):
        return {"name": name, "enabled": False, "title": plan}
    title = _MODE_TITLES[name] if plan.shares_memory or name == "copy" else f"{_MODE_TITLES[name]} Here: {plan.reason}."
    return {"name": name, "enabled": True, "title": title}


def view(tensor: torch.Tensor) -> TensorWidget:
    """Return a live card of `tensor`, which stays where it is shown; `.array` is the array of its mode.

    It keeps the tensor alive until `.close()`. Without a notebook it works as a plain object.
    """
    inspect(tensor)
    return TensorWidget(tensor)
