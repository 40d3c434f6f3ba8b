"""The first line of a docstring: verb and object, at most 100 characters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tensornp

ROOT = Path(tensornp.__file__).parent
INVERTED = re.compile(
    r"(What|Whose|Who|Of|Where|By)\b|(Return|Yield) (what|which|who|how|where)\b|.*\b(of|by|in) which\b"
)
MAX_LENGTH = 100


def first_lines(path: Path) -> list[str]:
    """Return the first lines of all docstrings of a module."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    return [text.split("\n")[0] for node in nodes if (text := ast.get_docstring(node))]


def offenders() -> list[str]:
    """Return the first lines that break a rule, with their modules."""
    return [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sorted(ROOT.rglob("*.py"))
        for line in first_lines(path)
        if INVERTED.match(line) or len(line) > MAX_LENGTH
    ]


@pytest.mark.slow
def test_first_lines_are_plain():
    """No docstring starts with a relative clause, or is too long to be read at a glance."""
    assert not offenders(), "\n".join(offenders())


if __name__ == "__main__":
    print("\n".join(offenders()))
