"""What an older torch lacks, and tests then leave out or expect in another way."""

from __future__ import annotations

import pytest

from tensornp.core.private_names import find

TELLS_WHAT_IS_SAVED = find("_C._autograd.SavedTensor.data") is not None
needs_what_is_saved = pytest.mark.skipif(
    not TELLS_WHAT_IS_SAVED, reason="what backward has saved is told since torch 2.9"
)
