"""A checkpoint that is scanned by other processes, each new: the same bits, whatever becomes of them."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from child import in_child
from safetensors.torch import save_file

import tensornp as tnp

TIMEOUT_S = 400


def saved(folder: Path) -> dict[str, torch.Tensor]:
    """Write a checkpoint of two files, of which one weight takes several tasks."""
    g = torch.Generator().manual_seed(0)
    large = torch.randn(9_000_001, generator=g).to(torch.bfloat16)
    large[8_765_432] = math.nan
    made = {"large": large, "w": torch.randn(300, 701, generator=g), "f8": torch.ones(9).to(torch.float8_e4m3fn)}
    more = {"b": torch.tensor([1.0, -math.inf]), "i": torch.arange(-50, 50), "empty": torch.zeros(0, 3)}
    save_file(made, folder / "model-00001-of-00002.safetensors")
    save_file(more, folder / "model-00002-of-00002.safetensors")
    return made | more


def end_in_time() -> None:
    """Have this process be interrupted if it takes too long, so that what it has started is ended."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"no answer within {TIMEOUT_S} s")

    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TIMEOUT_S)


@pytest.mark.slow
@in_child
def test_other_processes_give_the_bits_of_a_scan_without_them():
    """And those of the tensors in memory."""
    end_in_time()
    with tempfile.TemporaryDirectory() as place:
        made = saved(Path(place))
        explorer = tnp.weights(place)
        assert explorer["large"]._source.num_tasks > 1
        expected = {key: tnp.stats(one) for key, one in made.items()}
        assert dict(explorer.scan()) == expected
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            assert executor.submit(os.getpid).result() != os.getpid()
            table = explorer.scan(executor)
            assert table.complete
            assert table.failed == {}
            assert dict(table) == expected
            found = [found.text for found in table.findings("large")]
            assert found == ["1 of 9,000,001 is NaN"]
            # A worker sees for itself that it is not the file that was listed.
            os.utime(explorer["b"].location, ns=(1, 1))
            failed = explorer.scan(executor).failed
            assert sorted(failed) == ["b", "i"]
            assert all("changed since it was listed" in why for why in failed.values())
