"""The README's code runs, and its links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import save_file

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_of_the_readme_runs(shell, tmp_path, monkeypatch):
    """Each block is a cell of one notebook."""
    monkeypatch.chdir(tmp_path)
    save_file({"fc.weight": torch.randn(8, 3)}, "checkpoint.safetensors")
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert blocks[0].startswith("%load_ext tensornp\n")
    for block in blocks:
        shell.run(block)
    assert shell.namespace["x"].grad[0] == 100
    assert not shell.namespace["b"].flags.owndata


def test_the_links_of_the_readme_resolve():
    targets = re.findall(r"(?:\]\(|src=\"|srcset=\")(?!https?:)([^)\"\s]+)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).is_file()] == []
