"""Classes of the user's own stand for a tensor: shown, converted and found as that tensor is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.masked import masked_tensor

import tensornp as tnp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.collections.container import container_document
from tensornp.render.tensor.card import tensor_text


class Kept:
    """Holds its values, by either library."""

    def __init__(self, values):
        self.values = values


class Scaled:
    """Computes its values anew each time."""

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    def dequantize(self):
        return self.codes * self.scale


class Says:
    """Says itself for what it stands, without importing anything."""

    def __init__(self, values):
        self.values = values

    def __tensornp__(self):
        if isinstance(self.values, Exception):
            raise self.values
        return self.values


class Tracked(torch.Tensor):
    """A tensor of its own, which stands for another one."""


@dataclass
class Batch:
    values: torch.Tensor
    other: torch.Tensor


@pytest.fixture(autouse=True)
def _registered():
    tnp.register_kind(Kept, values=lambda kept: kept.values)
    tnp.register_kind(Scaled, values=Scaled.dequantize, label="scaled", detail=lambda t: f"by {t.scale}")
    yield
    for cls in (Kept, Scaled, Tracked, Batch):
        tnp.register_kind(cls)


def card(obj):
    return tensor_text(summarize(obj, DisplayOptions()))


@pytest.mark.parametrize("make", [torch.arange, np.arange])
@pytest.mark.parametrize("cls", [Kept, Says])
def test_what_holds_its_values_shares_them(cls, make):
    """A write on either side is seen on the other, and the plan, the card and the code of the receipt say so."""
    held = make(3.0)
    obj = cls(held)
    array = tnp.to_numpy(obj, copy=False, writeable=True)
    array[0] = 7
    assert float(held[0]) == 7
    plan = tnp.plan(obj)
    assert plan.shares_memory and plan.steps[0] is tnp.Step.STAND_IN and plan.nbytes_copied == 0
    assert "shared" in card(obj)
    assert repr(tnp.to_numpy(obj)) in card(obj)


def test_the_code_of_the_receipt_gives_the_same_array():
    """The function is called by its name, and the method as one."""
    for obj, names in (
        (Says(torch.arange(3.0)), {}),
        (Scaled(torch.arange(3), 0.5), {"dequantize": Scaled.dequantize}),
    ):
        array = eval(tnp.plan(obj).code, {"np": np, "torch": torch, "t": obj, **names})
        assert array.tolist() == tnp.to_numpy(obj).tolist()


def test_what_computes_its_values_is_copied_and_says_so():
    """No view is offered of memory that nobody else has."""
    obj = Scaled(torch.arange(3), 0.5)
    plan = tnp.plan(obj)
    assert (plan.shares_memory, plan.nbytes_copied) == (False, 12)
    assert plan.reason == "copy: Scaled computes its values, so they are new memory"
    with pytest.raises(tnp.CopyRequiredError, match="of class Scaled cannot share"):
        tnp.to_numpy(obj, copy=False)
    assert "scaled · by 0.5" in card(obj)
    assert tnp.to_numpy(obj).tolist() == [0, 0.5, 1]


def test_the_kind_of_what_it_stands_for_is_kept():
    """bfloat16 is widened, a sparse tensor laid out, a conjugate resolved, a nested tensor gives a list."""
    assert tnp.to_numpy(Says(torch.tensor([0.5]).bfloat16())).dtype == np.float32
    assert tnp.to_numpy(Says(torch.eye(2).to_sparse())).tolist() == [[1, 0], [0, 1]]
    assert tnp.to_numpy(Says(torch.tensor([1j]).conj())).tolist() == [-1j]
    assert tnp.plan(Says(torch.tensor([1j]).conj())).steps == (tnp.Step.STAND_IN, tnp.Step.RESOLVE_CONJ)
    odd = [
        torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
        masked_tensor(torch.ones(2), torch.eye(2)[0] > 0),
    ]
    for values in odd:
        assert repr(tnp.to_numpy(values)) in card(Says(values))
        assert repr(tnp.to_numpy(values)) == repr(tnp.to_numpy(Says(values)))
    inner = Says(torch.ones(2))
    assert isinstance(tnp.to_numpy({"a": [inner]})["a"][0], np.ndarray)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (ValueError("no <b>luck</b>"), "__tensornp__() of Says failed (ValueError: no <b>luck</b>)"),
        ([1, 2], "__tensornp__() of Says gives a list"),
        (np.array(["a"]), "__tensornp__() of Says gives an ndarray"),
        (np.broadcast_to(np.zeros(1), 3), "__tensornp__() of Says gives an ndarray"),
        (np.ma.array([1.0], mask=[True]), "__tensornp__() of Says gives a MaskedArray"),
        (torch.zeros(2, device="meta"), "a meta tensor has a shape and a dtype but no data"),
    ],
)
def test_what_cannot_be_told_ends_in_a_card_that_says_so(values, says):
    """Looking never fails; a conversion raises, and names the entry of a container."""
    obj = Says(values)
    assert says in card(obj)
    assert says in container_document(summarize_container({"a": obj}, DisplayOptions())).text()
    with pytest.raises(tnp.TensornpError) as caught:
        tnp.to_numpy({"a": [obj]})
    assert str(caught.value).startswith(f"['a'][0]: {says}")


def test_a_class_that_stands_for_itself_is_refused():
    """It would have no end."""
    tnp.register_kind(Tracked, values=lambda t: t)
    assert "gives the object itself" in card(torch.ones(2).as_subclass(Tracked))
    tnp.register_kind(Tracked, values=lambda t: torch.ones(2).as_subclass(Tracked))
    with pytest.raises(tnp.UnsupportedTensorError, match="gives a Tracked"):
        tnp.to_numpy(torch.ones(2).as_subclass(Tracked))


def test_a_dataclass_that_is_registered_is_one_tensor_and_no_container():
    """Until it is taken back."""
    batch = Batch(torch.ones(2), torch.zeros(3))
    assert isinstance(tnp.to_numpy(batch), Batch)
    tnp.register_kind(Batch, values=lambda b: b.values)
    assert tnp.to_numpy(batch).tolist() == [1, 1]
    assert "1 tensor " in container_document(summarize_container([batch], DisplayOptions())).text()
    tnp.register_kind(Batch)
    tnp.register_kind(Batch)
    assert isinstance(tnp.to_numpy(batch), Batch)


def test_searches_find_its_attributes():
    """A search does not ask it for its values."""
    t = torch.zeros(3)
    kept, calls = Kept(t), []
    tnp.register_kind(Scaled, values=lambda scaled: calls.append(1) or scaled.dequantize())
    scaled = Scaled(t, 2)
    card(kept), card(scaled)
    calls.clear()
    found = {(a.name, a.relation) for a in tnp.aliases(t, {"kept": kept, "scaled": scaled})}
    assert found == {("kept.values", "same object"), ("scaled.codes", "same object")}
    assert not calls
    assert [a.name for a in tnp.aliases(kept, {"w": t[1:]})] == ["w"]


def test_what_is_no_class_of_ones_own_is_refused():
    """One sentence: what, and the cure."""
    for cls in (torch.Tensor, np.ndarray, dict, object):
        with pytest.raises(tnp.BadRequestError, match="register a subclass"):
            tnp.register_kind(cls, values=lambda t: t)
    with pytest.raises(tnp.BadRequestError, match="takes a class, not an instance of int"):
        tnp.register_kind(3, values=lambda t: t)
    with pytest.raises(tnp.BadRequestError, match="values must be a function"):
        tnp.register_kind(Tracked, values="values")


def test_the_code_of_a_method_is_a_call_of_it():
    """As the README registers one; and an index of a weight is one of its values."""

    class Own:
        def dequantize(self):
            return torch.arange(6.0).view(3, 2)

    tnp.register_kind(Own, values=Own.dequantize)
    try:
        own = Own()
        code = tnp.plan(own).code
        assert eval(code, {"t": own, "torch": torch, "np": np}).tolist() == tnp.to_numpy(own).tolist()
        assert "t.dequantize()" in code
        entry = tnp.weights({"w": own})["w"]
        assert entry.to_numpy(slice(1, 3)).tolist() == [[2, 3], [4, 5]]
        assert entry.to_numpy((0, 1)) == 1
    finally:
        tnp.register_kind(Own)
