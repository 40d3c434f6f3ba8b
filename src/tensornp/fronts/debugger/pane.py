"""A tensor in a debugger's pane: one line, and children when expanded.

The debugger has stopped all other threads, maybe in the middle of something. So nothing waits here: not for a lock, not
for a device, whose values are not read; no thread is started, and no code of the tensor's class runs. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from tensornp.core.convert.plan import decide
from tensornp.core.convert.receipt import no_data_text
from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.summary.card import LINE_VALUES, TensorSummary, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import DEQUANTIZED, LAZY, MKLDNN, PENDING
from tensornp.core.tensor.stand_ins import stand_in_of
from tensornp.core.values.shown.preview import first_values
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.compute import scan
from tensornp.errors import TensornpError, UnsupportedTensorError
from tensornp.render.tensor.badges import badges_of
from tensornp.render.tensor.card import tensor_text

MAX_READ_NBYTES = 2**22
"""Bytes that statistics read at most, as many as a card reads unasked: nothing is compiled for them."""
MAX_VALUES_IN_LINE = 4
"""Values of a tensor up to which its line says them all."""
Child = tuple[str, Any, str | None]
"""A name, what is shown behind it, and what is written behind the name of the tensor to evaluate the same."""
_Told = TypeVar("_Told")
_base: Any = torch.Tensor._base


class Words(str):
    """A text that a pane shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Figures:
    """Statistics of a tensor, read when they are expanded."""

    __slots__ = ("_numel", "_tensor")

    def __init__(self, tensor: torch.Tensor, numel: int) -> None:
        self._tensor, self._numel = tensor, numel

    def __repr__(self) -> str:
        return f"expand to read {counted(self._numel, 'element')}"

    def children(self) -> list[Child]:
        """Return the figures, or why there are none: what was evaluated meanwhile may have freed the memory."""
        return _guarded(lambda: list(_figures(self._tensor)), _one("not read"))


def line_of(tensor: torch.Tensor) -> str:
    """Return what a tensor is in a line.

    ``(64, 512) float32 cuda:0 · requires grad``, and the values of a tiny one.
    """
    return _guarded(lambda: _line(tensor, _facts(tensor)), lambda reason: _simple_line(tensor, reason))


def text_of(tensor: torch.Tensor) -> str:
    """Return the card of a tensor in main memory, for a console.

    Of another one, the line and why there is no more.
    """

    def text() -> str:
        info = _facts(tensor)
        reason = _unread(tensor, info)
        if reason:
            return f"{_line(tensor, info)}\n{reason}"
        return tensor_text(summarize(tensor, DisplayOptions()))

    return _guarded(text, lambda reason: _simple_line(tensor, reason))


def children_of(tensor: torch.Tensor) -> list[Child]:
    """Return what a pane shows of an expanded tensor.

    What it is, and its first values where that is main memory.
    """
    return _guarded(lambda: list(_children(tensor, _facts(tensor))), _one("not looked at"))


def _one(name: str) -> Callable[[str], list[Child]]:
    return lambda reason: [(name, Words(reason), None)]


def _guarded(tell: Callable[[], _Told], simpler: Callable[[str], _Told]) -> _Told:
    """Return what `tell` returns, or what `simpler` makes of the reason why it could not."""
    try:
        return _unnoticed(tell, simpler)
    except TensornpError as error:
        return simpler(str(error))
    except Exception as error:
        return simpler(error_text(error))


@modes.outside_modes
def _unnoticed(tell: Callable[[], _Told], simpler: Callable[[str], _Told]) -> _Told:
    return tell()


def _facts(tensor: torch.Tensor) -> TensorInfo:
    """Return the metadata of a tensor; refuses one that only code of its class can tell of."""
    if stand_in_of(tensor) is not None:
        raise UnsupportedTensorError("its class tells for what it stands, and is not asked here; tnp.card asks it")
    return inspect(tensor)


def _simple_line(tensor: torch.Tensor, reason: str) -> str:
    try:
        with modes.outside_modes():
            t: Any = Bare(tensor)
            return f"{tuple(t.shape)} {name_of(t.dtype)} {t.device} · {reason}"
    except Exception:
        return f"{type(tensor).__name__}: {reason}"


def _line(tensor: torch.Tensor, info: TensorInfo) -> str:
    shown = TensorSummary(info.type_name, "view", info, None, "", None)
    texts = {badge.kind: badge.text for badge in badges_of(shown) if badge.kind not in ("type", "memory")}
    what = " ".join(texts.pop(kind) for kind in ("shape", "dtype", "device"))
    said = [_state(info), *texts.values(), _shared(tensor)]
    is_row = info.numel == (info._array_shape or (1,))[-1]
    if is_row and 0 < info.numel <= MAX_VALUES_IN_LINE and not _unread(tensor, info):
        values = _first_values(tensor, info)
        said.append(f"[{values}]" if info.shape else values)
    return " · ".join([what, *filter(None, said)])


def _state(info: TensorInfo) -> str:
    """Return why there are no values, in a word; nothing of a device, which is told already."""
    return "" if info.data_state in ("available", str(info.device)) else info.data_state


def _shared(tensor: torch.Tensor) -> str:
    """Return which tensor has the same memory, where torch itself knows that.

    The one of which it is a view.
    """
    try:
        base = _base.__get__(tensor)
        address = torch_private.storage_address(tensor)
        if base is None or not address or address != torch_private.storage_address(base):
            return ""
        return f"shares memory with {tuple(Bare(base).shape)}"
    except (RuntimeError, NotImplementedError):
        # Sparse tensors and wrappers have no storage.
        return ""


def _unread(tensor: torch.Tensor, info: TensorInfo) -> str:
    """Return why values are not read here; empty where they are."""
    if info.data_state != "available":
        return no_data_text(info)
    if info.device.type != "cpu":
        return f"not read: they are on {info.device}, for which a stopped program might wait; tnp.card reads them"
    if _is_computed(info) or (info.numel and not nbytes_unasked(info)):
        return f"not read: {info.kind} values are computed first; tnp.card reads them"
    return ""


def _is_computed(info: TensorInfo) -> bool:
    """Return whether values are what other code makes of what is stored, or are made just now."""
    return info.kind in (DEQUANTIZED, MKLDNN, LAZY, PENDING) or (info.inner is not None and _is_computed(info.inner))


def _first_values(tensor: torch.Tensor, info: TensorInfo) -> str:
    """Return the first few values; why there are none, where they cannot become an array."""
    try:
        return first_values(tensor, info, decide(info), LINE_VALUES)
    except TensornpError as error:
        return str(error)


def _children(tensor: torch.Tensor, info: TensorInfo) -> Iterator[Child]:
    shape = info.shape if -1 not in info.shape else Words(str(info.shape).replace("-1", "?"))
    unread = _unread(tensor, info)
    yield "shape", shape, ".shape"
    yield "dtype", Words(name_of(info.dtype)), ".dtype"
    yield "device", Words(info.device), ".device"
    yield "grad", *_grad(tensor, info)
    yield "memory", Words(_memory(tensor, info)), None
    yield "first values", Words(unread or _first_values(tensor, info)), None
    unscanned = _unscanned(tensor, info)
    yield "statistics", Words(unscanned) if unscanned else Figures(tensor, info.numel), None


def _unscanned(tensor: torch.Tensor, info: TensorInfo) -> str:
    """Return why there are no statistics here; empty where they are computed when they are asked for."""
    if unread := _unread(tensor, info):
        return unread
    if not info.numel:
        return "none: it is empty"
    nbytes = nbytes_unasked(info)
    if nbytes <= MAX_READ_NBYTES:
        return ""
    most = format_nbytes(MAX_READ_NBYTES)
    return f"not read: the values take {format_nbytes(nbytes)}, more than {most}; tnp.stats reads them"


def _grad(tensor: torch.Tensor, info: TensorInfo) -> tuple[Any, str | None]:
    """Return the gradient, or why there is none."""
    unguarded = Unguarded()
    grad = unguarded.grad_of(tensor) if info.has_grad is not False else None
    if grad is not None:
        return grad, ".grad"
    if unguarded.left_out:
        return Words(NOT_LOOKED_AT), None
    if not info.is_leaf:
        return Words(f"none: from {info.grad_fn}, and no leaf"), None
    return Words("none so far" if info.requires_grad else "none: it requires no grad"), None


def _memory(tensor: torch.Tensor, info: TensorInfo) -> str:
    said = [format_nbytes(info._held_nbytes)]
    if info.storage is not None:
        offset = f", from element {info.storage_offset:,} on" if info.storage_offset else ""
        said[0] += f" in a storage of {format_nbytes(info.storage.nbytes)}{offset}"
    said += [f"strides {info.stride}"] if info.stride else []
    return " · ".join(filter(None, [*said, _state(info), _shared(tensor)]))


def _figures(tensor: torch.Tensor) -> Iterator[Child]:
    """Yield the figures that there are: numbers, as a pane shows them."""
    info = _facts(tensor)
    if unscanned := _unscanned(tensor, info):
        yield "not read", Words(unscanned), None
        return
    found = scan(tensor, info=info)
    for name in ("count", "nan", "posinf", "neginf", "zeros", "min", "max", "mean", "std", "norm"):
        if (figure := getattr(found, name)) is not None:
            yield name, figure, None
    if found.distribution is not None and found.distribution.num_seen and found.min is not None:
        yield "median", found.quantile(0.5), None
    yield "of", Words(found.scope), None
