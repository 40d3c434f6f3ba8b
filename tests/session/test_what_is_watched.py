"""What is watched, and what each cell changes in it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tensornp.errors import BadRequestError
from tensornp.session.watch import Watch


@pytest.fixture
def watch(session):
    return Watch(session, lambda: session.options)


def test_a_report_says_what_changed_since_the_last_one_that_was_told(session, watch):
    """What was not told is told with the next cell."""
    model = session.names["model"] = nn.Linear(2, 2)
    assert watch.add(["model"]) == 2
    assert watch.report("In[2]") is None
    watch.acknowledge()
    with torch.no_grad():
        model.bias.add_(1)
    report = watch.report("In[3]")
    assert report.heading == "In[3] changed"
    assert [line.name for line in report.lines] == ["model.bias"]
    assert watch.report("In[4]").heading == "In[3] to In[4] changed"
    watch.acknowledge()
    assert watch.report("In[5]") is None


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
    watch.acknowledge()
    assert watch.report("In[3]") is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is asked whether memory can be read")
@pytest.mark.parametrize("limit", [2**20, 2**16])
def test_what_cannot_be_read_any_more_is_told_once(session, watch, tmp_path: Path, limit: int):
    """A file that lies under memory has become shorter; read as a whole or a sample, and when it is long again."""
    file, nbytes = tmp_path / "mapped", 2**20
    file.write_bytes(bytes(nbytes))
    session.options = replace(session.options, max_read_nbytes=limit)
    session.names["t"] = torch.from_file(str(file), shared=True, size=nbytes // 4)
    session.names["a"] = np.memmap(file, np.float32, "r+")
    watch.add(["t", "a"])
    os.truncate(file, 4096)
    report = watch.report("In[2]")
    told = ("cannot be read any more: the file behind this memory has become shorter",)
    assert [(line.name, line.parts) for line in report.lines] == [("t", told), ("a", told)]
    watch.acknowledge()
    report = watch.report("In[3]")
    assert report is None or not report.lines
    os.truncate(file, nbytes)
    report = watch.report("In[4]")
    assert [(line.name, line.parts) for line in report.lines] == [(name, ("can be read again",)) for name in "ta"]
