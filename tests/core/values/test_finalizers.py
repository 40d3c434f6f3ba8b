"""What Python's collector runs in the middle of a look: finalizers and callbacks of the user's."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from child import in_fork

import tensornp as tnp
from tensornp.errors import TensornpError

NBYTES = 2**26
"""So many that the system takes freed memory back at once."""
LOOKS: dict[str, Callable[[torch.Tensor], Any]] = {
    "stats": tnp.stats,
    "compare": lambda t: tnp.compare(t, t),
    "locate": lambda t: tnp.locate(t, "nan"),
    "card": lambda t: str(tnp.card(t)),
    "scan": lambda t: tnp.weights({"a": t}).scan(),
    "to_numpy": lambda t: tnp.to_numpy(t, copy=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKS)
@in_fork
def test_a_finalizer_that_frees_ends_nothing(name):
    """An object in a cycle frees the storage that is read as soon as anything is collected."""
    t = torch.ones(NBYTES // 4)
    storage = t.untyped_storage()

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            storage.resize_(0)

    for count in range(20):
        storage.resize_(NBYTES)
        gc.collect()
        gc.set_threshold(50 + 113 * count, 5, 5)
        Cycle()
        try:
            LOOKS[name](t)
        except TensornpError as error:
            assert "bytes" in str(error) or "memory" in str(error)
