"""Who counts as running code, and who only serves."""

from __future__ import annotations

import asyncio
import sys
import threading

import torch
from child import in_child

import tensornp as tnp


@in_child
def test_a_process_that_asyncio_waits_for_hides_no_gradient():
    """Up to Python 3.11 a thread waits for it, which runs nothing of the user's."""
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)

    async def look() -> bool | None:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
        try:
            return tnp.inspect(p).has_grad
        finally:
            await child.communicate(b"\n")

    assert asyncio.run(look()) is True


@in_child
def test_a_thread_whose_module_has_no_name_runs():
    """Code that `exec` runs has none, nor have those modules of ours that are silent: that is no word for rest."""
    from tensornp.core.lowlevel import threads

    assert not threads.others_run()
    done: list[bool] = []
    code = "import time\nwhile not done:\n    time.sleep(0.001)"
    thread = threading.Thread(target=exec, args=(code, {"done": done}))
    thread.start()
    try:
        assert all(threads.others_run() for _ in range(1000))
    finally:
        done.append(True)
        thread.join()
