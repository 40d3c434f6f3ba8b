"""Tensors that the last traceback holds are let go."""

from __future__ import annotations

import torch

from tensornp.session.release import release


def test_what_a_traceback_holds_comes_free(session):
    """By a name that says where it lies."""
    session.in_traceback["x in f()"] = torch.zeros(1000)
    assert "4,000 bytes" in release(session)
    assert not session.in_traceback
