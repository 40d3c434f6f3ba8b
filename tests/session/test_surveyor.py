"""The census of a session, and what its history alone holds let go."""

from __future__ import annotations

import torch

from tensornp.session.ledger import Ledger
from tensornp.session.release import census, release


def test_what_the_history_alone_holds_comes_free(session):
    """And what has a name of the user's stays."""
    session.names["kept"] = torch.zeros(1000)
    session.show(1, session.names["kept"])
    session.show(2, torch.zeros(2000))
    said = release(session)
    assert "Out[2]" in said and "8,000 bytes" in said
    assert list(session.results) == [1]
    assert release(session) == "nothing to release: every tensor and array here has a name of yours"


def test_what_a_traceback_holds_comes_free(session):
    """By a name that says where it lies."""
    session.in_traceback["x in f()"] = torch.zeros(1000)
    assert "4,000 bytes" in release(session)
    assert not session.in_traceback


def test_what_somebody_else_holds_is_told(session):
    """It was let go of here, and did not come free."""
    elsewhere = torch.zeros(1000)
    session.show(1, elsewhere)
    assert "still held elsewhere" in release(session)


def test_a_census_counts_each_storage_once(session):
    """Under all of its names, and says whose it is."""
    t = torch.zeros(1000)
    session.names |= {"t": t, "view": t[:10], "model": torch.nn.Linear(2, 2)}
    ledger = Ledger(session, lambda: session.options)
    every = census(session, ledger, max_rows=100, patterns=())
    assert every.totals == {"cpu": 4000 + 24}
    assert every.owners["parameters and buffers"] == 24
    assert [row.name for row in every.groups[0].rows] == ["t", "view"]
    only = census(session, ledger, max_rows=100, patterns=("model*",))
    assert {row.name for group in only.groups for row in group.rows} == {"model.weight", "model.bias"}
