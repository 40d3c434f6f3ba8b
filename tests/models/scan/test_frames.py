"""Tables of pandas, of an explorer, a scan and a comparison; without pandas, one sentence."""

from __future__ import annotations

import sys

import pandas
import pytest
import torch

import tensornp as tnp


@pytest.fixture
def made():
    """Two states of a model, of which one has a NaN."""
    model = torch.nn.Linear(3, 4)
    first = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    second = {name: tensor.clone() for name, tensor in first.items()}
    second["bias"][1] = float("nan")
    return first, second


def test_weights_are_a_frame(made):
    """A row for each, with what is known of it for nothing."""
    explorer = tnp.weights(made[0])
    frame = explorer.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == ["weight", "bias"] and frame.index.name == "name"
    for name, entry in explorer.items():
        for column in ("kind", "shape", "dtype", "nbytes", "location", "code", "problem"):
            assert frame.loc[name, column] == getattr(entry, column)


def test_a_scan_is_a_frame_in_its_order(made):
    """The worst first, with its findings."""
    table = tnp.weights(made[1]).scan()
    frame = table.to_frame()
    assert list(frame.index) == ["bias", "weight"] == list(table)
    assert frame.loc["bias", "findings"] == "1 of 4 is NaN"
    assert frame.loc["weight", "std"] == table["weight"].std
    assert frame["count"].sum() == 16


def test_a_comparison_is_a_frame(made):
    """What moved most first."""
    found = tnp.compare(*made)
    frame = found.to_frame()
    assert list(frame.index) == list(found)
    assert frame.loc["weight", "verdict"] == found["weight"].verdict


def test_without_pandas_one_sentence_tells_so(made, monkeypatch):
    """And what to take instead."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    explorer = tnp.weights(made[0])
    for obj in (explorer, explorer.scan(), tnp.compare(*made)):
        with pytest.raises(tnp.MissingLibraryError, match="a frame needs pandas; install it, or take the mapping"):
            obj.to_frame()
    assert isinstance(tnp.MissingLibraryError(""), ImportError)
