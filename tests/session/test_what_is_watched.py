"""What is watched, and what each cell changes in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tensornp.errors import BadRequestError
from tensornp.session.watch import Watch


@pytest.fixture
def watch(session):
    return Watch(session, lambda: session.options)


def test_a_report_says_what_changed_since_the_last_one(session, watch):
    """Each change once."""
    model = session.names["model"] = nn.Linear(2, 2)
    assert watch.add(["model"]) == 2
    assert watch.report("In[2]") is None
    with torch.no_grad():
        model.bias.add_(1)
    report = watch.report("In[3]")
    assert report.heading == "In[3] changed"
    assert [line.name for line in report.lines] == ["model.bias"]
    assert watch.report("In[4]") is None


def test_what_is_watched_can_be_left(session, watch):
    """One, or all; other names stay."""
    session.names |= {"a": torch.zeros(2), "b": torch.zeros(2)}
    watch.add(["a", "b"])
    assert watch.remove(["a", "c"]) == ["a"]
    session.names["a"].add_(1)
    assert watch.report("In[2]") is None
    assert watch.remove([]) == ["b"]
    assert watch.names == []


def test_a_name_of_nothing_is_refused_and_changes_nothing(session, watch):
    """What was watched before is watched on."""
    session.names["a"] = torch.zeros(2)
    watch.add(["a"])
    with pytest.raises(BadRequestError):
        watch.add(["nothing"])
    assert watch.names == ["a"]
    session.names["a"].add_(1)
    assert [line.name for line in watch.report("In[2]").lines] == ["a"]


def test_a_name_that_goes_is_told(session, watch):
    """Once."""
    session.names["a"] = torch.zeros(2)
    watch.add(["a"])
    del session.names["a"]
    assert watch.report("In[2]") is not None
    assert watch.report("In[3]") is None
