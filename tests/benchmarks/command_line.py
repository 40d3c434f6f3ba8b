"""The CPU time of a list on the command line, in fresh processes, beside `import numpy`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from side_by_side import Figure, timed

CLAIM = 1.6
NUM_LAYERS = 24
# Each ends with the seconds that its process has computed for, from its very beginning.
NUMPY = "import numpy"
LIST = "from tensornp.fronts.command_line import main; main()"
SAFE_OPEN = """
from safetensors import safe_open
with safe_open(sys.argv[1], "numpy") as file:
    for name in file.keys():
        print(name, file.get_slice(name).get_shape(), file.get_slice(name).get_dtype())
"""
TORCH = "import torch; [print(name, one.shape) for name, one in torch.load(sys.argv[1], mmap=True).items()]"


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield figures of lists of one model in several formats, and of what libraries need for as much."""
    with tempfile.TemporaryDirectory() as folder:
        model, saved, arrays = (str(Path(folder, f"model.{end}")) for end in ("safetensors", "pt", "npz"))
        state = _state()
        save_file(state, model)
        torch.save(state, saved)
        np.savez(arrays, **{name: one.numpy() for name, one in state.items()})
        ways = {
            "tensornp model.safetensors": (LIST, model), "tensornp model.pt": (LIST, saved),
            "tensornp model.npz": (LIST, arrays), "safe_open of safetensors": (SAFE_OPEN, model),
            "torch.load, mapped": (TORCH, saved),
        }  # fmt: skip
        seconds: dict[str, list[float]] = {name: [] for name in (NUMPY, *ways)}
        for count in range(4 if quick else 31):
            for name, (code, path) in {NUMPY: (NUMPY, ""), **ways}.items():
                taken = _cpu_seconds(code, path)
                # The first round writes what was compiled, and fills the disk cache.
                if count:
                    seconds[name].append(taken)
    beside = seconds.pop(NUMPY)
    for name, taken in seconds.items():
        yield timed(name, taken, NUMPY, beside, at_most=CLAIM if name.endswith(".safetensors") else None)
    yield f"The model has {len(state)} weights in {NUM_LAYERS} layers; a list of it is printed to nowhere."


def _state() -> dict[str, torch.Tensor]:
    """Return a small model of many names."""
    parts = {"attn.qkv.weight": (24, 8), "attn.out.weight": (8, 8), "mlp.weight": (32, 8), "norm.weight": (8,)}
    layers = {f"layers.{i}.{name}": torch.ones(shape) for i in range(NUM_LAYERS) for name, shape in parts.items()}
    return {"embed.weight": torch.ones(100, 8), **layers, "head.weight": torch.ones(100, 8)}


def _cpu_seconds(code: str, path: str) -> float:
    code = f"import sys, time\n{code}\nprint(time.process_time(), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )
    return float(done.stderr)
