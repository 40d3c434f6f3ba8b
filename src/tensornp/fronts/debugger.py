"""A tensor in a debugger's pane: one line, and children when expanded.

The debugger has stopped all other threads. So nothing here waits for a device, and no code of the tensor's class runs.
Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from tensornp.core.convert.plan import decide
from tensornp.core.convert.receipt import no_data_text
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.summary.card import LINE_VALUES, TensorSummary
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import stand_in_of
from tensornp.core.values.shown.preview import first_values
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats, alarms_of
from tensornp.errors import UnsupportedTensorError
from tensornp.render.pictures.stats_line import stats_line_text
from tensornp.render.tensor.badges import badges_of

MAX_READ_NBYTES = 2**22
"""Bytes that statistics read at most."""
Child = tuple[str, Any, str | None]
"""A name, a value, and what follows the name of the tensor in an expression of that value."""
_Result = TypeVar("_Result")


class Words(str):
    """A text that a pane shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def line_of(tensor: torch.Tensor) -> str:
    """Return a tensor in one line: ``(64, 512) float32 cuda:0 · requires grad``."""
    return _guarded(lambda: _line(_facts(tensor)), lambda reason: f"{type(tensor).__name__}: {reason}")


def children_of(tensor: torch.Tensor) -> list[Child]:
    """Return the children of an expanded tensor: its metadata, first values and statistics."""
    return _guarded(lambda: list(_children(tensor, _facts(tensor))), lambda reason: [("not read", Words(reason), None)])


def _guarded(tell: Callable[[], _Result], otherwise: Callable[[str], _Result]) -> _Result:
    try:
        with modes.outside_modes():
            return tell()
    except Exception as error:
        return otherwise(error_text(error))


def _facts(tensor: torch.Tensor) -> TensorInfo:
    if stand_in_of(tensor) is not None:
        raise UnsupportedTensorError("its class has to compute its values; tnp.card shows them")
    return inspect(tensor)


def _line(info: TensorInfo) -> str:
    badges = badges_of(TensorSummary(info.type_name, "view", info, None, "", None))
    texts = {badge.kind: badge.text for badge in badges if badge.kind not in ("type", "memory")}
    # Of values on a device, the device alone is told.
    state = "" if info.data_state in ("available", str(info.device)) else info.data_state
    words = [" ".join(texts.pop(kind) for kind in ("shape", "dtype", "device")), state, *texts.values()]
    return " · ".join(filter(None, words))


def _unread(info: TensorInfo) -> str:
    if info.data_state != "available":
        return no_data_text(info)
    if info.device.type != "cpu":
        return f"not read: they are on {info.device}, for which a stopped program might wait; tnp.card reads them"
    if info.numel and not nbytes_unasked(info):
        return f"not read: {info.kind} values are computed first; tnp.card reads them"
    return ""


def _children(tensor: torch.Tensor, info: TensorInfo) -> Iterator[Child]:
    yield "shape", info.shape, ".shape"
    yield "dtype", Words(name_of(info.dtype)), ".dtype"
    yield "device", Words(info.device), ".device"
    unguarded = Unguarded()
    grad = unguarded.grad_of(tensor) if info.has_grad is not False else None
    if grad is not None:
        yield "grad", grad, ".grad"
    else:
        yield "grad", Words(NOT_LOOKED_AT if unguarded.left_out else "none"), None
    size = format_nbytes(info._held_nbytes)
    if info.storage is not None:
        offset = f", from element {info.storage_offset:,}" if info.storage_offset else ""
        size += f" in a storage of {format_nbytes(info.storage.nbytes)}{offset}"
    strides = f"strides {info.stride}" if info.stride else ""
    yield "memory", Words(" · ".join(filter(None, [size, strides]))), None
    unread = _unread(info)
    yield "first values", Words(unread or first_values(tensor, info, decide(info), LINE_VALUES)), None
    if not unread and nbytes_unasked(info) > MAX_READ_NBYTES:
        unread = f"not read: the values take more than {format_nbytes(MAX_READ_NBYTES)}; tnp.stats reads them"
    yield "statistics", Words(unread or _figures(scan(tensor, info=info, num_threads=1))), None


def _figures(stats: TensorStats) -> str:
    return " · ".join([*(one.text for one in alarms_of(stats)), stats_line_text(stats)])
