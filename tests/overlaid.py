"""Environments for packages that do not go with those of the tests, laid over the one that the tests run in."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


def python_with(requirement: str, folder: Path) -> Path:
    """Install a package in an environment of its own, and return the Python there.

    Only what is not in this environment as the package needs it is installed, and comes first. Where it cannot be had
    the test skips, and in CI it fails.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    # In ASCII, since Pythons differ in how they decode it.
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!a})\n"
    Path(packages, "behind.pth").write_text(line, encoding="ascii")
    command = [python, "-m", "pip", "install", "--no-compile", requirement]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        why = f"{requirement} cannot be installed: {installed.stderr}"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    return python
