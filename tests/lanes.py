"""Run the tests with another torch: `python tests/run.py --torch 2.7.0`.

Each torch has its own environment next to `.venv`, one for each Python that runs it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from environment import Environment, this_python  # noqa: E402

OF_ITS_TIME = {
    # All lower bounds of the requirements at once, and what still takes such a NumPy.
    "2.7": (
        "numpy==2.0.0 ml_dtypes==0.5.0 ipython==8.20.0 traitlets==5.9.0 ipywidgets==8.1.0 anywidget==0.9.18 "
        "matplotlib==3.9.0 pillow==10.0.0 psutil==5.9.0 xxhash==3.4.1 lazy_loader==0.6 tqdm==4.66.0 "
        "jax==0.6.2 torchao==0.11.0 tensordict==0.8.3"
    ),
    "2.13": "numpy==2.4.*",
    "2.14": "numpy==2.4.*",
}
"""Pins next to torch, by the first version of torch that they go with."""


def environment(torch: str) -> Environment:
    """Return the environment of this Python with this version of torch, such as "2.7.0"; `ensure` makes it."""
    if not re.fullmatch(r"2\.\d+\.\d+", torch):
        sys.exit(f"--torch takes a version like 2.7.0, got {torch!r}.")
    begins = [first for first in OF_ITS_TIME if _numbers(first) <= _numbers(torch)]
    if not begins:
        sys.exit(f"tensornp needs torch {next(iter(OF_ITS_TIME))} or later, got {torch}.")
    pins = [f"torch=={torch}", *OF_ITS_TIME[begins[-1]].split()]
    return Environment(ROOT / f".venv-torch-{torch}-python-{this_python()}", "\n".join(pins) + "\n")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
