"""pdb: the documented line for `.pdbrc` shows a tensor, also a freed one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from child import TIMEOUT_S

RECIPE = 'alias card p __import__("tensornp").card(%*)\n'
PROGRAM = """\
import torch
weight, freed = torch.ones(2, 3), torch.ones(10)
freed.untyped_storage().resize_(0)
def inner(here):
    return here
inner(freed)
"""


@pytest.mark.slow
def test_an_alias_shows_the_card_of_an_expression_in_any_frame(tmp_path):
    (tmp_path / ".pdbrc").write_text(RECIPE)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parents[3] / "src"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pdb", "-c", "break 5", "-c", "continue", script],
        input="card here\nup\ncard weight[:, 1]\nquit\n", capture_output=True, text=True, encoding="utf-8", check=False,
        cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path), "PYTHONPATH": path}, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "(10,) | float32 | cpu" in done.stdout and "was freed or shrunk" in done.stdout
    assert "(2,) | float32 | cpu" in done.stdout and "array([1., 1.]" in done.stdout
