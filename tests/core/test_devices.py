"""Tensors on other devices: copied with the device as the reason, and looked at for the price of what is printed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from accelerator import Ledger, memory_of, needs_card, register
from child import in_fork
from display import display
from unchanged import unchanged

import tensornp as tnp


def copies_are_explained(t: torch.Tensor, expected: np.ndarray, device: str) -> None:
    """Check that `t` can only be copied, that the plan and the error say why, and that the copy is right."""
    plan = tnp.plan(t)
    assert (plan.shares_memory, plan.writeable, plan.nbytes_copied) == (False, True, expected.nbytes)
    assert plan.reason == f"copy: on {device}"
    array = tnp.to_numpy(t)
    assert array.dtype == expected.dtype
    assert array.tobytes() == expected.tobytes()
    assert eval(plan.code, {"t": t, "np": np, "torch": torch}).tobytes() == expected.tobytes()
    with pytest.raises(tnp.CopyRequiredError, match=device):
        tnp.to_numpy(t, copy=False)


DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int64, torch.bool]


@needs_card
@in_fork
def test_what_the_device_holds_is_copied_bit_for_bit():
    """Every dtype, strided or not, with autograd or lazy bits or without."""
    register()
    for dtype in DTYPES:
        host = torch.randn(50, 7).mul(3).to(dtype)
        views = [lambda t: t, lambda t: t[::3, 1:5].T]
        if dtype.is_floating_point:
            views.append(torch.nn.Parameter)
        if dtype.is_complex:
            views += [torch.conj, lambda t: t.conj().imag]
        for view in views:
            copies_are_explained(view(host.to("card")), tnp.to_numpy(view(host)), "card:0")


def ledger_of_a_display(ledger: Ledger, on_card: torch.Tensor, array: np.ndarray) -> Ledger:
    """Check that a card shows what NumPy prints of `array` and changes nothing, and return what the device did."""
    with unchanged(on_card):
        ledger.clear()
        text = display(on_card)
        done = Ledger(list(ledger.ops), ledger.allocated, ledger.to_card, ledger.to_host)
    assert repr(array) in text
    assert "card:0" in text
    return done


@needs_card
@in_fork
def test_a_card_transfers_the_printed_elements_and_no_others():
    """Of a million elements 49 are printed: these come to the host, and the device holds them and their indices."""
    ledger = register()
    host = torch.arange(1_000_000, dtype=torch.float32).view(1000, 1000)
    pair = torch.complex(host, host)
    cases = [
        (host, lambda t: t, 4),
        (host, lambda t: t[::2, ::2].T, 4),
        (host.bfloat16(), lambda t: t, 2),
        (pair, torch.conj, 8),
        (pair, lambda t: t.conj().imag, 4),
    ]
    for base, view, itemsize in cases:
        on_card = view(base.to("card"))
        before = memory_of(on_card).clone()
        done = ledger_of_a_display(ledger, on_card, tnp.to_numpy(view(base)))
        widened = 49 * max(itemsize, 4)
        assert done.to_host <= widened
        assert done.to_card <= 2 * 7 * 8
        assert done.allocated <= 2 * widened + 2 * 7 * 8
        assert torch.equal(memory_of(on_card), before)


@needs_card
@in_fork
def test_the_card_that_users_get_leaves_the_device_alone_beyond_what_it_prints():
    """With all that a shell adds: of 4 MiB, seven elements and their places; a fingerprint where it is asked for."""
    from gallery_child import shell

    ledger, ip = register(), shell()
    t = torch.arange(2**20, dtype=torch.float32).to("card")
    ip.user_ns.update(t=t, other=t[::2], model=torch.nn.Linear(2, 2))

    def done_by_a_card() -> Ledger:
        ledger.clear()
        data, _ = ip.display_formatter.format(t)
        assert "overlaps other" in data["text/plain"]
        return Ledger(list(ledger.ops), ledger.allocated, ledger.to_card, ledger.to_host)

    for _ in range(2):
        done = done_by_a_card()
        assert done.to_host == 7 * 4
        assert done.allocated <= 7 * 4 + 7 * 8
        assert len(done.ops) <= 10, done.ops


@needs_card
@in_fork
def test_metadata_never_touches_the_device():
    """inspect and plan run no operator there."""
    ledger = register()
    t = torch.nn.Parameter(torch.ones(100, 100).to("card"))
    with unchanged(t):
        ledger.clear()
        info = tnp.inspect(t)
        tnp.plan(t)
        assert ledger == Ledger()
    assert (str(info.device), info.storage.nbytes, info.data_state) == ("card:0", 40_000, "available")


@needs_card
@in_fork
def test_arrays_go_to_the_device():
    """`to_tensor(device=...)` copies there, and never pretends to share."""
    register()
    array = np.arange(6.0).reshape(2, 3)
    t = tnp.to_tensor(array, device="card")
    assert str(t.device) == "card:0"
    assert memory_of(t).tolist() == array.tolist()
    with pytest.raises(tnp.CopyRequiredError, match="card"):
        tnp.to_tensor(array, copy=False, device="card")


@in_fork
def test_a_lazy_tensor_is_not_computed_by_a_look():
    """By torch's own counters a display has run nothing; the cure is the call that computes it."""
    import torch._lazy
    import torch._lazy.metrics
    import torch._lazy.ts_backend

    def counters() -> dict[str, int]:
        return {name: torch._lazy.metrics.counter_value(name) for name in torch._lazy.metrics.counter_names()}

    torch._lazy.ts_backend.init()
    t = torch.arange(6.0).view(2, 3).to("lazy") + 1
    before = counters()
    text = display(t)
    assert counters() == before
    assert "lazy:0" in text
    with pytest.raises(tnp.NoDataError, match=r"convert t\.cpu\(\)"):
        tnp.to_numpy(t)
    assert tnp.to_numpy(t.cpu()).tolist() == (np.arange(6).reshape(2, 3) + 1).tolist()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_memory_on_a_gpu_is_compared_fingerprinted_and_counted_there():
    """Aliases by address and device, changes without a copy to the host, and totals for each device."""
    from tensornp.core.memory.changes import fingerprint
    from tensornp.core.memory.storages import Survey
    from tensornp.core.summary.census import census_of

    t = torch.arange(1_000_000, device="cuda", dtype=torch.float32)
    names = {"t": t, "even": t[::2], "odd": t[1::2], "host": t.cpu()}
    relations = {alias.name: alias.relation for alias in tnp.aliases(names["even"], names)}
    assert relations == {"even": "same object", "t": "overlapping", "odd": "same storage"}
    before = fingerprint(t, 2**30)
    with unchanged(t):
        assert fingerprint(t, 2**30) == before
    t[123_456] += 1
    assert fingerprint(t, 2**30) != before
    totals = census_of(Survey(names, 1.0), max_rows=10).totals
    assert totals == {"cpu": 4_000_000, "cuda:0": 4_000_000}
