"""Looking beside threads that train, write, resize and rename: nobody dies, and the training is what it would be."""

from __future__ import annotations

import ctypes
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork

import tensornp as tnp
from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.session import ledger

NUM_LOOKS = 25


def shell_with(**names: object):
    """Return a shell with these names and the extension loaded; what is displayed goes nowhere."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    shell.run_line_magic("load_ext", "tensornp")
    # No test depends on how far a search comes on a busy machine.
    ledger.MAX_SEARCH_SECONDS = 60
    sys.stdout = io.StringIO()
    return shell


def looks_of(shell: Any) -> list[Callable[[], object]]:
    """Return every way to look at a model, its loss and a batch, by the names in the shell."""
    names = shell.user_ns

    def card(name: str) -> None:
        shell.display_formatter.format(names[name])

    return [
        *(lambda name=name: card(name) for name in ("weight", "loss", "batch", "state")),
        lambda: shell.run_line_magic("tensors", ""),
        lambda: shell.run_cell("pass"),
        lambda: tnp.aliases(names["weight"], names),
        lambda: tnp.plan(names["loss"], writeable=True),
        lambda: [tnp.inspect(p) for p in names["model"].parameters()],
        lambda: tnp.to_numpy(names["state"]),
    ]


class Training:
    """A small training, whose every step the names of a shell see."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [m for _ in range(30) for m in (torch.nn.Linear(16, 16), torch.nn.Tanh())]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.names: dict[str, Any] = {
            "model": self.model,
            "weight": self.model[0].weight,
            "state": self.model.state_dict(),
        }
        self.num_steps = 0
        self.step()

    def step(self) -> None:
        """Take one step; the data depend on its number alone."""
        batch = torch.randn(8, 16, generator=torch.Generator().manual_seed(self.num_steps))
        loss = (self.model(batch) ** 2).mean()
        self.names |= {"batch": batch, "loss": loss}
        # Most of the time goes into backward, beside which a look would be fatal.
        for is_last in (False,) * 9 + (True,):
            self.optimizer.zero_grad()
            loss.backward(retain_graph=not is_last)
        self.optimizer.step()
        self.num_steps += 1

    def is_as_unwatched(self) -> bool:
        """Return whether another one of as many steps comes to the same bits."""
        alone = Training()
        while alone.num_steps < self.num_steps:
            alone.step()
        pairs = zip(self.model.state_dict().values(), alone.model.state_dict().values(), strict=True)
        return all(torch.equal(mine, other) for mine, other in pairs)


@contextmanager
def in_the_background(step: Callable[[], None]) -> Iterator[None]:
    """Call `step` again and again in a thread; fails if one call does."""
    is_over, errors = threading.Event(), []

    def run() -> None:
        try:
            while not is_over.is_set():
                step()
        except BaseException as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert not errors


@pytest.mark.slow
@in_fork
def test_looking_while_a_thread_trains_harms_neither():
    """Cards, tables, %tensors, %tensorwatch, aliases, plans: both live, and the training is bit-equal to one alone."""
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-5)
    training = Training()
    shell = shell_with()
    shell.user_ns.update(training.names)
    training.names = shell.user_ns
    shell.run_line_magic("tensorwatch", "model")
    with in_the_background(training.step):
        for _ in range(NUM_LOOKS):
            for look in looks_of(shell):
                look()
    assert training.num_steps > 1
    assert training.is_as_unwatched()


@pytest.mark.slow
@in_fork
def test_beside_a_running_thread_a_card_says_that_gradients_were_not_looked_at():
    """And claims nothing of them; once the thread has ended, all is told again."""
    weight = torch.nn.Parameter(torch.ones(3))
    (weight * 2).sum().backward()
    shell = shell_with(weight=weight)

    def text() -> str:
        return shell.display_formatter.format(weight)[0]["text/plain"]

    assert "has .grad" in text()
    assert NOT_LOOKED_AT not in text()
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    assert NOT_LOOKED_AT in text()
    assert "requires grad" in text()
    assert "has .grad" not in text()
    assert tnp.inspect(weight).has_grad is None
    assert tnp.aliases(weight, {"w": weight}).left_out == NOT_LOOKED_AT
    is_over.set()
    thread.join()
    assert "has .grad" in text()
    assert tnp.inspect(weight).has_grad is True


@pytest.mark.slow
@in_fork
def test_a_watch_reports_no_gradient_that_it_did_not_look_at():
    """Neither that it is gone while a thread runs, nor that it came back; what has really changed is told later."""
    weight = torch.nn.Parameter(torch.ones(3))
    weight.sum().backward()
    shell = shell_with(weight=weight)
    told: list[str] = []
    shell.display_pub.publish = lambda data, **_: told.append(data["text/plain"])
    shell.run_line_magic("tensorwatch", "weight")
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    shell.run_cell("pass")
    shell.run_cell("weight.grad = None")
    assert told == []
    is_over.set()
    thread.join()
    shell.run_cell("pass")
    assert len(told) == 1
    assert "lost its .grad" in told[0]


def answer_from(target: Callable[[], Any]) -> Any:
    """Return what `target` gives in another thread."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(target()))
    thread.start()
    thread.join()
    return answers[0]


@pytest.mark.slow
@in_fork
def test_who_else_runs_is_told_by_what_each_thread_is_for():
    """Alone: nobody. Beside an idle pool: nobody. Beside a thread of one's own, or seen from it: somebody."""
    import queue
    from concurrent.futures import ThreadPoolExecutor

    assert not threads.others_run()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(int).result() == 0
        # The worker may still be on its way back to where it waits.
        assert any(not threads.others_run() for _ in range(100_000))
        waits: queue.SimpleQueue[int] = queue.SimpleQueue()
        began = threading.Event()
        busy = pool.submit(lambda: (began.set(), waits.get()))
        began.wait()
        assert threads.others_run()
        waits.put(1)
        busy.result()
    assert answer_from(threads.others_run)
    assert not threads.others_run()


@pytest.mark.slow
@in_fork
def test_a_thread_may_change_everything_about_a_tensor_while_it_is_looked_at():
    """Writes, `resize_`, `set_`, `.data =` of another dtype and shape, freed storages, other names: no look dies."""
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-5)
    names: dict[str, Any] = {
        "plain": torch.zeros(100, 100), "strided": torch.zeros(300, 40)[::3, ::2], "big": torch.zeros(2**18),
        "freed": torch.zeros(64, 64), "array": np.zeros((50, 50)), "holder": torch.nn.Linear(4, 4),
    }  # fmt: skip
    names["view"] = names["plain"].T
    names["all"] = [names["plain"], {"freed": names["freed"]}, names["strided"]]
    shell = shell_with()
    shell.user_ns.update(names)
    names = shell.user_ns
    plain, freed, big = names["plain"], names["freed"], names["big"]
    count = 0

    def disturb() -> None:
        nonlocal count
        count += 1
        plain.fill_(count)
        plain.data = torch.full((100 + count % 7, 90), float(count))
        plain.data = torch.full((3,), count, dtype=torch.int16)
        freed.untyped_storage().resize_(0)
        freed.untyped_storage().resize_(64 * 64 * 4)
        big.untyped_storage().resize_(2**20 if count % 2 else 2**10)
        big.set_(torch.zeros(2**18).untyped_storage(), 0, (2**18,), (1,))
        names["strided"] = torch.zeros(30 + count % 5, 40)[::3, ::2]
        names[f"new{count % 50}"] = plain.view(-1)
        names.pop(f"new{(count + 25) % 50}", None)
        names["holder"].half() if count % 2 else names["holder"].float()

    shell.run_line_magic("tensorwatch", "plain big all array")
    with in_the_background(disturb):
        for _ in range(NUM_LOOKS):
            for name in ("plain", "view", "strided", "big", "freed", "all", "array"):
                shell.display_formatter.format(names[name])
                tnp.aliases(names["plain"], names)
            shell.run_line_magic("tensors", "")
            shell.run_cell("pass")


class Codes(torch.Tensor):
    """A tensor that computes its values from others, as those of torchao do."""

    @staticmethod
    def __new__(cls, codes: torch.Tensor, scale: torch.Tensor) -> Codes:
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype)

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor) -> None:
        self.codes, self.scale = codes, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["codes", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner: dict[str, torch.Tensor], *_: Any) -> Codes:
        return cls(inner["codes"], inner["scale"])

    def dequantize(self) -> torch.Tensor:
        return self.codes * self.scale

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        raise NotImplementedError(function)


def kinds_of_parts() -> dict[str, tuple[torch.Tensor, list[torch.Tensor]]]:
    """Return tensors that consist of several, which torch's own operators read, with the parts of each."""
    from torch.masked import masked_tensor

    coo, values = torch.eye(400).to_sparse().coalesce(), torch.randn(300, 300)
    csr, bsr = values.to_sparse_csr(), torch.randn(512, 512).to_sparse_bsr((8, 8))
    scales, zeros = torch.rand(300) + 0.1, torch.zeros(300, dtype=torch.int64)
    quantized = torch.quantize_per_channel(values, scales, zeros, 0, torch.qint8)
    jagged = torch.nested.nested_tensor([values.clone(), values[:9].clone()], layout=torch.jagged)
    data, mask = values.clone(), values > 0
    codes, scale = torch.ones(300, 300, dtype=torch.int8), torch.rand(300, 1)
    return {
        "coo": (coo, [coo.indices(), coo.values()]),
        "csr": (csr, [csr.crow_indices(), csr.col_indices(), csr.values()]),
        "bsr": (bsr, [bsr.crow_indices(), bsr.col_indices(), bsr.values()]),
        "quantized": (quantized, [quantized.q_per_channel_scales(), quantized.q_per_channel_zero_points()]),
        "jagged": (jagged, [jagged.values()]),
        "masked": (masked_tensor(data, mask), [data, mask]),
        "codes": (Codes(codes, scale), [codes, scale]),
    }


@pytest.mark.slow
@in_fork
def test_what_consists_of_several_tensors_is_shown_beside_a_thread_as_it_is_alone():
    """Sparse, quantized per channel, nested and masked ones: the same values while another thread only runs."""
    kinds = kinds_of_parts()
    shell = shell_with()

    def texts() -> list[str]:
        shown = [shell.display_formatter.format(t)[0]["text/plain"] for t, _ in kinds.values()]
        return [text[text.index("array(") :] for text in shown]

    assert texts() == answer_from(texts)


@pytest.mark.slow
@in_fork
def test_a_thread_may_free_the_parts_of_a_tensor_while_it_is_looked_at():
    """In cards, tables, %tensors and %tensorwatch of what torch's own operators would read."""
    if sys.platform == "linux":
        # M_MMAP_THRESHOLD: what is freed is mapped no longer, so that who reads it dies.
        ctypes.CDLL(None).mallopt(-3, 2**12)
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-5)
    kinds = kinds_of_parts()
    shell = shell_with(**{name: t for name, (t, _) in kinds.items()})
    shell.user_ns["all"] = [t for t, _ in kinds.values()]

    def disturb() -> None:
        for _, parts in kinds.values():
            for part in parts:
                kept, storage = part.clone(), part.untyped_storage()
                nbytes = storage.nbytes()
                storage.resize_(0)
                time.sleep(0)
                storage.resize_(nbytes)
                part.copy_(kept)

    shell.run_line_magic("tensorwatch", "all")
    with in_the_background(disturb):
        for _ in range(NUM_LOOKS):
            for name in (*kinds, "all"):
                shell.display_formatter.format(shell.user_ns[name])
            shell.run_line_magic("tensors", "")
            shell.run_cell("pass")
