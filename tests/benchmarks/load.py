"""The time of loading, in fresh processes, beside `import torch`; and what `import tensornp` brings with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from others import installed, missing_note
from side_by_side import Figure, Spread, timed

CLAIM_LOAD, CLAIM_SHOW = 0.02, 0.04
OWN = "%load_ext tensornp"
HEAVY = ("torch", "IPython", "matplotlib", "anywidget", "ipywidgets", "numpy", "ml_dtypes")

# Runs each argument as a statement, and prints the seconds that each took.
IN_A_SHELL = """
import json, sys, time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

names = {"shell": InteractiveShell(config=Config(HistoryManager={"enabled": False}))}
seconds = []
for statement in sys.argv[1:]:
    start = time.perf_counter()
    exec(statement, names)
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""
ALONE = """
import json, sys, time
before = set(sys.modules)
start = time.perf_counter()
import tensornp
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield figures of loading into a shell that has torch, and what is imported by `import tensornp` alone."""
    rounds = 3 if quick else 15
    loads = {OWN: ("shell.run_line_magic('load_ext', 'tensornp')", "shell.display_formatter.format(t)")}
    loads |= {f"import {name}": (f"import {name}", statement) for name, statement in installed().items()}
    seconds: dict[str, list[list[float]]] = {name: [] for name in loads}
    alone = []
    for count in range(rounds + 1):
        for name, (load, show) in loads.items():
            taken = _child(IN_A_SHELL, "import torch", load, "t = torch.arange(12.0).view(3, 4)", show)
            # The first round fills the disk cache.
            if count:
                seconds[name].append(taken)
        alone.append(_child(ALONE))
    for name, taken in seconds.items():
        torch, load, _, show = zip(*taken, strict=True)
        is_own = name == OWN
        yield timed(name, load, "import torch", torch, at_most=CLAIM_LOAD if is_own else None)
        yield timed(
            f"then the first tensor, {name}", show, "import torch", torch, at_most=CLAIM_SHOW if is_own else None
        )
    yield missing_note()
    brought = alone[0][1]
    yield Figure("import tensornp", Spread.of(taken for taken, _ in alone[1:]))
    yield (
        f"`import tensornp` alone imports {len(brought)} modules; heavy ones among them: "
        f"{', '.join(set(HEAVY).intersection(brought)) or 'none'} (of {', '.join(HEAVY)})."
    )


def _child(code: str, *arguments: str) -> Any:
    """Return what `code` prints as JSON in a fresh Python, whose IPython knows nothing of the user's own."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "IPYTHONDIR": home},
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)
