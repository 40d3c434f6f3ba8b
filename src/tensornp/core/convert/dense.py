"""The dense values of a tensor that keeps others: of a sparse one, and of a class that dequantizes itself."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.text import with_article
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.reading import compressed_indices
from tensornp.errors import UnsupportedTensorError


def dense(sparse: torch.Tensor) -> torch.Tensor:
    """Return the dense form, in a wider dtype where torch has no dense form in the tensor's own."""
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
    """Refuse a sparse tensor whose indices lie outside its shape: torch, which seldom checks, writes to wild places."""
    try:
        if sparse.layout == torch.sparse_coo:
            indices, _ = torch_private.stored_elements(sparse)
            sizes = torch.tensor(sparse.shape[: indices.shape[0]], device=indices.device)[:, None]
            if bool(((indices < 0) | (indices >= sizes)).any()):
                raise RuntimeError("an index is outside of the shape")
        elif not torch_private.is_mkldnn(sparse.layout):
            # Made anew over the same memory, for the checks alone.
            options: Any = {"size": sparse.shape, "layout": sparse.layout, "check_invariants": True}
            quietly(torch.sparse_compressed_tensor, *compressed_indices(sparse), sparse.values(), **options)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise UnsupportedTensorError(
            f"this {dtypes.name_of(sparse.layout)} tensor is broken ({reason}); make it anew with check_invariants=True"
        ) from error


def dequantized(tensor: Any) -> torch.Tensor:
    """Return what the class itself makes of its codes."""
    try:
        values = tensor.dequantize()
        info = inspect(values)
        if (info.data_state, info.kind, info.shape) != ("available", STRIDED, tuple(tensor.shape)):
            raise TypeError(f"it gives {with_article(info.data_state)} {info.kind} tensor of shape {info.shape}")
        if not tensor.dtype.is_floating_point and values.dtype != tensor.dtype:
            raise TypeError(f"it gives {values.dtype}, where {tensor.dtype} is stated")
        # Some classes dequantize to another dtype than the one that they state, which is the one of the receipt.
        return plain(values).resolve_conj().resolve_neg().to(tensor.dtype)
    except Exception as error:
        raise UnsupportedTensorError(
            f"{type(tensor).__name__}.dequantize() failed ({error_text(error)}); convert the tensors inside it"
        ) from error
