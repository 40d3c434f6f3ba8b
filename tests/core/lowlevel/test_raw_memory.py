"""What is read from torch's own memory: right where it answers, and no answer is no harm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel import raw_memory
from tensornp.core.memory.aliases import find_aliases
from tensornp.core.memory.former import Former


def test_a_counter_is_shared_by_views_and_detached_aliases_alone():
    """By its own effect: `_version` of those moves together."""
    t = torch.zeros(4)
    kin = {"detached": t.detach(), "view": t[1:], "transposed": t.view(2, 2).T, "numpy": t.numpy().base}
    others = {"data": t.data, "clone": t.clone(), "like": torch.zeros(4), "from_numpy": torch.from_numpy(t.numpy())}
    counter = raw_memory.version_counter_of(t)
    assert counter
    before = {name: other._version for name, other in {**kin, **others}.items()}
    t.add_(1)
    for name, other in {**kin, **others}.items():
        assert (raw_memory.version_counter_of(other) == counter) == (other._version > before[name]), name


def test_inference_tensors_have_no_counter():
    """Two of them are no kin."""
    with torch.inference_mode():
        a, b = torch.zeros(2), torch.zeros(2)
    assert raw_memory.version_counter_of(a) == raw_memory.version_counter_of(b) == 0


@pytest.fixture
def without_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose memory is laid out in another way."""
    monkeypatch.setattr(raw_memory._known, "counter_offset", 0)
    monkeypatch.setattr(raw_memory._known, "torch_deleters", frozenset())


@pytest.mark.usefixtures("without_answers")
def test_without_answers_only_what_was_seen_before_is_called_stale():
    """Everything else is told as before."""
    t = torch.zeros(4)
    a, lent = t.numpy(), np.from_dlpack(t)
    names = {"t": t, "a": a, "lent": lent}
    former = Former()
    (seen,), _ = find_aliases([(t, None)], names, 600, former)
    assert {alias.name: alias.relation for alias in seen} == {
        "t": "same object", "a": "same elements", "lent": "same elements",
    }  # fmt: skip
    t.data = torch.ones(4)
    assert {alias.name for alias in tnp.aliases(t, names)} == {"t"}
    (again,), _ = find_aliases([(t, None)], names, 600, former)
    assert {alias.name: alias.relation for alias in again} == {"t": "same object", "a": "stale", "lent": "stale"}
