"""`%%tonumpy` runs what is below it as IPython runs a cell."""

from __future__ import annotations

import pytest
import torch

REFUSED = [
    ("return w", "line 2 of the cell", "'return' outside function"),
    ("x = 1\nyield w", "line 3 of the cell", "'yield' outside function"),
    ("w\nbreak", "line 3 of the cell", "'break' outside loop"),
    ("async def f():\n    pass\nw +", "line 4 of the cell", "invalid syntax"),
    ("w\0", "the cell", "null bytes"),
    ("(" * 1000 + "w" + ")" * 1000, "line 2 of the cell", "nested"),
    ("-" * 100_000 + "w", "the cell", "too deeply nested"),
    ("w" + ".T" * 100_000, "the cell", "too deeply nested"),
    ("await w" + ".T" * 100_000, "the cell", "too deeply nested"),
]


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(w=torch.arange(3.0), half=torch.ones(2).bfloat16())


@pytest.mark.slow
def test_what_is_no_python_is_told_in_a_sentence_and_nothing_has_run(shell):
    """Deeply nested, NUL bytes, `return` and `yield` of no function, `break` of no loop."""
    for cell, where, why in REFUSED:
        said = shell.fail(f"%%tonumpy\n{cell}\nran = 1")
        assert said.startswith(where)
        assert why in said
        assert "ran" not in shell.namespace
