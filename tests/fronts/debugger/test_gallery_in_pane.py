"""The whole gallery in the pane of one program that has stopped: nothing fails, nothing changes, and it goes on."""

from __future__ import annotations

import pytest
import torch
from dap import stopped
from gallery import KINDS

PROGRAM = """
import torch, torch.distributed
from gallery import KINDS, made
from unchanged import unchanged

begin = torch.distributed.init_process_group
def begin_anew(*arguments, **keywords):
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return begin(*arguments, **keywords)
torch.distributed.init_process_group = begin_anew

everything = {}
for number, name in enumerate(KINDS):
    try:
        case = made(name)
    except RuntimeError as error:
        # There is one level of forward differentiation, and another kind has it.
        assert "Nested forward mode" in str(error)
        continue
    if not isinstance(case, str):
        everything[name] = globals()[f"kind_{number}"] = case.tensor
# Its own repr may be seen by a mode.
del case
with unchanged(*everything.values()):
    breakpoint()
"""
CHILDREN = ["shape", "dtype", "device", "grad", "memory", "first values", "statistics"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The line and the children of each kind, by its name."""
    with stopped(PROGRAM, tmp_path_factory.mktemp("gallery")) as debugger:
        shown = debugger.scope()
        lines = {name: shown[f"kind_{i}"] for i, name in enumerate(KINDS) if f"kind_{i}" in shown}
        children = dict(zip(lines, debugger.children_of(list(lines.values())), strict=True))
        figures = {name: one["statistics"] for name, one in children.items() if one["statistics"]["variablesReference"]}
        expanded = dict(zip(figures, debugger.children_of(list(figures.values())), strict=True))
        found = {name: (lines[name]["value"], children[name], expanded.get(name, {})) for name in lines}
        inside = debugger.children(shown["everything"])
        found["everything"] = shown["everything"]["value"], inside, {}
    return found


def test_each_kind_has_its_line_and_its_children(seen):
    assert set(KINDS) - set(seen) <= {"escaped from jvp"} or torch.__version__ < "2.13"
    for name in set(seen) - {"everything"}:
        line, children, figures = seen[name]
        assert line.startswith(("(", "no shape yet")), (name, line)
        assert "Error" not in line and "not looked at" not in line, (name, line)
        assert list(children) == CHILDREN, (name, line, children)
        assert not figures or "count" in figures or "not read" in figures, (name, figures)
        assert "storage_freed" not in name or "freed" in line


def test_what_has_no_values_says_so_in_its_line(seen):
    for name in ("storage freed", "view of a freed storage", "storage shrunk", "quint8 whose storage was freed"):
        line, children, figures = seen[name]
        assert line.endswith("freed") or " · freed" in line, (name, line)
        assert "was freed or shrunk" in children["first values"]["value"]
        assert not figures
