"""The benchmarks still run, and report what they found; how fast anything is, no test says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from side_by_side import Spread, table, timed

pytestmark = pytest.mark.benchmark


@pytest.mark.slow
def test_the_benchmarks_print_a_table_and_keep_its_figures(tmp_path):
    """The table goes to the terminal, and the figures to a file."""
    kept = tmp_path / "first.json"
    command = [sys.executable, Path(__file__).with_name("run.py"), "--quick", "--only", "convert"]
    done = _run([*command, "--json", kept])
    assert "## What does to_numpy cost, beside plain PyTorch?" in done
    assert "| measured " in done
    figures = json.loads(kept.read_text(encoding="utf-8"))["figures"]
    assert all(figure["what"] in done for figure in figures)


def test_a_figure_is_compared_within_its_rounds_and_held_to_its_claim():
    figure = timed("sum", [2e-3, 4e-3, 6e-3], "torch", [1e-3, 2e-3, 3e-3], at_most=2)
    assert figure.times == Spread(2, 2, 2)
    assert figure.verdict == "≤ 2.00: holds"
    assert timed("sum", [3.0], "torch", [1.0], at_most=2).verdict == "≤ 2.00: DOES NOT HOLD"
    assert timed("read", [0.5], gigabytes=1).own == Spread(2, 2, 2)
    assert table([figure]).splitlines()[2].split("|")[2].strip() == "4.00 ms (2.40–5.60)"


def _run(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
