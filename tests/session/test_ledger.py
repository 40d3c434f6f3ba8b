"""What a session remembers of tensors that were shown or converted: how they have changed since, and nothing more."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

import tensornp as tnp
from tensornp.session import ledger as ledger_module
from tensornp.session.ledger import Ledger


@pytest.fixture
def ledger(session):
    return Ledger(session, lambda: session.options)


def test_another_name_of_the_same_elements_is_known(session, ledger):
    """An alias is another object over the same memory."""
    t = session.names["t"] = torch.zeros(4)
    ledger.look(t, tnp.inspect(t))
    t.add_(1)
    alias = t.view(4)
    assert ledger.change_of(alias, tnp.inspect(alias)).cause == "torch"
    other = t.view(2, 2)
    assert ledger.change_of(other, tnp.inspect(other)) is None


def test_nothing_is_kept_alive_and_no_more_than_a_bounded_number(session, ledger, monkeypatch):
    """The last ones; a tensor that is gone says nothing of one that has its place."""
    monkeypatch.setattr(ledger_module, "MAX_RECORDS", 10)
    storages = []
    for _ in range(20):
        t = torch.zeros(1000)
        ledger.look(t, tnp.inspect(t))
        storages.append(weakref.ref(t.untyped_storage()))
        del t
    gc.collect()
    assert len(ledger._records) <= 10
    t = torch.ones(1000)
    assert ledger.change_of(t, tnp.inspect(t)) is None
    ledger.forget()
    assert not ledger._records
