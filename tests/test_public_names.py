"""The public names: functions, and what TAB offers on each record."""

from __future__ import annotations

import inspect

import pytest
import torch

import tensornp as tnp

FUNCTIONS = (
    "to_numpy to_tensor to_jax to_cupy plan inspect aliases stats locate compare plot image card weights follow ranks "
    "register_kind install uninstall"
)
INFO = (
    "type_name shape dtype itemsize nbytes numel device layout stride storage_offset requires_grad is_leaf grad_fn "
    "has_grad is_parameter is_buffer is_conj is_neg is_shared is_pinned is_inference is_contiguous version storage "
    "data_state kind shard"
)
COMPARED = (
    "equal missing unexpected reshaped retyped max_abs relative cosine_distance changed_fraction same_bits verdict"
)


def model():
    return torch.nn.Sequential(torch.nn.Linear(2, 2))


def followed():
    net = model()
    with tnp.follow(net) as run:
        net(torch.ones(1, 2))
    return run


def vector():
    return torch.arange(3.0)


RECORDS = [
    (lambda: tnp.inspect(vector()), 30, INFO),
    (lambda: tnp.plan(vector()), 12, "steps dtype shares_memory writeable exact nbytes_copied reason code"),
    (lambda: tnp.aliases(t := vector(), {"t": t})[0], 12, "name kind relation"),
    (
        lambda: tnp.stats(vector()), 25,
        "count nan posinf neginf zeros min max mean std norm histogram quantile scope accuracy",
    ),
    (lambda: tnp.weights(model()), 21, "find problems totals scan to_frame metadata close"),
    (
        lambda: tnp.weights(model())["0.weight"], 20,
        "name kind shape dtype nbytes tied_to location code to_numpy plan stats extents wanted_imports",
    ),
    (lambda: tnp.compare(vector(), vector()), 15, f"{COMPARED} first_difference"),
    (lambda: tnp.compare(model(), model()), 15, f"{COMPARED} first_difference"),
    (lambda: tnp.compare(followed(), followed()), 15, "equal missing unexpected verdict"),
    (followed, 12, "calls operators grads steps problems origin find to_frame"),
]  # fmt: skip
"""Makers of records, the largest number of their public names, and the names that they have."""


@pytest.mark.parametrize(("make", "most", "names"), RECORDS, ids=lambda one: "")
def test_tab_offers_what_is_documented(make, most, names):
    """The contract's names are there, and helpers of ours are not."""
    record = make()
    public = [name for name in dir(record) if not name.startswith("_")]
    assert len(public) <= most, public
    for name in names.split():
        assert hasattr(record, name), name


def test_the_functions_are_these():
    """No more and no fewer."""
    public = {name for name in tnp.__all__ if inspect.isfunction(getattr(tnp, name))}
    assert public == set(FUNCTIONS.split())


@pytest.mark.parametrize("name", ["view", "register", "from_jax", "plan_cupy", "unregister_kind"])
def test_a_removed_name_raises_what_python_raises(name):
    """With the arguments by which Python suggests the closest name."""
    with pytest.raises(AttributeError) as caught:
        getattr(tnp, name)
    assert (caught.value.name, caught.value.obj) == (name, tnp)
