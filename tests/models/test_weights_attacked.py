"""What an attack on `weights` has found: of tensors in memory, of paths, and of what is asked of an explorer."""

from __future__ import annotations

import enum
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.render.models.weights import weights_document


class _Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "tree",
    [
        {(0, 1): torch.ones(1), (0, 2): torch.ones(2)},
        {np.str_("a"): torch.ones(1), np.str_("b"): torch.ones(2)},
        {np.int64(1): torch.ones(1), np.int64(2): torch.ones(2)},
        {_Color.RED: torch.ones(1), _Color.BLUE: torch.ones(2)},
        {b"x" * 200 + b"1": torch.ones(1), b"x" * 200 + b"2": torch.ones(2)},
        {"x" * 200 + "1": {"a": torch.ones(1)}, "x" * 200 + "1.a": torch.ones(2)},
        {"a": {"b": torch.ones(1)}, "a.b": torch.ones(2), "['a']['b']": torch.ones(3)},
    ],
    ids=["tuples", "numpy.str_", "numpy.int64", "enum", "bytes", "long", "brackets"],
)
def test_no_tensor_of_a_dictionary_vanishes(tree):
    """Though other keys give its name, or none that can be told from the others'."""
    explorer = tnp.weights(tree)
    sizes = sorted(len(entry.to_numpy()) for entry in explorer.values())
    assert sizes == list(range(1, len(sizes) + 1))
    assert len(sizes) == sum(len(one) if type(one) is dict else 1 for one in tree.values())


def test_keys_are_written_as_they_are_reached():
    """A tuple of numbers, a text of any length, and a text of another class."""
    tree = {(0, 1): torch.ones(1), "x" * 300: torch.ones(2), np.str_("a"): torch.ones(3)}
    explorer = tnp.weights(tree)
    assert list(explorer) == ["(0, 1)", "x" * 300, "a"]
    for entry in explorer.values():
        assert eval(entry.code, {"tree": tree}) is entry.tensor


def test_modules_that_are_shared_at_each_level_end():
    """Of 2**40 names some are listed, each weight among them, and that there are more is told."""
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(40):
        pair = nn.Module()
        pair.a = pair.b = model
        pair.own = nn.Parameter(torch.ones(1))
        model = pair
    explorer = tnp.weights(model)
    assert len({id(entry.tensor) for entry in explorer.values()}) == 42
    assert len(explorer) < 5000
    assert "further names, and others are not listed" in explorer.problems[0]
    shared = nn.Linear(2, 2)
    ordinary = tnp.weights(nn.Sequential(*[shared] * 200))
    assert len(ordinary) == 400
    assert ordinary.problems == []


@pytest.mark.parametrize(
    ("tensor", "index"),
    [
        (torch.eye(4).to_sparse(), (..., slice(0, 1))),
        (torch.eye(4).to_mkldnn(), 0),
        (torch.ones(2, 2), (None,) * 70),
        (torch.ones(2, 2), True),
        (torch.ones(2, 2), np.True_),
        (torch.ones(2, 2), (0, 0, 0)),
        (np.ones((2, 2)), (None,) * 70),
    ],
)
def test_an_index_that_torch_does_not_take_is_refused(tensor, index):
    """In one sentence, by `to_numpy` and by `plan`."""
    entry = tnp.weights({"a": tensor})["a"]
    for ask in (entry.to_numpy, entry.plan):
        with pytest.raises(tnp.BadRequestError):
            ask(index)


def test_a_freed_tensor_has_no_values():
    """It says so before it is asked."""
    tensor = torch.ones(4, 3)
    tensor.untyped_storage().resize_(0)
    entry = tnp.weights({"a": tensor})["a"]
    assert entry.problem == "its storage was freed"
    nothing = tnp.weights(nn.Linear(2, 2, bias=False))["bias"]
    for ask in (entry.to_numpy, nothing.to_numpy, nothing.plan, nothing.stats):
        with pytest.raises(tnp.NoDataError):
            ask()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_give_a_list_and_are_counted(layout):
    """Their shape tells nothing of how many they have."""
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=layout)
    explorer = tnp.weights({"a": nested, "b": torch.ones(2)})
    entry = explorer["a"]
    assert entry.numel == 9
    assert explorer.totals.parameters == 11
    assert [one.shape for one in entry.to_numpy()] == [(2, 3), (1, 3)]
    assert entry.to_numpy(-1).tolist() == [[0, 0, 0]]
    for index in (2, slice(0, 1), (0, 0)):
        with pytest.raises(tnp.BadRequestError):
            entry.to_numpy(index)


@pytest.mark.parametrize("nothing", ["", " ", {}, {"a": 1}, {1, 2}, [], {"a": {"b": []}}], ids=repr)
def test_what_holds_no_weights_is_a_bad_request(nothing):
    """As the documentation says."""
    with pytest.raises(tnp.BadRequestError):
        tnp.weights(nothing)


def _written(path: Path, header: dict[str, object], nbytes: int) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(nbytes))
    return path


def test_what_a_file_says_is_shown_on_one_line(tmp_path):
    """Whatever is in its names, dtypes and metadata, and in the path: in the table, in reprs and in errors."""
    evil = "\x1b[2J\u202e\n<script>"
    header = {
        f"n{evil}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "d": {"dtype": f"F99{evil}", "shape": [1], "data_offsets": [4, 8]},
        "": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        "__metadata__": {f"k{evil}": f"v{evil}"},
    }
    path = _written(tmp_path / f"x{evil}.safetensors", header, 12)
    explorer = tnp.weights(path)
    said = [repr(explorer), *map(repr, explorer.values()), *weights_document(explorer).text().split("\n")]
    page = weights_document(explorer).html()
    assert "<script>" not in page
    said += page.split("\n")
    for ask in (lambda: explorer["nowhere"], lambda: explorer[f"n{evil}x"], explorer["d"].to_numpy):
        with pytest.raises(tnp.TensornpError) as raised:
            ask()
        said.append(str(raised.value))
    assert all(text.isprintable() for text in said)
    assert "''" in weights_document(explorer).text()
