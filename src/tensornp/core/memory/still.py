"""Tensors that consist of several, made anew over copies of these while another thread may take their memory away."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel import threads, torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.raw_memory import is_on
from tensornp.core.memory.footprint import check_parts
from tensornp.core.memory.own_copy import copied
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import over_storage, plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import SPARSE
from tensornp.core.tensor.reading import held_tensor, stored_parts
from tensornp.errors import NotReadError

MAX_NBYTES = 2**26
"""Bytes of a part that is copied, although few of its elements may be wanted."""
NOT_SHOWN = "the values are not shown: another thread is running, which may take their memory away meanwhile"
CODES = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
"""As what the codes of a quantized tensor can be read, one from each element."""


def still(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """Return a tensor of which torch can read all at leisure: `tensor` itself where nobody else runs, else one like it.

    Call it behind `threads.GATE`, and keep that closed until all is read; whoever has torch read asks it first. A
    nested tensor keeps its values, and where they lie is what then stands still.

    Raises
    ------
    NotReadError
        If a part cannot be read, or if it cannot be made anew or is too large for that.
    """
    if info.device.type != "cpu" or not is_on():
        return tensor
    check_parts(tensor, info)
    if not threads.others_run():
        return tensor
    try:
        return _made_anew(tensor, info)
    except NotReadError:
        raise
    except Exception as error:
        # Its parts do not fit each other any more, or its class cannot be made of parts.
        raise NotReadError(NOT_SHOWN) from error


def parts_still(tensor: torch.Tensor, info: TensorInfo) -> list[torch.Tensor]:
    """Return the parts of a nested tensor as `still` does; NotReadError if their memory was taken away just now."""
    try:
        return [plain(part) for part in still(tensor, info).unbind()]
    except RuntimeError as error:
        raise NotReadError(NOT_SHOWN) from error


def _made_anew(tensor: Any, info: TensorInfo) -> torch.Tensor:
    if info.kind.has_strides:
        return _copied(tensor, info)
    if info.kind is SPARSE:
        return _sparse(plain(tensor))
    if info.inner is not None and info.kind.gives_one_array:
        return _made_anew(held_tensor(tensor, info.kind), info.inner)
    if info.kind.is_out_of_reach or (info.kind.gives_several and tensor.layout == torch.strided):
        # Nobody can reach into these.
        return tensor  # type: ignore[no-any-return]
    names, context = tensor.__tensor_flatten__()
    parts = {name: getattr(tensor, name) for name in names}
    kept = ("_values",) if info.kind.gives_several else ()
    anew = {name: part if name in kept else _made_anew(part, inspect(part)) for name, part in parts.items()}
    made: torch.Tensor = type(tensor).__tensor_unflatten__(anew, context, tensor.shape, tensor.stride())
    return made


def _sparse(raw: Any) -> torch.Tensor:
    parts: Any = [_copied(part, inspect(part)) for part in stored_parts(raw)]
    options: Any = {"size": raw.shape, "check_invariants": True}
    if raw.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(*parts, is_coalesced=raw.is_coalesced(), **options)
    return quietly(torch.sparse_compressed_tensor, *parts, layout=raw.layout, **options)


def _copied(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """Return a copy of all that a tensor with strides holds, scales included."""
    if info.nbytes > MAX_NBYTES or info.is_conj or info.is_neg or info.data_state != "available":
        raise NotReadError(NOT_SHOWN)
    raw = plain(tensor)
    if not info.is_quantized:
        return copied(raw)
    made = None
    if info.dtype in CODES:
        codes = copied(over_storage(raw, CODES[info.dtype]))
        made = torch_private.quantized_like(codes, raw, lambda part, _: copied(plain(part)))
    if made is None:
        raise NotReadError(NOT_SHOWN)
    return made
