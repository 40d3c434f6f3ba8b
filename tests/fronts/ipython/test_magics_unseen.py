"""Magics are looks too: no mode, no hook and no class of the user's sees one, whatever lies in the namespace."""

from __future__ import annotations

import re
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from odd import Lying, OddArray, forget_what_was_asked, many_kinds, nothing_was_asked, plain
from unchanged import unchanged


@pytest.fixture
def tensors(shell) -> dict[str, torch.Tensor]:
    """Tensors of many kinds under names of the notebook, beside objects that want to be noticed."""
    found = many_kinds()
    base, p = found["y"], found["p"]
    shell.namespace.update(
        found, n=base.numpy()[1:], lying=Lying(), mock=Mock(spec=torch.Tensor), m=torch.nn.Linear(2, 2),
        many={"a": p, "b": [base, np.ones(3)]}, odd=np.ones(4).view(OddArray), opt=torch.optim.Adam([p]),
    )  # fmt: skip
    forget_what_was_asked()
    return {name: plain(t) for name, t in found.items()}


KINDS = "y view p grown half conj coo csr nested empty scalar raising overriding cow inference".split()
OPTIONS = ["", "-c", "-s", "-d float64", "-o bound", "--explain"]


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_tonumpy_is_not_seen(shell, tensors, option):
    """In each mode and with each option; of a tensor, only what sharing memory means is another."""
    for name in KINDS:
        run = shell.fail if _is_refused(name, option) else shell.run
        with unchanged(*tensors.values(), but=("resizable", "lazily copied", "address")):
            run(f"%tonumpy {option} {name};")
    assert nothing_was_asked()


def _is_refused(name: str, option: str) -> bool:
    return option == "-s" and name in ("conj", "coo", "csr")


def test_tonumpy_of_a_container_and_of_a_cell_is_not_seen(shell, tensors):
    """The same holds for what is inside, for cells that await, and for tensors that are converted again."""
    for cell in ("%tonumpy many;", "%tonumpy [raising, y];", "%tonumpy --explain many", "%%tonumpy y raising\n1;"):
        with unchanged(*tensors.values(), but=("resizable", "lazily copied", "address")):
            shell.run(cell)
    assert nothing_was_asked()


@pytest.mark.parametrize(
    "line",
    ["", "y", "m.*", "*.grad", "--release"],
)
def test_tensors_is_not_seen(shell, tensors, line):
    """Sorted by anything, by names, with wildcards, and when it lets go of what the history holds."""
    shell.run("raising;")
    shell.ip.run_cell("raising;", store_history=True)
    for _ in range(2):
        with unchanged(*tensors.values()):
            shell.run(f"%tensors {line}")
    assert nothing_was_asked()


def test_tensors_is_not_seen_after_conversions(shell, tensors):
    """When it compares all that it finds with what was converted before."""
    for name in ("y", "raising", "overriding", "half", "coo"):
        shell.run(f"%tonumpy -c -o {name}_np {name}")
    for line in ("%tensors", "%tensors --release"):
        with unchanged(*tensors.values()):
            shell.run(line)
    assert nothing_was_asked()


def test_the_watch_and_its_report_are_not_seen(shell, tensors):
    """When it begins, after a cell that changed nothing, after one that did, and when it ends."""
    names = " ".join(name for name in KINDS if name != "cow")
    with unchanged(*tensors.values()):
        shell.run(f"%tensorwatch {names} many m n odd")
        shell.run("pass")
        shell.run("%tensorwatch")
    with torch.no_grad():
        for name in ("y", "p", "half", "raising"):
            tensors[name].add_(1)
    with unchanged(*tensors.values()):
        shell.run("pass")
        report = str(shell.displayed)
        shell.run("%tensorwatch --off")
    for name in ("y", "p", "half", "raising"):
        assert re.search(rf"\b{name}[,:] ", report), "alone, or among those that have changed alike"
    assert nothing_was_asked()


def test_totensor_is_not_seen(shell, tensors):
    """Of an array that lies in a tensor's memory, too."""
    for line in ("%totensor n;", "%totensor -o bound n;", "%totensor [n, n];", "%totensor np.ones(2) if 0 else n;"):
        with unchanged(*tensors.values()):
            shell.run(line)
    assert nothing_was_asked()


def test_completion_asks_nothing(shell, tensors):
    """TAB after any of our magics looks at types alone."""
    for line in ("%tonumpy ", "%tonumpy -c ", "%%tonumpy ", "%totensor ", "%tensors ", "%tensorwatch ", "%tonumpy -o "):
        with unchanged(*tensors.values()):
            shell.complete(line)
    assert nothing_was_asked()
