"""A toggle is a look as well: choosing a mode and binding are seen by nobody, whatever the tensor is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from odd import forget_what_was_asked, many_kinds, nothing_was_asked, plain
from unchanged import unchanged

from tensornp.widget.toggle import TensorWidget


def _send(widget: TensorWidget, kind: str, **content: Any) -> None:
    """Do what a page does."""
    content |= {"type": kind, "page": "p", "number": 1}
    widget._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


@pytest.mark.slow
@pytest.mark.parametrize("name", many_kinds())
def test_choosing_a_mode_and_binding_are_not_seen(name):
    """A mode reads no values, and of a tensor that is bound, only what sharing memory means is another."""
    kinds, bound = many_kinds(), {}
    tensors = [plain(t) for t in kinds.values()]
    forget_what_was_asked()
    with unchanged(*tensors):
        widget = TensorWidget(kinds[name], binder=lambda name, make, overwrite: bound.update({name: make()}))
        for mode in ("share", "copy", "view", "nonsense", "copy"):
            _send(widget, "choose", mode=mode)
        possible = [choice["name"] for choice in widget.choices if choice["enabled"]]
    with unchanged(*tensors, but=("resizable", "lazily copied", "address")):
        for mode in possible:
            _send(widget, "choose", mode=mode)
            _send(widget, "bind", name=mode)
    assert list(bound) == possible != []
    assert all(isinstance(array, (np.ndarray, list)) for array in bound.values())
    assert nothing_was_asked()
