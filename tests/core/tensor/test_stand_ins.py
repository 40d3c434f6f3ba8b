"""Classes of the user's own stand for a tensor: shown, converted and found as that tensor is."""

from __future__ import annotations

import contextlib
import gc
import time
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.masked import masked_tensor
from torch.overrides import TorchFunctionMode

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
    """Also a container."""

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
    assert "array: shared, read-only" in card(obj)
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
        (np.array(["a"]), "__tensornp__() of Says gives an array that torch does not take"),
        (np.broadcast_to(np.zeros(1), 3), "__tensornp__() of Says gives a read-only array"),
        (np.ma.array([1.0], mask=[True]), "__tensornp__() of Says gives a masked array"),
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


def test_a_tensor_of_ones_own_may_stand_for_another():
    """What is registered goes before what torch would say."""
    other = torch.arange(4.0)
    tnp.register_kind(Tracked, values=lambda t: other, label="tracked")
    tracked = torch.zeros(2).as_subclass(Tracked)
    assert "tracked" in card(tracked)
    assert tnp.to_numpy(tracked).tolist() == [0, 1, 2, 3]
    tnp.register_kind(Tracked)
    assert tnp.to_numpy(torch.zeros(2).as_subclass(Tracked)).tolist() == [0, 0]


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


def test_searches_find_it_by_its_name():
    """As the memory that it holds, beside the attribute; what computes its values is not called by a search."""
    t = torch.zeros(3)
    kept, calls = Kept(t), []
    tnp.register_kind(Scaled, values=lambda scaled: calls.append(1) or scaled.dequantize())
    scaled = Scaled(t, 2)
    card(kept), card(scaled)
    calls.clear()
    found = {(a.name, a.relation) for a in tnp.aliases(t, {"kept": kept, "scaled": scaled})}
    assert found == {("kept", "same object"), ("kept.values", "same object"), ("scaled.codes", "same object")}
    assert not calls
    assert [a.name for a in tnp.aliases(kept, {"w": t[1:]})] == ["w"]


def test_a_search_calls_no_class_of_which_nothing_is_known():
    """What one class has shown says nothing of another one: its values may cost much."""

    class Heavy(Says):
        def __tensornp__(self):
            raise AssertionError

    t = torch.zeros(3)
    card(Says(t))
    assert [a.name for a in tnp.aliases(t, {"heavy": Heavy(None), "says": Says(t)})] == ["says", "says.values"]


def test_other_frameworks_take_it():
    """Alone and in a container."""
    pytest.importorskip("jax")
    assert tnp.to_jax(Says(torch.arange(3.0))).tolist() == [0, 1, 2]
    assert tnp.to_jax([Scaled(torch.arange(3), 0.5)])[0].tolist() == [0, 0.5, 1]


def test_what_is_no_class_of_ones_own_is_refused():
    """One sentence: what, and the cure."""
    for cls in (torch.Tensor, np.ndarray, dict, object):
        with pytest.raises(tnp.BadRequestError, match="register a subclass"):
            tnp.register_kind(cls, values=lambda t: t)
    with pytest.raises(tnp.BadRequestError, match="takes a class, not an instance of int"):
        tnp.register_kind(3, values=lambda t: t)
    with pytest.raises(tnp.BadRequestError, match="values must be a function"):
        tnp.register_kind(Tracked, values="values")


def test_a_class_that_is_defined_again_and_again_is_not_kept():
    """The registration goes with it."""

    def register():
        class Cell:
            pass

        tnp.register_kind(Cell, values=lambda cell: torch.ones(1))
        assert tnp.to_numpy(Cell()).tolist() == [1]
        return weakref.ref(Cell)

    reference = register()
    gc.collect()
    assert reference() is None


def test_classes_with_a_hostile_metaclass_are_asked_nothing():
    """No hash, no comparison, no attribute."""

    class Meta(type):
        def __hash__(cls):
            raise RuntimeError

        def __eq__(cls, other):
            raise RuntimeError

        def __getattribute__(cls, name):
            raise RuntimeError

    class Odd(metaclass=Meta):
        pass

    tnp.register_kind(Odd, values=lambda odd: torch.ones(2))
    assert tnp.to_numpy(object.__new__(Odd)).tolist() == [1, 1]
    tnp.register_kind(Odd)


class Half(torch.Tensor):
    """A tensor that means half of its codes."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out.as_subclass(torch.Tensor) * 0.5 if func is torch.Tensor.float else out


class Mode(TorchFunctionMode):
    """Counts what it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_the_users_own_code_finds_its_tensor_classes_as_they_are():
    """What a class makes of an operation holds in `values` too; no mode of the user's sees it."""
    halves = torch.tensor([1, 2], dtype=torch.int8).as_subclass(Half)
    tnp.register_kind(Kept, values=lambda kept: kept.values.float())
    for around in (contextlib.nullcontext(), Mode(), torch.device("meta")):
        with around:
            array, shown = tnp.to_numpy(Kept(halves)), card(Kept(halves))
        assert array.tolist() == [0.5, 1.0]
        assert "array([0.5, 1. ]" in shown
        assert not getattr(around, "seen", [])


class Restless:
    """Stands for another tensor each time."""

    kinds = (torch.ones(2), torch.ones(2).bfloat16(), torch.eye(2).to_sparse(), torch.ones(2, device="meta"))

    def __init__(self):
        self.count = -1

    def __tensornp__(self):
        self.count += 1
        return self.kinds[self.count % 4]


def test_what_changes_between_two_asks_is_converted_as_it_was_planned_or_refused():
    """No error of torch's comes through."""
    restless = Restless()
    for _ in range(12):
        try:
            assert isinstance(tnp.to_numpy(restless), np.ndarray)
        except tnp.TensornpError as error:
            assert "\n" not in str(error)


def test_one_that_is_unregistered_meanwhile_is_refused_in_a_sentence():
    """By another thread, or by its own function."""
    tnp.register_kind(Kept, values=lambda kept: kept.values, detail=lambda kept: tnp.register_kind(Kept))
    assert tnp.to_numpy(Kept(torch.ones(2))).tolist() == [1, 1]
    with pytest.raises(tnp.NotATensorError):
        tnp.to_numpy(Kept(torch.ones(2)))


class SlowOne(Says):
    """Takes its time."""

    calls = 0

    def __tensornp__(self):
        type(self).calls += 1
        time.sleep(0.01)
        return self.values


def test_a_search_asks_none_that_is_slow_or_makes_its_values_anew():
    """A look at another tensor waits for nobody, and names no memory that is not there."""
    t = torch.ones(2)
    slow, names = SlowOne(t), {"t": t}
    card(slow)
    before = SlowOne.calls
    assert [alias.name for alias in tnp.aliases(t, {**names, "slow": slow})] == ["t", "slow.values"]
    assert SlowOne.calls == before
    scaled, kept = Scaled(t, 2.0), Kept(t)
    tnp.register_kind(Kept, values=lambda kept: kept.values if kept.values is t else kept.values * 2)
    other = Kept(torch.ones(2))
    card(kept), card(scaled), card(other)
    found = {alias.name for alias in tnp.aliases(t, {**names, "kept": kept, "scaled": scaled, "other": other})}
    assert found == {"t", "kept", "kept.values", "scaled.codes"}


class ListOf(list):
    """A list that stands for its first item."""

    def __tensornp__(self):
        return self[0]


class NetOf(torch.nn.Linear):
    """A module that stands for its weight."""

    def __tensornp__(self):
        return self.weight.detach()


def test_what_stands_for_a_tensor_hides_nothing_of_what_it_holds():
    """A look changes no answer of a search, and names stay those that a user types."""
    t = torch.ones(2)
    held, net = ListOf([torch.zeros(2), t]), NetOf(2, 2)
    for _ in range(2):
        assert [alias.name for alias in tnp.aliases(t, {"t": t, "held": held})] == ["t", "held[1]"]
        assert "net.bias" in [alias.name for alias in tnp.aliases(net.bias, {"net": net})]
        card(held), card(net)


def test_a_container_asks_no_more_of_them_than_it_has_rows_for():
    """The others are counted, and their bytes are not."""
    calls = []
    tnp.register_kind(Kept, values=lambda kept: calls.append(1) or kept.values * 2)
    text = container_document(
        summarize_container([Kept(torch.ones(4)) for _ in range(1000)], DisplayOptions(max_rows=20))
    ).text()
    assert text.startswith("list of 1,000 tensors · at least 320 bytes · ")
    assert len(calls) < 200


def test_nor_does_it_of_tensors_of_a_registered_class():
    """They are tensors, but their values are computed all the same."""
    calls = []
    tnp.register_kind(Tracked, values=lambda tracked: calls.append(1) or tracked.as_subclass(torch.Tensor) * 2)
    tensors = [torch.ones(4).as_subclass(Tracked) for _ in range(1000)]
    text = container_document(summarize_container(tensors, DisplayOptions(max_rows=20))).text()
    assert text.startswith("list of 1,000 tensors · at least 320 bytes · ")
    assert len(calls) < 200


def test_the_code_for_an_array_is_code():
    """It is of NumPy, until torch has taken it."""
    obj = Kept(np.arange(3.0))
    for copy in (None, True):
        plan = tnp.plan(obj, copy=copy)
        assert eval(plan.code, {"np": np, "torch": torch, "t": obj, "values": lambda kept: kept.values}) is not None
    plan = tnp.plan(Says(np.arange(3.0)), copy=True)
    assert eval(plan.code, {"np": np, "torch": torch, "t": Says(np.arange(3.0))}).tolist() == [0, 1, 2]


@pytest.mark.parametrize("cls", [torch.nn.Linear, range, Exception, types.FunctionType, np.memmap])
def test_what_belongs_to_a_library_of_everybodys_is_not_registered(cls):
    """Every function would be shown as a tensor."""
    with pytest.raises(tnp.BadRequestError, match="cannot be registered"):
        tnp.register_kind(cls, values=lambda obj: torch.ones(1))


@pytest.mark.parametrize("name", ["t", "in", "a b", None, 3])
def test_a_function_whose_name_is_no_name_in_the_code_is_called_values(name):
    """A keyword, or the object's own."""

    def values(kept):
        return kept.values

    values.__name__ = name if isinstance(name, str) else "values"
    tnp.register_kind(Kept, values=values)
    assert tnp.plan(Kept(torch.zeros(2)), copy=True).code == "values(t).clone().numpy()"


@pytest.mark.parametrize("said", [{"label": None}, {"label": 3}, {"detail": None}])
def test_label_and_detail_are_texts(said):
    """Said at once, not on the first card."""
    with pytest.raises(tnp.BadRequestError, match="label must be"):
        tnp.register_kind(Kept, values=lambda kept: kept.values, **said)


def test_aliases_of_one_are_looked_for_outside_the_users_modes():
    """As cards are."""
    scaled, names = Scaled(torch.ones(2), 2.0), {"x": torch.ones(2)}
    with Mode() as mode:
        assert tnp.aliases(scaled, names) == []
    assert mode.seen == []


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
