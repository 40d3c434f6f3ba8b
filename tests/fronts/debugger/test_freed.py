"""What asks torch for the repr of a tensor whose storage was freed, and no extension of ours: it ends the process.

Nothing of torch is patched. Where one of these lives on, torch has mended it, and the README may say so.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from child import TIMEOUT_S

FREED = "import torch; freed = torch.ones(10); freed.untyped_storage().resize_(0)"
SHELL = "from IPython.core.interactiveshell import InteractiveShell as Shell; shell = Shell.instance()"
PROGRAMS = {
    "repr": f"{FREED}; repr(freed)",
    "a question mark in IPython": f"{SHELL}; shell.run_cell({FREED!r}); shell.run_cell('freed?')",
    "%whos": f"{SHELL}; shell.run_cell({FREED!r}); shell.run_cell('%whos')",
    "a failed assert in pytest": "import pytest, sys; pytest.main(['-q', '-p', 'no:cacheprovider', sys.argv[1]])",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_who_asks_the_repr_of_freed_memory_ends_the_process(what, tmp_path):
    test = tmp_path / "test_freed.py"
    test.write_text(f"{FREED}\n\ndef test_it():\n    assert freed is None\n", encoding="utf-8")
    command = [sys.executable, "-c", PROGRAMS[what], str(test)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode not in (0, 1), ended.stdout + ended.stderr
