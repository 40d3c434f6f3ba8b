"""The record of a weight: what it says is said once, and for good."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from child import in_child

import tensornp as tnp


@pytest.fixture
def entry(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    return tnp.weights(tmp_path / "x.npy")["array"]


@pytest.mark.parametrize("same", [copy.copy, replace, lambda one: pickle.loads(pickle.dumps(one))])
def test_another_one_says_the_same(entry, same):
    """Copied, replaced, and sent to another process; it is known by itself, as two listings are two."""
    made = same(entry)
    assert type(made) is type(entry)
    assert repr(made) == repr(entry)
    assert made != entry
    assert made.to_numpy(1).tolist() == [3, 4, 5]
    assert replace(entry, note="n").note == "n"


@pytest.mark.slow
@in_child
def test_what_is_not_met_is_not_imported():
    """Of a .npy file neither the reader of another format, nor the pickle machine, live sources or statistics."""
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", np.ones(3))
        tnp.weights(f"{folder}/x.npy")["array"].to_numpy()
    others = "formats.gguf formats.torch_save formats.safetensors formats.dcp pickles live scan"
    unmet = [f"tensornp.models.{one}" for one in others.split()] + ["tensornp.core.values.stats"]
    assert [one for one in unmet if any(f"{name}.".startswith(f"{one}.") for name in sys.modules)] == []
