"""A console beside the notebook: what a subshell of the same kernel shows while a cell of the main shell trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kernels import TIMEOUT_S, start_kernel

NUM_ROUNDS = 3
LOOKS = ("weight", "state", "loss", "batch", "%tensors", "tnp.aliases(weight)", "tnp.plan(loss, writeable=True)",
         "tnp.to_numpy(state); [tnp.inspect(p) for p in model.parameters()]")  # fmt: skip
TRAINING = """
import torch, tensornp as tnp
torch.set_num_threads(1)

def made():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(16, 16), torch.nn.Tanh())])
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)

def step(model, optimizer, count):
    batch = torch.randn(8, 16, generator=torch.Generator().manual_seed(count))
    loss = (model(batch) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return batch, loss

model, optimizer = made()
weight, state, count, is_over = model[0].weight, model.state_dict(), 1, False
batch, loss = step(model, optimizer, 0)
"""
TRAIN = """
while not is_over:
    batch, loss = step(model, optimizer, count)
    count += 1
"""
COMPARE = """
other, its_optimizer = made()
for i in range(count):
    step(other, its_optimizer, i)
is_equal = all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
"""


class Kernel:
    """A kernel with a subshell; `run` runs a cell in either."""

    def __init__(self) -> None:
        self.manager, self.client = start_kernel()
        request = self.client.session.msg("create_subshell_request")
        self.client.control_channel.send(request)
        self.subshell = self.client.get_control_msg(timeout=TIMEOUT_S)["content"].get("subshell_id")
        self.outputs: dict[str, list[dict[str, Any]]] = {}
        self.ended: set[str] = set()

    def start(self, code: str, subshell: str | None = None) -> str:
        message = self.client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True})
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def wait(self, cell: str) -> list[dict[str, Any]]:
        """Wait until a cell has ended; returns its outputs, by MIME type."""
        # It may end while another cell is waited for.
        while cell not in self.ended:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            of, kind, content = message["parent_header"].get("msg_id"), message["msg_type"], message["content"]
            assert kind != "error", "\n".join(content["traceback"])
            if kind in ("execute_result", "display_data"):
                self.outputs.setdefault(of, []).append(content["data"])
            if kind == "status" and content["execution_state"] == "idle":
                self.ended.add(of)
        return self.outputs.pop(cell, [])

    def run(self, code: str, subshell: str | None = None) -> list[dict[str, Any]]:
        return self.wait(self.start(code, subshell))


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    if kernel.subshell is None:
        pytest.skip("this kernel has no subshells")
    kernel.run("%load_ext tensornp\n%config TensorDisplay.widget = 'never'")
    kernel.run(TRAINING)
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_looking_from_a_subshell_while_the_main_shell_trains_harms_neither(kernel):
    """Every kind of look, both shells alive, and the training bit-equal to one that nobody watched."""
    kernel.run("%tensorwatch model", kernel.subshell)
    training = kernel.start(TRAIN)
    has_begun = (kernel.run("count > 1", kernel.subshell)[0]["text/plain"] == "True" for _ in range(1000))
    assert any(has_begun)
    for _ in range(NUM_ROUNDS):
        for look in LOOKS:
            kernel.run(look, kernel.subshell)
    kernel.run("is_over = True", kernel.subshell)
    kernel.wait(training)
    kernel.run(COMPARE)
    assert kernel.run("count > 1, is_equal")[0]["text/plain"] == "(True, True)"
