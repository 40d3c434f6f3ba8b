"""What an older torch or NumPy lacks, and tests then leave out or expect in another way."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from tensornp.core.lowlevel.private_names import find

TELLS_WHAT_IS_SAVED = find("_C._autograd.SavedTensor.data") is not None
HAS_COMPLEX32 = hasattr(ml_dtypes, "complex32")
CAN_SAVE_UINT16 = CAN_LOAD_SETS = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 5)
HAS_NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"

needs_what_is_saved = pytest.mark.skipif(
    not TELLS_WHAT_IS_SAVED, reason="what backward has saved is told since torch 2.9"
)
needs_complex32 = pytest.mark.skipif(not HAS_COMPLEX32, reason="complex32 is shared since ml_dtypes 0.6")
needs_numpy_2 = pytest.mark.skipif(not HAS_NUMPY_2, reason="override_repr is an option since NumPy 2")


def since(version: str, what: str) -> pytest.MarkDecorator:
    """Return a mark that skips where torch is older than `version`."""
    ours, theirs = (tuple(int(number) for number in text.split(".")[:2]) for text in (torch.__version__, version))
    return pytest.mark.skipif(ours < theirs, reason=f"{what} since torch {version}")
