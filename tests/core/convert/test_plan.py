"""Plans: pure decisions for devices that are not here, and the truth about those that are."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from strategies import tensors

import tensornp as tnp
from tensornp.core.convert.plan import MODES, decide
from tensornp.core.memory.aliases import Target
from tensornp.core.tensor.form import Step

PLAIN = tnp.inspect(torch.zeros(2, 3))


def elsewhere(device: str, dtype: torch.dtype = torch.float32) -> tnp.TensorInfo:
    """Return the facts of a tensor on a device that this machine need not have."""
    return dataclasses.replace(PLAIN, device=torch.device(device), dtype=dtype, itemsize=dtype.itemsize)


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1", "mps:0", "xpu:0"])
def test_an_accelerator_is_copied_to_the_host(device):
    """A tensor on an accelerator shares nothing with NumPy, and the receipt names the device and the bytes."""
    plan = decide(elsewhere(device))
    assert plan.steps == (Step.TO_HOST,)
    assert (plan.shares_memory, plan.writeable, plan.exact, plan.nbytes_copied) == (False, True, True, 24)
    assert plan.reason == f"copy: on {device}"
    assert plan.code == "t.cpu().numpy()"


def test_copy_false_on_an_accelerator_says_what_where_and_the_cure():
    """The error is the design's own example, word for word."""
    message = "a bfloat16 tensor on cuda:0 cannot share memory with NumPy; pass copy=None to allow a copy"
    with pytest.raises(tnp.CopyRequiredError, match=f"^{message}$"):
        decide(elsewhere("cuda:0", torch.bfloat16), copy=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", ["meta", "fake", "uninitialized", "freed", "wrapped", "remote"])
def test_no_data_is_refused_in_every_mode(mode, state):
    """What has no values gives a sentence, in each mode."""
    with pytest.raises(tnp.NoDataError):
        decide(dataclasses.replace(PLAIN, data_state=state), **MODES[mode])


def test_a_read_only_page_is_never_handed_out_writeable():
    """A write to a page that is mapped read-only would end the process."""
    mapped = dataclasses.replace(PLAIN, _is_readonly_map=True)
    with pytest.raises(tnp.CopyRequiredError, match="mapped read-only"):
        decide(mapped, copy=False, writeable=True)
    assert not decide(mapped, writeable=True).shares_memory
    assert decide(mapped).shares_memory


@pytest.mark.parametrize(
    ("arguments", "shares", "writeable"),
    [
        ({}, True, False),
        ({"writeable": True}, True, True),
        ({"writeable": False}, True, False),
        ({"copy": False}, True, False),
        ({"copy": False, "writeable": True}, True, True),
        ({"copy": True}, False, True),
        ({"copy": True, "writeable": False}, False, False),
    ],
)
def test_the_table_of_copy_and_writeable(arguments, shares, writeable):
    """View is read-only, share is writeable, a copy is writeable unless that is declined."""
    plan = decide(PLAIN, **arguments)
    assert (plan.shares_memory, plan.writeable) == (shares, writeable)


def test_hazards_of_a_writeable_share_are_named():
    """Autograd, expanded cells and inference tensors each warn, and only where NumPy may write."""
    grad = tnp.inspect(torch.zeros(2, requires_grad=True))
    assert "autograd" in decide(grad, writeable=True).warnings[0]
    assert decide(grad).warnings == ()
    assert "more than one" in decide(tnp.inspect(torch.zeros(1).expand(3)), writeable=True).warnings[0]
    with torch.inference_mode():
        inference = torch.zeros(2)
    assert "inference" in decide(tnp.inspect(inference), writeable=True).warnings[0]


def test_zero_copy_bfloat16_warns_that_numpy_sums_in_it():
    """The mean of 1,000 bfloat16 ones is 0.256 in NumPy."""
    plan = tnp.plan(torch.ones(1000, dtype=torch.bfloat16), copy=False)
    assert plan.dtype == ml_dtypes.bfloat16
    assert plan.shares_memory
    assert "bfloat16 itself" in plan.warnings[0]


@pytest.mark.parametrize(
    ("source", "target", "exact"),
    [
        (torch.int64, "float64", False), (torch.int32, "float64", True), (torch.uint8, "int8", False),
        (torch.bool, "float16", True), (torch.bfloat16, "float16", False), (torch.bfloat16, "float64", True),
        (torch.float16, "bfloat16", False), (torch.float8_e5m2, "float16", True), (torch.float32, "complex64", True),
        (torch.complex64, "float32", False), (torch.float64, "float32", False), (torch.float32, "int64", False),
    ],
)  # fmt: skip
def test_exact_means_that_every_value_survives(source, target, exact):
    """A lossy request is allowed, and the plan says so."""
    assert tnp.plan(torch.zeros(2).to(source), dtype=target).exact is exact


@pytest.mark.parametrize("dtype", [torch.float16, np.float16, "float16", np.dtype("float16")])
def test_a_dtype_may_be_named_in_any_way(dtype):
    """torch, NumPy and strings name the same dtype."""
    assert tnp.plan(torch.zeros(2), dtype=dtype).dtype == np.float16


@pytest.mark.parametrize("dtype", ["nonsense", "object", "datetime64[s]", 5, "S3"])
def test_a_dtype_that_means_nothing_is_refused_in_a_sentence(dtype):
    """Bad input gets one clear sentence."""
    with pytest.raises(tnp.BadRequestError, match="float32"):
        tnp.plan(torch.zeros(2), dtype=dtype)


@pytest.mark.parametrize("arguments", [{"copy": "yes"}, {"writeable": 2}])
def test_an_argument_that_means_nothing_is_refused(arguments):
    """A truthy word is not taken for True."""
    with pytest.raises(tnp.BadRequestError):
        tnp.to_numpy(torch.zeros(2), **arguments)


@settings(max_examples=37, deadline=None)
@given(tensors())
def test_every_plan_tells_the_truth(t):
    """In each mode: dtype, writeable, bytes, sharing by address, and the line of code gives an equal array."""
    info = tnp.inspect(t)
    for mode, arguments in MODES.items():
        try:
            plan = decide(info, **arguments)
        except tnp.CopyRequiredError:
            assert mode == "share"
            continue
        array = tnp.to_numpy(t, **arguments)
        assert array.shape == tuple(t.shape)
        assert array.dtype == plan.dtype
        assert array.flags.writeable == plan.writeable
        assert (Target(t).compare(array) == "same elements") == plan.shares_memory
        assert plan.nbytes_copied == (0 if plan.shares_memory else array.size * array.itemsize)
        same = eval(plan.code, {"t": t, "np": np, "torch": torch, "ml_dtypes": ml_dtypes})
        assert (same.dtype, same.shape, same.flags.writeable) == (array.dtype, array.shape, array.flags.writeable)
        assert same.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64", ">f4", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16, torch.bool, torch.int64])
def test_the_line_of_code_converts_to_any_dtype(source, dtype):
    """The receipt of a cast holds, for dtypes of ml_dtypes and of foreign byte order too."""
    t = torch.tensor([0, 1, 2]).to(source)
    plan = tnp.plan(t, dtype=dtype)
    array = tnp.to_numpy(t, dtype=dtype)
    same = eval(plan.code, {"t": t, "np": np, "torch": torch, "ml_dtypes": ml_dtypes})
    assert array.dtype == same.dtype == plan.dtype
    assert array.tolist() == same.tolist()
