"""Make the card of a tensor live: a mode toggle, and a name for the array."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
import traitlets

from tensornp.core.convert.plan import MODES, ConversionPlan
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.text import quoted
from tensornp.core.summary.card import Look, TensorSummary, plan_modes, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import is_differentiable, name_of
from tensornp.core.tensor.info import check_tensor
from tensornp.core.values.stats.compute import scan
from tensornp.errors import BadRequestError, TensornpError
from tensornp.render.layout.document import bundle
from tensornp.render.show import Card
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.widget.page import Answer, Request
from tensornp.widget.part import LivePart, module, stylesheet
from tensornp.widget.values import Binder, LookedAt, living

_TITLES = {
    "view": "Live and read-only: the array sees every write to the tensor, NumPy cannot write.",
    "share": "Live and writeable: a write on either side is seen on the other.",
    "copy": "New memory: no later write is seen on the other side.",
}

Held = Callable[[], torch.Tensor | None]
"""Gives the tensor of a card, or None where it is gone."""


class TensorWidget(LivePart):
    """A live card: `mode` toggles, `array` is the array of that mode, `close` lets go of the tensor.

    Parameters
    ----------
    tensor : torch.Tensor, or None if `held` returns it
    look : callable, optional
        Function that finds other names of the memory, and tensors saved for backward.
    held : callable, optional
        Function that returns the tensor while it lives; without it, the widget keeps the tensor alive.
    anchor : str
        The class of the static card that it docks into; empty for one that stands alone.
    suggestion : str
        The name that is offered for binding.
    binder : callable, optional
        Function that binds a name in the user's namespace; without one, no name is offered.
    """

    _esm = module("toggle")
    _css = stylesheet("navigator", "toggle")

    mode = traitlets.Unicode("view", help="view, share or copy")
    html = traitlets.Unicode(help="the card in the mode").tag(sync=True)
    choices: traitlets.List[Any] = traitlets.List(help="the modes, and whether each is possible").tag(sync=True)
    suggestion = traitlets.Unicode().tag(sync=True)
    can_bind = traitlets.Bool().tag(sync=True)
    all_digits = traitlets.Bool(None, allow_none=True, help="all digits, if there is a choice").tag(sync=True)
    has_more = traitlets.Bool(help="whether all values can be read for statistics").tag(sync=True)

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
        summary: TensorSummary | None = None,
    ) -> None:
        if tensor is not None:
            check_tensor(tensor, "TensorWidget")
        self._binder = binder
        handlers = {
            "choose": self._choose, "bind": self._bind, "values": self._open_values, "stats": self._scan,
            "digits": self._print_digits,
        }  # fmt: skip
        super().__init__(handlers, slow=("stats",), can_bind=binder is not None)
        held, options = held or (lambda: tensor), options or DisplayOptions()
        summary = summary or summarize(living(tensor), options, look)
        self.show(held, summary, options=options, look=look, anchor=anchor, suggestion=suggestion)

    def show(
        self,
        held: Held,
        summary: TensorSummary,
        *,
        options: DisplayOptions,
        look: Look | None,
        anchor: str,
        suggestion: str,
    ) -> None:
        """Move to the card of class `anchor`, which shows the tensor `held()`."""
        with self._lock, self.hold_sync():
            self._held, self._options, self._look = held, options, look
            self._own_options = options
            self._static = summary
            self._paint(summary)
            self.suggestion, self.anchor = suggestion, anchor

    def move_into(self, anchor: str) -> str:
        """Move to a new static card of class `anchor`, and return its HTML."""
        with self._lock:
            self._static, self.anchor = self._now, anchor
            return tensor_html(self._static, self._options, anchor=anchor)

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
            # The card shows the bound array, also after a write to the tensor.
            self._paint(self._seen_in(self.mode, living(tensor)))
            # The tensor's own name is now that of the array.
            tensor_name = self._now.surroundings.name
            if not re.match(r"\w+", tensor_name) or re.match(rf"{name}\b", tensor_name):
                return ""
            if self._shard:
                return f'{name} = tnp.to_numpy({tensor_name}, shard="local")'
            return f"{name} = %tonumpy --{self.mode} {tensor_name}"

    def close(self) -> None:
        with self._lock:
            self._held = lambda: None
        super().close()

    # --- what the page asks for

    def _choose(self, request: Request) -> Answer:
        with self.hold_sync():
            try:
                self.mode = request.get("mode")  # type: ignore[assignment]
            except traitlets.TraitError as error:
                raise BadRequestError(str(error)) from None
        return {"mode": self.mode}

    def _bind(self, request: Request) -> Answer:
        name = str(request.get("name")).strip()
        with self.hold_sync():
            again = self.bind(name, overwrite=request.get("overwrite") is True)
        return {"text": f"assigned to {name} ({self.mode})", "again": again}

    def _open_values(self, request: Request) -> Answer:
        name = self._now.surroundings.name
        looked_at = LookedAt(self._held, name, self._binder, self.suggestion, self._options)
        return self._values.show(looked_at, request.get("goal", ""))

    def _scan(self, _: Request) -> Answer:
        card = self._static
        # Other threads are left to the kernel.
        stats = scan(living(self._held()), num_threads=1)
        with self._lock, self.hold_sync():
            # Another card may have taken its place meanwhile.
            if self._static is card:
                self._paint(self._now._replace(stats=stats))
        return {"text": "the statistics are in the card"}

    def _print_digits(self, _: Request) -> Answer:
        with self._lock, self.hold_sync():
            # Longer lines are not folded.
            whole = dataclasses.replace(self._own_options, precision="numpy", max_height=0)
            self._options = self._own_options if self.all_digits else whole
            self._paint(self._seen_in(self.mode, living(self._held())))
        return {}

    # --- the mode

    @property
    def _shard(self) -> Literal["local"] | None:
        """Return the shard that is converted: the values of this rank, if the tensor is sharded."""
        return "local" if self._now.info is not None and self._now.info._has_part else None

    def _array_of(self, tensor: torch.Tensor | None) -> Any:
        limit = self._options.max_nbytes or None
        return to_numpy(living(tensor), max_nbytes=limit, shard=self._shard, **MODES[self.mode])

    @traitlets.validate("mode")
    def _check_mode(self, proposal: Any) -> str:
        mode = str(proposal["value"])
        if mode not in MODES:
            raise traitlets.TraitError(f"{quoted(mode)} is not a mode; choose view, share or copy")
        if mode != self._now.mode:
            try:
                self._paint(self._seen_in(mode, living(self._held())))
            except TensornpError as error:
                raise traitlets.TraitError(str(error)) from None
        return mode

    def _seen_in(self, mode: str, tensor: torch.Tensor) -> TensorSummary:
        """Return the card in `mode`, which keeps the statistics of a scan."""
        options = dataclasses.replace(self._options, mode=mode)
        summary = summarize(tensor, options, self._look)
        if summary.mode != mode and summary.info is not None:
            raise BadRequestError(str(plan_modes(summary.info, self._options)[mode]))
        around = summary.surroundings._replace(typed=self._static.surroundings.typed)
        stats = summary.stats or self._now.stats
        return summary._replace(surroundings=around, style=self._static.style, stats=stats)

    def _paint(self, now: TensorSummary) -> None:
        self._now, info = now, now.info
        self.mode = now.mode
        plans = plan_modes(info, self._options) if info is not None else dict.fromkeys(MODES, now.refusal)
        self.choices = [
            {
                "name": mode,
                "chosen": mode == now.mode,
                "enabled": not isinstance(plan, str),
                "title": _title(mode, plan),
            }
            for mode, plan in plans.items()
        ]
        has_digits = now.preview is not None and info is not None and is_differentiable(name_of(info.dtype))
        self.all_digits = (
            self._options.precision == "numpy" if has_digits and self._own_options.precision != "numpy" else None
        )
        self.html = tensor_html(now, self._options, is_live=True)
        is_wanted = self._options.stats != "off" and now.style == "card" and now.stats is None
        self.has_more = is_wanted and info is not None and info.data_state == "available" and info.numel > 0

    # --- other front ends

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # Without a comm, as in a file, the static card stands alone.
        data, metadata = self.view_bundle() if self.comm is not None else ({}, {})
        return {**data, **self._static_bundle()}, metadata

    def _display_(self) -> Card:
        """Return marimo's display, as its own for widgets has no place for a card."""
        import tensornp

        return Card(tensor_text(self._static), tensornp._mime_of(self)[1])

    def _repr_html_(self) -> str:
        return self._static_bundle()["text/html"]

    def _static_bundle(self) -> dict[str, str]:
        html = partial(tensor_html, self._static, self._options)
        return bundle("a card", lambda: tensor_text(self._static), html)

    def __repr__(self) -> str:
        return f"<TensorWidget in mode {self.mode}; .array is its array>"


def _title(mode: str, plan: ConversionPlan | str) -> str:
    if isinstance(plan, str):
        return plan
    return _TITLES[mode] if plan.shares_memory or mode == "copy" else f"{_TITLES[mode]} Here: {plan.reason}."
