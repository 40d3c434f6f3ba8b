"""All ranks in one card: who has what, who lacks what, where they differ, and who does not answer; simulated."""

from __future__ import annotations

import copy
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from simulated import Here, Simulated, end_timers, hang, late, raising, saying
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.stats.record import FIGURES


@pytest.fixture(autouse=True)
def nobody_is_late_for_ever():
    """Leave no thread behind."""
    yield
    end_timers()


def model(seed: int = 0) -> torch.nn.Module:
    """Return a small model, which is the same each time."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.LayerNorm(4))


def simulated(monkeypatch, num=4, **options):
    own = model()
    return Simulated(monkeypatch, {i: {"model": copy.deepcopy(own)} for i in range(num)}, **options)


def ranks(transport, timeout=5.0):
    return tnp.ranks(transport, timeout=timeout)


def test_ranks_that_have_the_same_are_said_once(monkeypatch):
    transport = simulated(monkeypatch, 32)
    found = ranks(transport).weights("model")
    assert found.told == "32 ranks: the same 4 tensors"
    assert "32 ranks: the same 4 tensors" in tnp.card(found).text
    assert "32 ranks: the same 4 tensors" in found._repr_html_()
    assert list(found) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert found["0.weight"].facts.shape == (4, 8)
    assert found["0.weight"].ranks == tuple(range(32))
    assert (found.answered, found.silent) == (tuple(range(32)), {})
    with pytest.raises(TypeError):
        found["0.weight"] = None


def test_who_lacks_a_tensor_is_named(monkeypatch):
    """And who has one besides, or another."""
    transport = simulated(monkeypatch, 8)
    transport.names[7]["model"][1].bias = None
    found = ranks(transport).weights("model")
    assert tnp.card(found).text.startswith("model · 8 ranks: 4 tensors, 1 not the same on all ·")
    assert found.differences() == {"1.bias": "not on rank 7"}
    assert found["1.bias"].lacking == (7,)
    transport.names[3]["model"].register_buffer("steps", torch.zeros(3))
    transport.names[4]["model"][0].weight = torch.nn.Parameter(torch.zeros(4, 8, dtype=torch.bfloat16))
    found = ranks(transport).weights("model")
    differences = found.differences()
    assert differences["steps"] == "on rank 3"
    assert differences["0.weight"] == "rank 4 has dtype bfloat16 instead of float32"
    assert all(f"{name}: {one}" in tnp.card(found).text for name, one in differences.items())
    assert len(found["0.weight"].variants) == 2
    with pytest.raises(tnp.NoSuchWeightError, match=r"the closest is '0.weight'"):
        found["0.weigth"]


def test_whoever_does_not_answer_has_a_sentence_and_the_card_comes_in_time(monkeypatch):
    """Hanging, late, raising, dead, cancelled, garbage, of another version, without tensornp."""

    class EngineError(Exception):
        pass

    deeds = {
        1: hang,
        2: late(60),
        3: raising(ValueError("out of order\nand more")),
        4: raising(EngineError("Engine 4 died while running task 'x'")),
        5: saying(("9.9", 0, 0, "", ())),
        6: raising(ModuleNotFoundError("No module named 'tensornp'")),
        7: lambda _: object(),
    }
    transport = simulated(monkeypatch, 8, deeds=deeds)
    begun = time.monotonic()
    own = ranks(transport, 0.5)
    found = own.weights("model")
    assert time.monotonic() - begun < 30
    assert found.answered == (0,)
    assert found.told.startswith("1 of 8 ranks: ")
    said = {id: why.removeprefix(f"engine {id} ") for id, why in found.silent.items()}
    assert said[1] == said[2] and said[1].startswith("did not answer within 0.5 s")
    assert said[3].startswith("raised ValueError: out of order")
    assert said[4].startswith("raised EngineError: Engine 4 died")
    assert said[5].startswith("has tensornp 9.9: the same as here")
    assert said[6].startswith("raised ModuleNotFoundError: No module named 'tensornp'")
    assert said[7].startswith("raised AttributeError")
    assert "engine 2 did not answer" in tnp.card(found).text
    # A process that hangs is asked no second question.
    num_asked = len([id for id, *_ in transport.asked if id == 1])
    assert own.weights("model").silent[1].startswith("engine 1 has not answered an earlier question")
    assert len([id for id, *_ in transport.asked if id == 1]) == num_asked == 1


def test_who_has_no_such_name_is_told_the_closest(monkeypatch):
    found = ranks(simulated(monkeypatch, 2)).weights("mdoel")
    assert found.silent[1] == "engine 1 has no 'mdoel'; the closest is 'model'"
    assert found.told == "0 of 2 ranks"
    assert "engine 1 has no 'mdoel'; the closest is 'model'" in tnp.card(found).text
    card = ranks(simulated(monkeypatch, 2)).card("model[1].wieght")
    assert card.silent[0] == "engine 0 has no 'model[1].wieght'"
    card = ranks(simulated(monkeypatch, 2)).card("model")
    assert card.silent[0] == "engine 0 has 4 weights in 'model'; .weights(...) lists them"
    assert "no rank has told its values" in tnp.card(card).text


@pytest.mark.parametrize(
    "expression",
    [
        "", "f(model)", "model.weight + 1", "[x for x in y]", "lambda: 0", "model[i", "a; b", "model[f()]", "(a, b)[0]",
        "a[b:c]",
    ],
)  # fmt: skip
def test_nothing_else_than_names_attributes_and_constant_keys_is_followed(monkeypatch, expression):
    transport = simulated(monkeypatch)
    with pytest.raises(tnp.TensornpError, match="must consist of names"):
        ranks(transport).weights(expression)
    assert not transport.asked


def test_a_path_is_not_opened_and_no_property_runs(monkeypatch, tmp_path):
    ran = []

    class Holder:
        @property
        def model(self):
            ran.append(1)
            return model()

    class Watched:
        def __getattribute__(self, name):
            ran.append(name)
            return object.__getattribute__(self, name)

    (tmp_path / "x.safetensors").write_bytes(b"")
    names = {"model": str(tmp_path / "x.safetensors"), "holder": Holder(), "watched": Watched()}
    transport = Simulated(monkeypatch, {0: names})
    assert "not a Watched" in ranks(transport).weights("watched").silent[0]
    assert "not a str" in ranks(transport).weights("model").silent[0]
    assert "has no 'holder.model'" in ranks(transport).weights("holder.model").silent[0]
    assert not ran


def test_names_that_could_clear_a_terminal_or_be_markup_are_escaped(monkeypatch):
    bad = "a\x1b[2J<script>\u202e\ud800"
    transport = Simulated(monkeypatch, {i: {"w": {bad: torch.ones(i + 1)}} for i in range(3)})
    found = ranks(transport).weights("w")
    for card in (found, found.stats(bad), found.drift()):
        for text in (tnp.card(card).text, repr(card), card._repr_html_()):
            text.encode()
            assert "\x1b" not in text and "\u202e" not in text
        assert "<script>" not in card._repr_html_()


def test_ranks_have_the_numbers_of_their_group(monkeypatch):
    """A process that is known is spoken of by its rank, one that has never answered by its id."""
    transport = simulated(monkeypatch, 3)
    transport.places = {0: (2, 5), 1: (0, 5), 2: (1, 5)}
    transport.names[0]["model"][1].bias = None
    own = ranks(transport, 0.2)
    found = own.weights("model")
    assert found.told == "3 of 5 ranks: 4 tensors, 1 not the same on all"
    assert "1.bias: not on rank 2" in tnp.card(found).text
    transport.deeds[0] = hang
    assert own.weights("model").silent[0].startswith("rank 2 did not answer")
    assert ranks(transport, 0.2).weights("model").silent[0].startswith("engine 0 did not answer")


@pytest.mark.parametrize("client", [None, 3, "rc", object(), SimpleNamespace(ids=[0]), SimpleNamespace, Simulated])
def test_what_is_no_client_is_refused(client):
    with pytest.raises(tnp.TensornpError, match=r"ids and submit\(id, function, \*args\)"):
        tnp.ranks(client)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5", None, True, 1e9])
def test_what_is_no_time_is_refused(monkeypatch, timeout):
    with pytest.raises(tnp.TensornpError, match="timeout must be a number of seconds"):
        tnp.ranks(simulated(monkeypatch), timeout=timeout)


def test_an_answer_changes_nothing_and_no_mode_sees_it():
    """Of a model in training, and of its optimizer, with odd tensors among them."""
    made = model()
    optimizer = torch.optim.Adam(made.parameters())
    made(torch.ones(3, 8)).sum().backward()
    optimizer.step()
    odd = {"lean": torch.eye(3).to_sparse(), "meta": torch.ones(2, device="meta"), "turned": torch.ones(2, 3).mT}
    held = [*made.parameters(), *(one.grad for one in made.parameters()), odd["turned"]]
    held += [value for state in optimizer.state.values() for value in state.values()]
    for obj in (made, optimizer, made.state_dict(), odd, {"model": made, "optimizer": optimizer}):
        with unchanged(*held):
            found = tnp.ranks(Here(obj), timeout=1000).weights("looked_at")
            assert not found.silent
            assert {type(found.stats(name).scope) for name in found} == {str}
            assert found.drift().answered == (0,)


# -- values ------------------------------------------------------------------------------------------------------------


def figures_of(stats):
    return [getattr(stats, name) for name in FIGURES]


def test_a_nan_on_one_replica_is_told_with_its_rank(monkeypatch):
    """It does not count, since most ranks do not have it, and is named."""
    transport = simulated(monkeypatch, 4, has_group=True)
    with torch.no_grad():
        transport.names[2]["model"][0].weight[3, 5] = torch.nan
    found = ranks(transport).card("model[0].weight")
    assert found.nan == 0
    assert found.differing == (2,)
    assert found.nonfinite == {2: "1 NaN"}
    assert "1 NaN on rank 2" in tnp.card(found).text
    assert "the tensor on rank 2 is not that of the others" in found._repr_html_()


@pytest.mark.parametrize(
    "values",
    [
        torch.tensor([1 + 2j, complex("nan")]),
        torch.tensor([2**62, -(2**62), 3]),
        torch.zeros(0, 3),
        torch.tensor(3.5),
        torch.tensor([True, False]),
        torch.tensor([torch.inf, -torch.inf, 1]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.eye(3).to_sparse(),
        torch.nested.nested_tensor([torch.ones(2), torch.arange(3.0)]),
        np.arange(6.0),
    ],
    ids=lambda value: str(value.dtype),
)
def test_figures_of_every_kind_are_those_of_one_process(monkeypatch, values):
    """Complex, integers, empty, scalar, boolean, infinite, sparse, an array."""
    found = ranks(Simulated(monkeypatch, {i: {"w": {"a": values}} for i in range(2)})).weights("w").stats("a")
    expected = tnp.stats(values, histogram=None)
    assert figures_of(found) == figures_of(expected)
    assert "scope" in repr(found) and tnp.card(found).text and found._repr_html_()


# -- drift -------------------------------------------------------------------------------------------------------------


def test_replicas_that_differ_are_named(monkeypatch):
    """Those of the fewest ranks; what all have is not named."""
    own = {"a": torch.zeros(3 * 2**18), "b": torch.ones(5)}
    names = {i: {"w": {key: one.clone() for key, one in own.items()}} for i in range(5)}
    names[2]["w"]["a"][2**18 + 5] = 1
    found = ranks(Simulated(monkeypatch, names)).weights("w").drift()
    assert dict(found) == {"a": "differs on rank 2"}
    assert found.told == "5 ranks: of 2 tensors that several hold, 1 differs"
    assert "differs on rank 2" in tnp.card(found).text
    assert "differs on rank 2" in found._repr_html_()
    with pytest.raises(tnp.NoSuchWeightError):
        found["b"]


def test_another_shape_is_told(monkeypatch):
    every = [torch.ones(3, 4), torch.ones(4, 3), torch.zeros(4, 3), torch.zeros(4, 3)]
    found = ranks(Simulated(monkeypatch, {i: {"w": {"a": one}} for i, one in enumerate(every)})).weights("w").drift()
    assert dict(found) == {"a": "differs on ranks 0..1"}
