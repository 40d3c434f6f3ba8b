"""Runs of the tests with other torches, each with a NumPy of its time: `python tests/run.py --torch 2.6.0`.

Each has an environment of its own beside `.venv`, also for each Python that runs it, and makes a row of the table in
CONTRIBUTING.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from environment import Environment, this_python  # noqa: E402

OF_ITS_TIME = {
    # All lower bounds of the requirements at once, and what still takes such a NumPy.
    "2.4": (
        "numpy==1.26.0 ml_dtypes==0.5.0 ipython==8.20.0 traitlets==5.9.0 ipywidgets==8.1.0 anywidget==0.9.18 "
        "matplotlib==3.9.0 pillow==10.0.0 psutil==5.9.0 xxhash==3.4.1 lazy_loader==0.6 tqdm==4.66.0 wcwidth==0.2.13 "
        "jax==0.6.2 torchao==0.5.0 tensordict==0.5.0"
    ),
    "2.6": "numpy==2.2.* torchao==0.8.0 tensordict==0.7.2",
    "2.8": "numpy==2.3.* torchao==0.13.0 tensordict==0.9.1",
    "2.13": "numpy==2.4.*",
    "2.15": "",
}
"""What is pinned beside torch, by the first version of torch that it goes with."""


def environment(torch: str) -> Environment:
    """The environment of this Python with this version of torch, such as "2.6.0"; it is made by its `ensure`."""
    if not re.fullmatch(r"2\.\d+\.\d+", torch):
        sys.exit(f"--torch takes a version like 2.6.0, not {torch!r}.")
    begins = [first for first in OF_ITS_TIME if _numbers(first) <= _numbers(torch)]
    if not begins:
        sys.exit(f"tensornp needs torch {next(iter(OF_ITS_TIME))} or later, not {torch}.")
    pins = [f"torch=={torch}", *OF_ITS_TIME[begins[-1]].split()]
    return Environment(ROOT / f".venv-torch-{torch}-python-{this_python()}", "\n".join(pins) + "\n")


def row(python: Path, report: Path) -> str:
    """The row of the table in CONTRIBUTING that a run makes, from pytest's report in XML."""
    ask = (
        "import platform, torch, numpy; "
        "print(platform.python_version(), torch.__version__.partition('+')[0], numpy.__version__, sep=' | ')"
    )
    versions = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skips = [case.find("skipped") for case in cases]
    # What comes after a colon is told of one test alone.
    reasons = Counter((skip.get("message") or "").partition(": ")[0] for skip in skips if skip is not None)
    told = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
    passed = f"{len(cases) - failed - sum(reasons.values()):,}{f', {failed} failed' if failed else ''}"
    return f"| {versions} | {passed} | {told or '0'} |"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
