"""What containers hold beside their weights: plain values of one name are compared by value."""

from __future__ import annotations

import copy
import datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed.checkpoint import FileSystemWriter
from written_dcp import save

import tensornp as tnp
from tensornp.render.models.comparison import weights_comparison_document


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (2, 1, "2 → 1"),
        ("x", "y", "'x' → 'y'"),
        (None, 0, "None → 0"),
        (b"1", "1", "b'1' → '1'"),
        (1.5, float("nan"), "1.5 → nan"),
    ],
)
def test_a_plain_value_that_differs_is_told(a: object, b: object, told: str, tmp_path: Path):
    """In memory and in a file: the weights are the same, and what is compared is not."""
    first, second = ({"a": torch.ones(2), "b": value} for value in (a, b))
    torch.save(second, tmp_path / "second.pt")
    for other in (second, tmp_path / "second.pt"):
        found = tnp.compare(first, other)
        assert (found.equal, found.same_bits, found._beside) == (False, False, {"b": told})
        assert f"1 value differs beside the weights (b: {told})" in repr(found).replace("'b'", "b")
        assert told in weights_comparison_document(found).text()


def test_equal_values_and_numbers_of_groups_are_no_difference(tmp_path: Path):
    """As an integer is equal to a float; the learning rate of an optimizer changes from one checkpoint to the next."""
    t = torch.ones(2)
    assert tnp.compare({"a": t, "b": 2, "c": float("nan")}, {"a": t, "b": 2.0, "c": float("nan")}).same_bits
    saved = [{"model": {"a": t}, "optimizer": torch.optim.SGD([t], lr=lr).state_dict()} for lr in (0.1, 0.2)]
    found = tnp.compare(*saved)
    assert found.same_bits
    assert found._not_compared == {"optimizer.param_groups.0.lr": "another value in the groups of an optimizer"}
    assert tnp.compare(saved[0], saved[0])._not_compared == {}


@pytest.mark.parametrize("row", [tuple, list])
def test_groups_of_a_live_optimizer_and_of_a_saved_one_are_told_apart(tmp_path: Path, row: type):
    """By the names that they have when saved, in a container or alone; what is the same is not spoken of."""
    model = torch.nn.Linear(2, 2)
    first, second, same = (
        torch.optim.Adam(model.parameters(), lr=lr, betas=row([0.9, 0.999])) for lr in (0.1, 0.2, 0.1)
    )
    second.param_groups[0]["betas"] = row([0.9, 0.5])
    torch.save({"model": model.state_dict(), "opt": first.state_dict()}, tmp_path / "both.pt")
    found = tnp.compare(tmp_path / "both.pt", {"model": model, "opt": second})
    assert found.same_bits
    assert found._not_compared == dict.fromkeys(
        ["opt.param_groups.0.lr", "opt.param_groups.0.betas.1"], "another value in the groups of an optimizer"
    )
    for one in (first, first.state_dict()):
        for other in (second, second.state_dict()):
            assert list(tnp.compare(one, other)._not_compared) == ["param_groups.0.lr", "param_groups.0.betas.1"]
        assert tnp.compare(one, same)._not_compared == {}


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({"warmup": 3}, {"warmup": 4}, {".warmup": "another value in the groups of an optimizer"}),
        ([{"at": [1, 2]}], [{"at": [1, 3]}], {".0.at.1": "another value in the groups of an optimizer"}),
        ([0] * 200, [0] * 199 + [1], {".199": "another value in the groups of an optimizer"}),
        (np.float32(1), np.float32(2), {"": "another value in the groups of an optimizer"}),
        (torch.float32, torch.float16, {"": "another value in the groups of an optimizer"}),
        ({}, {"warmup": 4}, {".warmup": "only in the second"}),
        (abs, len, {"": "of the class builtin_function_or_method"}),
    ],
)
def test_options_of_groups_are_named_whatever_they_are(a: object, b: object, told: dict[str, str]):
    """In dictionaries, long lists and other objects, of live optimizers, alone or in a container, and of saved ones."""
    model = torch.nn.Linear(2, 2)
    first, second = (torch.optim.Adam(model.parameters()) for _ in "ab")
    first.param_groups[0]["plan"], second.param_groups[0]["plan"] = a, b
    expected = {f"param_groups.0.plan{tail}": why for tail, why in told.items()}
    assert tnp.compare(first, second)._not_compared == expected
    assert tnp.compare(first.state_dict(), second.state_dict())._not_compared == expected
    for one in (second, second.state_dict()):
        found = tnp.compare({"model": model, "opt": first}, {"model": model, "opt": one})._not_compared
        assert found == {f"opt.{name}": why for name, why in expected.items()}
    assert [*tnp.compare(first, second.state_dict())._not_compared] == [*expected]


def test_sets_in_groups_are_named_as_not_compared():
    """They have no order."""
    first, second = (torch.optim.SGD([torch.ones(2)]) for _ in "ab")
    first.param_groups[0]["kinds"] = second.param_groups[0]["kinds"] = {0, 8}
    assert tnp.compare(first, second)._not_compared == {"param_groups.0.kinds.{…}": "of the class set"}


def test_numbers_in_dictionaries_of_states_are_compared():
    """By the names that they have when saved."""
    weight = torch.nn.Parameter(torch.ones(2))
    first, second = (torch.optim.SGD([weight]) for _ in "ab")
    first.state[weight]["seen"], second.state[weight]["seen"] = {"steps": 3}, {"steps": 4}
    assert tnp.compare(first, second)._beside == {"state.0.seen.steps": "3 → 4"}


def test_the_order_of_a_set_is_no_difference(tmp_path: Path):
    """It is another where the same elements came in another order, and in another process."""
    first, second = {"a": torch.ones(2), "b": {0, 8}}, {"a": torch.ones(2), "b": {8, 0}}
    assert tnp.compare(first, second).same_bits
    assert not tnp.compare(first, second)._not_compared
    found = tnp.compare(first, {"a": torch.ones(2), "b": {0, 9}})
    assert found.same_bits
    assert set(found._not_compared.values()) == {"in sets that are not alike"}
    for name, one in (("first.pt", first), ("second.pt", second)):
        torch.save(one, tmp_path / name)
    assert tnp.compare(tmp_path / "first.pt", tmp_path / "second.pt").same_bits


@pytest.mark.parametrize("protocol", [2, 4])
def test_sets_have_no_order_in_files_of_any_protocol(protocol: int, tmp_path: Path):
    """A later protocol has an opcode for them."""
    for name, values in (("first.pt", {0, 8, "x"}), ("second.pt", {8, "x", 0})):
        held = {"a": torch.ones(2), "b": set(values), "c": frozenset(values)}
        torch.save(held, tmp_path / name, pickle_protocol=protocol)
    (tmp_path / "second.pt").write_bytes((tmp_path / "second.pt").read_bytes().replace(b"K\x00K\x08", b"K\x08K\x00"))
    found = tnp.compare(tmp_path / "first.pt", tmp_path / "second.pt")
    assert found.same_bits
    assert not found._not_compared
    assert sorted(map(str, tnp.weights(tmp_path / "first.pt").metadata.values())) == ["0", "0", "8", "8", "x", "x"]


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (np.float32(1.5), np.float32(2), "1.5 → 2.0"),
        (np.int64(3), 4, "3 → 4"),
        (torch.float32, torch.bfloat16, "'torch.float32' → 'torch.bfloat16'"),
        (torch.strided, torch.sparse_coo, "'torch.strided' → 'torch.sparse_coo'"),
        (torch.device("cuda", 1), torch.device("cpu"), "'cuda:1' → 'cpu'"),
    ],
)
def test_numbers_of_numpy_and_words_of_torch_are_values(a: object, b: object, told: str, tmp_path: Path):
    """In memory and in a file, and each is equal to itself."""
    first, second = ({"a": torch.ones(2), "b": value} for value in (a, b))
    torch.save(first, tmp_path / "first.pt")
    torch.save(second, tmp_path / "second.pt")
    for one in (first, tmp_path / "first.pt"):
        assert tnp.compare(one, first).same_bits
        for other in (second, tmp_path / "second.pt"):
            assert tnp.compare(one, other)._beside == {"b": told}


def test_what_is_not_compared_is_named():
    """An object is not looked into, and a value that one side has is no difference: both are said."""
    first = {"a": torch.ones(2), "b": torch.Generator(), "c": 1, "size": torch.Size([2])}
    second = {"a": torch.ones(2), "b": torch.Generator().manual_seed(3), "d": len, "size": torch.Size([2])}
    found = tnp.compare(first, second)
    assert found.same_bits
    assert found._not_compared == {
        "b": "of the class Generator",
        "c": "only in the first",
        "d": "only in the second",
    }
    assert "3 not compared beside the weights ('c': only in the first, …)" in repr(found)
    told = "1 only in the first: c; 1 of the class Generator: b; 1 only in the second: d"
    assert f"beside the weights, not compared: {told}" in weights_comparison_document(found).text()


def test_objects_of_files_are_named_too(tmp_path: Path):
    """What a file would make by a call is not made, and so not compared."""
    for name, day in (("first.pt", 1), ("second.pt", 2)):
        torch.save({"a": torch.ones(2), "b": datetime.date(2020, 1, day), "s": torch.Size([day])}, tmp_path / name)
    found = tnp.compare(tmp_path / "first.pt", tmp_path / "second.pt")
    assert found._not_compared == {"b": "of the class datetime.date"}
    assert found._beside == {"s.0": "1 → 2"}


class Counts(torch.optim.Optimizer):
    """An optimizer that keeps its step as an integer, as many do."""

    def __init__(self, params: list[torch.Tensor]) -> None:
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Count."""
        for one in self.param_groups[0]["params"]:
            state = self.state[one]
            state["step"] = state.get("step", 0) + 1
            state["average"] = torch.zeros_like(one)


def test_numbers_in_states_of_optimizers_are_compared(tmp_path: Path):
    """Live, saved, and in a container; they have the names that they have when saved."""
    model = torch.nn.Linear(2, 2)
    optimizer = Counts([*model.parameters()])
    optimizer.step()
    before, saved = copy.deepcopy(optimizer), copy.deepcopy(optimizer.state_dict())
    torch.save({"model": model.state_dict(), "optimizer": saved}, tmp_path / "both.pt")
    assert tnp.weights(optimizer).metadata["state.0.step"] == 1
    assert tnp.compare(before, optimizer).same_bits
    for state in optimizer.state.values():
        state["step"] = 9
    for one in (before, saved):
        found = tnp.compare(one, optimizer)
        assert (found.equal, found._beside) == (False, {"state.0.step": "1 → 9", "state.1.step": "1 → 9"})
    found = tnp.compare(tmp_path / "both.pt", {"model": model, "optimizer": optimizer})
    assert list(found._beside) == ["optimizer.state.0.step", "optimizer.state.1.step"]
    assert not found._not_compared


def test_numbers_in_a_checkpoint_are_compared_with_those_of_the_optimizer_that_it_holds(tmp_path: Path):
    """Whichever comes first, under the name that the first has; what is elsewhere in it is named."""
    model = torch.nn.Embedding(4, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())
    model(torch.tensor([0])).sum().backward()
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    torch.save({"optimizer": saved, "epoch": 1}, tmp_path / "equal.pt")
    saved["state"][0]["step"] = 9
    torch.save({"optimizer": saved, "epoch": 1}, tmp_path / "other.pt")
    found = tnp.compare(optimizer, tmp_path / "equal.pt")
    assert found.same_bits
    assert found._not_compared == {"epoch": "only in equal.pt"}
    found = tnp.compare(optimizer, tmp_path / "other.pt")
    assert (found.equal, found._beside) == (False, {"state.0.step": "1 → 9"})
    found = tnp.compare(tmp_path / "other.pt", optimizer)
    assert (found.equal, found._beside) == (False, {"optimizer.state.0.step": "9 → 1"})


def test_values_are_compared_however_many_stand_before_them(tmp_path: Path):
    """A history, or the parameters of an optimizer, are numbers too."""
    first, second = ({"losses": [0.5] * 1500, "epoch": epoch, "a": torch.ones(2)} for epoch in (1, 2))
    torch.save(second, tmp_path / "second.pt")
    for other in (second, tmp_path / "second.pt"):
        assert tnp.compare(first, other)._beside == {"epoch": "1 → 2"}


def test_values_of_folders_of_dcp_are_compared(tmp_path: Path):
    """With each other, and with what is in memory."""
    states = [{"a": torch.ones(2), "epoch": epoch} for epoch in (1, 2)]
    for name, state in zip(("first", "second"), states, strict=True):
        save(state, FileSystemWriter(tmp_path / name))
    for other in (tmp_path / "second", states[1]):
        assert tnp.compare(tmp_path / "first", other)._beside == {"epoch": "1 → 2"}
    assert tnp.compare(tmp_path / "first", states[0]).same_bits


def test_what_stands_beside_the_whole_stands_beside_no_part(tmp_path: Path):
    """Of a checkpoint, the model may be the same, and the epoch another."""
    for name, epoch in (("first.pt", 1), ("second.pt", 2)):
        torch.save({"model": {"a": torch.ones(2)}, "epoch": epoch}, tmp_path / name)
    first, second = (tnp.weights(tmp_path / name) for name in ("first.pt", "second.pt"))
    assert not tnp.compare(first, second).equal
    for part in (lambda one: one["model"], lambda one: one.find("a")):
        assert tnp.compare(part(first), part(second)).same_bits


def test_a_user_s_own_key_is_no_group_of_an_optimizer():
    """Nor one with braces a set."""
    first, second = ({"num_param_groups": n, "{…}": n, "a": torch.ones(2)} for n in (2, 3))
    assert len(tnp.compare(first, second)._beside) == 2


def test_the_page_says_how_many_more_there_are():
    """Of what is too much to be listed."""
    first, second = ({"a": torch.ones(2), **{f"v{i}": i + n for i in range(20)}} for n in (0, 1))
    lines = weights_comparison_document(tnp.compare(first, second)).text().splitlines()
    assert sum("is another value" in line for line in lines) == 8
    assert "… and 12 more of these" in lines
