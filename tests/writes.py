"""Whether two objects share memory, by a write to one and a look at the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def raw(obj: Any) -> bytes:
    """Return the elements of a tensor, array, buffer or storage as bytes, in the order of their indices."""
    if isinstance(obj, torch.Tensor):
        plain = obj.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        obj = plain.flatten().view(torch.uint8).numpy()
    return bytes(obj) if isinstance(obj, (bytearray, torch.UntypedStorage)) else np.array(obj).tobytes()


def sees(writer: Any, reader: Any) -> bool:
    """Return whether a write to every element of `writer`, by its own library, is seen in `reader`; it is undone."""
    before = raw(reader)
    kept = writer.clone() if isinstance(writer, torch.Tensor) else writer.copy()
    with torch.no_grad():
        # Two values, one of which differs from what is there.
        for value in (0, 1):
            writer[...] = value
            if raw(reader) != before:
                writer[...] = kept
                return True
        writer[...] = kept
    return False
