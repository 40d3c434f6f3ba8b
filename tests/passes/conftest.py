"""Each test compiles anew: torch stops compiling a function that was compiled too often in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    yield
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()
