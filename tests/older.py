"""Skip tests of what an older torch lacks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

TELLS_WHAT_IS_SAVED = hasattr(torch._C._autograd.SavedTensor, "data")
HAS_COMPLEX32 = hasattr(ml_dtypes, "complex32")
HAS_OVERRIDE_REPR = "override_repr" in np.get_printoptions()

needs_override_repr = pytest.mark.skipif(not HAS_OVERRIDE_REPR, reason="NumPy has override_repr since 2.1")
needs_what_is_saved = pytest.mark.skipif(not TELLS_WHAT_IS_SAVED, reason="saved tensors are read since torch 2.9")
needs_complex32 = pytest.mark.skipif(not HAS_COMPLEX32, reason="complex32 is shared since ml_dtypes 0.6")


def is_since(version: str) -> bool:
    """Return whether this torch is at least of that version."""
    ours, theirs = (tuple(int(number) for number in text.split(".")[:2]) for text in (torch.__version__, version))
    return ours >= theirs


def since(version: str, what: str) -> pytest.MarkDecorator:
    """Return a mark that skips where torch is older than `version`."""
    return pytest.mark.skipif(not is_since(version), reason=f"{what} since torch {version}")
