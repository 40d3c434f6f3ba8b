"""Skip tests of what an older torch lacks."""

from __future__ import annotations

import ml_dtypes
import pytest
import torch

TELLS_WHAT_IS_SAVED = hasattr(torch._C._autograd.SavedTensor, "data")
HAS_COMPLEX32 = hasattr(ml_dtypes, "complex32")

needs_what_is_saved = pytest.mark.skipif(not TELLS_WHAT_IS_SAVED, reason="saved tensors are read since torch 2.9")
needs_complex32 = pytest.mark.skipif(not HAS_COMPLEX32, reason="complex32 is shared since ml_dtypes 0.6")


def since(version: str, what: str) -> pytest.MarkDecorator:
    """Return a mark that skips where torch is older than `version`."""
    ours, theirs = (tuple(int(number) for number in text.split(".")[:2]) for text in (torch.__version__, version))
    return pytest.mark.skipif(ours < theirs, reason=f"{what} since torch {version}")
