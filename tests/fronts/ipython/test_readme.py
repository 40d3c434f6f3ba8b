"""What the README shows as typed is typed here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = ["pip install .", "%load_ext tensornp", "tour.gif", "examples/start.py", "tests/run.py"]


def block_after(heading: str) -> list[str]:
    """Return the lines of the first block of Python under a heading."""
    found = re.search(rf"^## {heading}\n.*?```python\n(.*?)```", README, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1].splitlines()


def test_the_notebook_s_lines_run_as_they_stand(shell):
    """Each in a cell of its own, with its comment; the last one unloads the extension."""
    model = torch.nn.Sequential()
    model.fc = torch.nn.Linear(3, 2)
    shell.namespace.update(model=model, d={"a  b": torch.zeros(3)}, x=torch.ones(3), w=torch.ones(4))
    lines = block_after("In a notebook")
    assert lines[0] == "%load_ext tensornp"
    for line in lines[1:]:
        result = shell.ip.run_cell(line)
        assert result.success, line
    assert "tensornp" not in shell.ip.extension_manager.loaded


def test_the_links_lead_somewhere():
    """Files of the repository, and headings of pages."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", README):
        name, _, anchor = target.partition("#")
        path = ROOT / (name or "README.md")
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in made, target


@pytest.mark.parametrize("wanted", FIRST_SCREEN)
def test_the_first_screen_has_what_a_newcomer_needs(wanted):
    """In the first 25 lines."""
    assert wanted in "\n".join(README.splitlines()[:25])
