"""What a person waits for in a kernel: from a cell's start until the kernel is idle again, with its output sent."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from side_by_side import Figure, timed

sys.path.insert(0, str(Path(__file__).parents[1]))
from kernels import TIMEOUT_S, start_kernel

SHAPES = {"10": "(10,)", "147,456": "(384, 384)", "1,000,000": "(1000, 1000)"}
IDLE_S = 2
"""How long a person looks at the cell that has loaded the extension, before the next one runs."""
FIRST_CLAIM_S = 0.05


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield figures of the first card of fresh kernels, and of later ones beside `print(repr(t))`."""
    first, later = [], {numel: ([], []) for numel in SHAPES}
    for _ in range(2 if quick else 7):
        manager, client = start_kernel()

        def run(code: str, client=client) -> float:
            begun = time.perf_counter()
            client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=lambda _: None)
            return time.perf_counter() - begun

        try:
            run("import torch")
            run("%load_ext tensornp")
            time.sleep(IDLE_S)
            run("t = torch.randn(4, 6)")
            first.append(run("t"))
            for numel, shape in SHAPES.items():
                run(f"t = torch.randn{shape}")
                for _ in range(5):
                    own, other = run("t"), run("print(repr(t))")
                    later[numel][0].append(own)
                    later[numel][1].append(other)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    yield timed(f"the first card, {IDLE_S} s after loading", first, at_most=FIRST_CLAIM_S)
    for numel, (own, other) in later.items():
        yield timed(f"a later card of {numel} float32", own, "print(repr(t))", other)
