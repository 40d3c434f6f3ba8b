"""Give the dense values of sparse, packed and dequantizing tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.text import with_article
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.dtypes import FLOAT4_VALUES
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.reading import compressed_indices
from tensornp.errors import UnsupportedTensorError


def dense(sparse: torch.Tensor) -> torch.Tensor:
    """Return the dense form; in a wider dtype if torch has no dense form in the tensor's own."""
    if sparse.layout == torch.strided:
        return sparse
    check_indices(sparse)
    facts = dtypes.KNOWN.get(dtypes.name_of(sparse.dtype))
    through = facts.dense_through if facts else None
    if through is None or facts is None:
        return quietly(sparse.to_dense)
    laid_out = quietly(quietly(sparse.to, getattr(torch, through)).to_dense)
    return laid_out.to(sparse.dtype) if facts.numpy else laid_out


def check_indices(sparse: Any) -> None:
    """Raise UnsupportedTensorError if an index lies outside the shape."""
    try:
        if sparse.layout == torch.sparse_coo:
            indices, _ = torch_private.stored_elements(sparse)
            sizes = torch.tensor(sparse.shape[: indices.shape[0]], device=indices.device)[:, None]
            if bool(((indices < 0) | (indices >= sizes)).any()):
                raise RuntimeError("an index is outside the shape")
        elif not torch_private.is_mkldnn(sparse.layout):
            # A tensor over the same memory, made for its checks.
            options: Any = {"size": sparse.shape, "layout": sparse.layout, "check_invariants": True}
            quietly(torch.sparse_compressed_tensor, *compressed_indices(sparse), sparse.values(), **options)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise UnsupportedTensorError(
            f"this {dtypes.name_of(sparse.layout)} tensor is broken ({reason}); build it with check_invariants=True"
        ) from error


def dequantized(tensor: Any) -> torch.Tensor:
    """Return the values that the class of a wrapper makes of its codes."""
    try:
        values = tensor.dequantize()
        info = inspect(values)
        if (info.data_state, info.kind, info.shape) != ("available", STRIDED, tuple(tensor.shape)):
            raise TypeError(f"it returned {with_article(info.data_state)} {info.kind} tensor of shape {info.shape}")
        if not tensor.dtype.is_floating_point and values.dtype != tensor.dtype:
            raise TypeError(f"it returned {values.dtype} instead of {tensor.dtype}")
        # Some classes dequantize to another dtype than their own; the receipt has their own.
        return plain(values).resolve_conj().resolve_neg().to(tensor.dtype)
    except Exception as error:
        raise UnsupportedTensorError(
            f"{type(tensor).__name__}.dequantize() failed ({error_text(error)}); convert the tensors inside it"
        ) from error


def unpack_float4(packed: torch.Tensor) -> torch.Tensor:
    """Return the float32 values of float4_e2m1fn_x2, low nibble first: ``(*, 2 * n)`` for ``(*, n)``."""
    codes = packed.view(torch.uint8)
    return decode_float4(torch.stack((codes & 15, codes >> 4), -1).reshape(*codes.shape[:-1], -1))


def decode_float4(codes: torch.Tensor) -> torch.Tensor:
    """Return the float32 value of each 4-bit code."""
    values = torch.tensor(FLOAT4_VALUES, dtype=torch.float32, device=codes.device)
    return values[codes.to(torch.int64)]


def pack_float4(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return the packed tensor of an ml_dtypes array, whose last dimension is even."""
    codes = torch.from_numpy(array.view(np.uint8) & np.uint8(15))
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(torch.float4_e2m1fn_x2)
