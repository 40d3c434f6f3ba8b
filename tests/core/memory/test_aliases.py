"""Who else sees the bytes of a tensor: every relation is proven by a write through one side and a look at the other."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import types
from collections import ChainMap, OrderedDict, UserDict, deque, namedtuple

import numpy as np
import pytest
import tensordict
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.masked import masked_tensor
from torch.testing._internal.two_tensor import TwoTensor
from writes import raw, sees

import tensornp as tnp


def relations(obj, **names):
    """Return the relation of each name that is reported."""
    return {alias.name: alias.relation for alias in tnp.aliases(obj, names)}


SHARING = ("same object", "same elements", "overlapping", "reinterpreted")


def shares(a, b, relation):
    """Assert that the relation of both directions is `relation`, and that writes either way say the same."""
    assert relations(a, b=b) == ({"b": relation} if relation else {})
    assert relations(b, a=a) == ({"a": relation} if relation else {})
    for writer, reader in ((a, b), (b, a)):
        # Before DLPack 1.0, an array over it is read-only.
        if isinstance(writer, torch.Tensor) or (isinstance(writer, np.ndarray) and writer.flags.writeable):
            assert sees(writer, reader) == (relation in SHARING)


def grid():
    return torch.arange(1.0, 25).reshape(4, 6)


VIEWS = {
    "the same object": (lambda t: t, "same object"),
    "detached": (lambda t: t.detach(), "same elements"),
    "an array": (lambda t: t.numpy(), "same elements"),
    "an array over DLPack": (np.from_dlpack, "same elements"),
    "an array over a memoryview": (lambda t: np.asarray(memoryview(t.numpy())), "same elements"),
    "a chain of bases": (lambda t: t.numpy()[:][::-1][::-1].view(np.matrix).T.T, "same elements"),
    "there and back": (lambda t: torch.from_numpy(t.numpy()), "same elements"),
    "transposed": (lambda t: t.t(), "reinterpreted"),
    "flat": (lambda t: t.view(-1), "reinterpreted"),
    "other bits": (lambda t: t.view(torch.int32), "reinterpreted"),
    "bytes": (lambda t: t.numpy().view(np.uint8), "reinterpreted"),
    "reversed": (lambda t: t.numpy()[::-1, ::-1], "reinterpreted"),
    "sliding": (lambda t: np.lib.stride_tricks.sliding_window_view(t.numpy(), (2, 2), writeable=True), "reinterpreted"),
    "a negative view": (torch._neg_view, "reinterpreted"),
    "rows": (lambda t: t[1:], "overlapping"),
    "every second element": (lambda t: t.numpy()[:, 1::2], "overlapping"),
    "a copy": (torch.clone, None),
    "a lazy copy": (torch._lazy_clone, None),
    "nothing": (lambda t: t[:0], None),
    "an empty array": (lambda t: t.numpy()[4:], None),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_told_by_what_writes_do(name):
    """Both ways, by torch or by NumPy."""
    make, relation = VIEWS[name]
    t = grid()
    shares(t, make(t), relation)


@pytest.mark.parametrize("first", [lambda t: t[:, ::2], lambda t: t[:, ::2].numpy(), lambda t: t.numpy()[:, ::2]])
@pytest.mark.parametrize("second", [lambda t: t[:, 1::2], lambda t: t[:, 1::2].numpy(), lambda t: t.numpy()[:, 1::2]])
def test_interleaved_views_do_not_overlap(first, second):
    """Their spans do, and their storage is one."""
    t = grid()
    shares(first(t), second(t), "same storage")


def test_complex_numbers_their_parts_and_conjugates():
    """The parts interleave; a lazy conjugate has the same bytes and another meaning."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    shares(z, z.conj(), "reinterpreted")
    shares(z, torch.view_as_real(z), "reinterpreted")
    shares(z, z.imag, "overlapping")
    shares(z.imag, z.conj().imag, "reinterpreted")
    shares(z.real, z.imag, "same storage")
    shares(z, np.asarray(memoryview(z.numpy())), "same elements")


@pytest.mark.parametrize("view", [torch.detach, lambda t: t[1:], torch.t])
def test_the_views_of_a_lazy_copy_are_its_aliases(view):
    """A write makes it real for all of them, and the original keeps its values."""
    t = grid()
    lazy = torch._lazy_clone(t)
    assert (relations(view(lazy), t=t), relations(t, view=view(lazy))) == ({}, {})
    shares(lazy, view(lazy), {torch.detach: "same elements", torch.t: "reinterpreted"}.get(view, "overlapping"))
    assert not sees(lazy, t)


@st.composite
def views(draw, base):
    """Draw a view of a one-dimensional buffer of bytes: slices, transposes, other dtypes, any strides."""
    t = base.view(draw(st.sampled_from([torch.uint8, torch.int16, torch.float32, torch.int64])))
    dims = draw(st.integers(0, 3))
    shape = [draw(st.integers(0 if draw(st.booleans()) else 1, 4)) for _ in range(dims)]
    strides = [draw(st.integers(0, 5)) for _ in range(dims)]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
    if reach >= t.numel():
        shape, strides, reach = [2], [1], 1
    view = t.as_strided(shape, strides, draw(st.integers(0, t.numel() - 1 - reach)))
    if draw(st.booleans()) and view.dim() > 1:
        view = view.transpose(0, 1)
    return view[..., 1::2] if draw(st.booleans()) and view.dim() else view


def addresses(t):
    """Return the address of each byte of each element, in the order of indices."""
    offsets = np.zeros((), np.int64)
    for n, step in zip(t.shape, t.stride(), strict=True):
        offsets = offsets[..., None] + step * np.arange(n)
    start = t.untyped_storage().data_ptr() + t.storage_offset() * t.itemsize
    return [start + int(i) * t.itemsize + k for i in offsets.ravel() for k in range(t.itemsize)]


def expected(a, b):
    """Return the relation by every byte, and by where the storages begin and end."""
    left, right = addresses(a), addresses(b)
    if not left or not right:
        return {}
    if left == right and a.shape == b.shape and a.itemsize == b.itemsize:
        return {"b": "same elements" if a.dtype == b.dtype else "reinterpreted"}
    if set(left) & set(right):
        # Equal sets with gaps and other steps are not known to be equal.
        is_same = set(left) == set(right) and relations(a, b=b)["b"] != "overlapping"
        return {"b": "reinterpreted" if is_same else "overlapping"}
    (low, high), (bottom, top) = (
        (s.data_ptr(), s.data_ptr() + s.nbytes()) for s in (a.untyped_storage(), b.untyped_storage())
    )
    return {"b": "same storage"} if low < top and bottom < high else {}


TORCH = torch.arange(64, dtype=torch.uint8)
NUMPY = torch.from_numpy(np.arange(64, dtype=np.uint8))
OTHERS = [views(TORCH), views(NUMPY), views(torch.from_numpy(NUMPY.numpy()[16:]))]


@pytest.mark.slow
@given(st.sampled_from(OTHERS).flatmap(lambda v: v), st.sampled_from(OTHERS).flatmap(lambda v: v))
@settings(max_examples=300, deadline=None)
def test_random_views_relate_as_their_bytes_do(a, b):
    """Of one storage of torch, and of several over one buffer of NumPy."""
    assert relations(a, b=b) == expected(a, b)
    if a.numel() and b.numel() and a.data_ptr() != b.data_ptr():
        byte = ctypes.c_uint8.from_address(addresses(a)[0])
        before = raw(b)
        byte.value ^= 255
        seen = raw(b) != before
        byte.value ^= 255
        assert not seen or relations(a, b=b)["b"] in SHARING


class Slots:
    __slots__ = ("inside", "unset")


@dataclasses.dataclass(slots=True)
class Record:
    inside: object


Pair = namedtuple("Pair", "first second")


def holders(v):
    """Return everything that can hold `v`, and the expressions by which it is reached there."""
    slotted = Slots()
    slotted.inside = v
    own = [v]
    own.append(own)
    plain = types.SimpleNamespace(inside={"deep": [(v,)]})
    plain.inside["itself"] = plain
    sequential = torch.nn.Sequential(OrderedDict([("1", torch.nn.Linear(2, 2)), ("0", torch.nn.ReLU())]))
    sequential[0].register_buffer("held", v)
    sequential.extra = v
    by_key = torch.nn.ModuleDict({"0": torch.nn.ModuleList([torch.nn.Module()])})
    by_key["0"][0].register_buffer("odd name", v)
    parameters = torch.nn.ParameterDict({"a b": torch.nn.Parameter(v)})
    return {
        "itself": (v, "itself"),
        "own": (own, "own[0]"),
        "pair": (Pair(0, v), "pair.second"),
        "record": (Record(v), "record.inside"),
        "slotted": (slotted, "slotted.inside"),
        "plain": (plain, "plain.inside['deep'][0][0]"),
        "queue": (deque([0, v]), "queue[1]"),
        "ordered": (OrderedDict(a=v), "ordered['a']"),
        "user": (UserDict(a=v), "user['a']"),
        "tensors": (tensordict.TensorDict({"n": {"b": v}}, []), "tensors['n']['b']"),
        "chained": (ChainMap({1: v}), "chained.maps[0][1]"),
        "bound": (functools.partial(max, v), "bound.args[0]"),
        "maximum": (torch.return_types.max((v, v)), "maximum.values"),
        "sequential": (sequential, "sequential[0].held"),
        "by_key": (by_key, "by_key['0'][0]._buffers['odd name']"),
        "parameters": (parameters, "parameters['a b']"),
    }


@pytest.mark.parametrize("name", holders(torch.zeros(2, 2)))
def test_a_name_is_the_expression_that_reaches_it(name):
    """Evaluated, it gives what a write to the tensor changes."""
    t = torch.ones(2, 2)
    holder, expression = holders(t.view(2, 2))[name]
    found = tnp.aliases(t, {name: holder})
    assert expression in [alias.name for alias in found]
    assert {alias.relation for alias in found} == {"same elements"}
    assert all(sees(t, eval(alias.name, {name: holder})) for alias in found)
    assert found.is_complete


def test_a_model_and_its_optimizer():
    """Parameters, buffers, gradients and states, by the names that users type; tied weights are one object."""
    model = torch.nn.Module()
    model.fc, model.norm = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)
    model.tied = model.fc.weight
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    names = {"model": model, "optimizer": optimizer}
    found = tnp.aliases(model.fc.weight, names)
    assert {(a.name, a.kind) for a in found[:2]} == {("model.tied", "parameter"), ("model.fc.weight", "parameter")}
    for target, name, kind in (
        (model.norm.running_mean, "model.norm.running_mean", "buffer"),
        (model.fc.bias.grad, "model.fc.bias.grad", "grad"),
        (optimizer.state[model.fc.bias]["exp_avg"], "optimizer.state[model.fc.bias]['exp_avg']", "tensor"),
    ):
        (alias,) = tnp.aliases(target.numpy(), names)
        assert (alias.name, alias.kind, alias.relation) == (name, kind, "same elements")
        assert sees(target.numpy(), eval(name, names))


def test_what_has_no_address_is_no_alias():
    """Meta and fake tensors, and wrappers, all lie at 0."""
    meta = torch.ones(2, device="meta")
    assert relations(meta, b=torch.ones(2, device="meta"), c=meta.view(2)) == {}
    with FakeTensorMode():
        fake = torch.ones(2)
        assert relations(fake, b=torch.ones(2), c=fake.view(2)) == {}
    a, b = (TwoTensor(torch.ones(2), torch.ones(2)) for _ in range(2))
    assert relations(a, b=b, c=torch.ones(2)) == {}
    assert set(relations(a.a, two=a)) == {"two.a", "two"}
    a.a[0] = 5
    assert (a + 0).a[0] == 5
    assert (b + 0).a[0] == 1


def parts():
    """Return a tensor of each kind that consists of others, and a plain tensor that holds some of its values."""
    coo, csr = torch.eye(3).to_sparse().coalesce(), torch.eye(3).to_sparse_csr()
    nested, jagged = (
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
        for layout in (torch.strided, torch.jagged)
    )
    masked = masked_tensor(torch.ones(3), torch.tensor([True, False, True]))
    scaled = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.quint8)
    return {
        "coo": (coo, coo.values(), coo.to_dense),
        "csr": (csr, csr.values(), csr.to_dense),
        "nested": (nested, nested.unbind()[1], lambda: nested.unbind()[1]),
        "jagged": (jagged, jagged.values(), lambda: jagged.unbind()[0]),
        "masked": (masked, masked.get_data(), masked.get_data),
        "quantized": (scaled, scaled[1:], scaled.dequantize),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", parts())
def test_a_tensor_that_consists_of_others_overlaps_each(name):
    """Neither its indices nor its values are said to be stale, although they share a version counter."""
    whole, part, read = parts()[name]
    both = relations(whole, part=part)["part"], relations(part, whole=whole)["whole"]
    assert set(both) <= {"overlapping", "same elements"}
    before = read().tolist()
    ctypes.memset(part.data_ptr(), 0, part.numel() * part.itemsize)
    assert read().tolist() != before
    if name in ("coo", "csr"):
        indices = whole.indices() if name == "coo" else whole.crow_indices()
        assert relations(part, i=indices, j=indices.numpy()) == {}


def test_nothing_is_stale_that_nobody_has_seen_before():
    """An array keeps the memory that `.data =` has left, and is no alias."""
    t = grid()
    old = t.numpy()
    t.data = torch.zeros(4, 6)
    shares(t, old, None)


@pytest.mark.parametrize("namespace", [3, [1], "x"])
def test_what_is_no_namespace_is_refused(namespace):
    """In one sentence."""
    with pytest.raises(tnp.BadRequestError, match="namespace"):
        tnp.aliases(torch.ones(2), namespace)
