"""The benchmarks still run; how fast anything is, no test says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark


@pytest.mark.slow
def test_the_benchmarks_print_a_table():
    command = [sys.executable, Path(__file__).with_name("run.py"), "--quick", "--only", "convert"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "| tensor t " in done.stdout
    assert "| Parameter (20, 50) " in done.stdout
