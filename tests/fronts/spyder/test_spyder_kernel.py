"""The kernel that Spyder starts, which does not go with the ipykernel of the other tests; its console shows text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, environment
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from kernels import TIMEOUT_S
from overlaid import python_with

WITH_GRADIENT = "t.grad = torch.ones(40)\nt"
PROVED = "a = %tonumpy t\ntry:\n    a[0] = 1\nexcept ValueError as error:\n    print(error)"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str], list[str]]]:
    """Run a cell in such a kernel, and return its outputs as text."""
    python = python_with("spyder-kernels>=3.1.6", tmp_path / "spyder-kernels")
    spec = {"argv": [str(python), "-m", "spyder_kernels.console", "-f", "{connection_file}"], "language": "python"}
    (tmp_path / "spyder").mkdir()
    (tmp_path / "spyder" / "kernel.json").write_text(json.dumps(spec | {"display_name": "Spyder"}), encoding="utf-8")
    specs = KernelSpecManager(kernel_dirs=[str(tmp_path)])
    manager = KernelManager(kernel_name="spyder", kernel_spec_manager=specs)
    manager.start_kernel(env=environment(tmp_path), cwd=tmp_path)
    client = manager.blocking_client()
    client.start_channels()

    def run(cell: str) -> list[str]:
        outputs: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                outputs.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data"):
                outputs.append(content["data"]["text/plain"])

        reply = client.execute_interactive(cell, timeout=TIMEOUT_S, output_hook=hear)["content"]
        assert reply["status"] == "ok", reply
        return outputs

    try:
        client.wait_for_ready(TIMEOUT_S)
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_each_cell_shows_its_card_once_in_words_and_gradients_are_looked_at(run: Callable[[str], list[str]]):
    """Though a thread of Spyder's runs beside the cell; the arrays are what the cards say."""
    run(SETUP)
    for cell in SHOWN:
        (said,) = run(cell)
        assert amiss(said, [cell]) == {}, said
    (card,) = run(WITH_GRADIENT)
    assert "requires grad · has .grad" in card
    assert "assignment destination is read-only" in "".join(run(PROVED))
