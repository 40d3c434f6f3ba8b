"""The first line of a docstring: verb and object, at most 100 characters; a ratchet for each package."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import tensornp

ROOT = Path(tensornp.__file__).parent
INVERTED = re.compile(r"(What|Whose|Who|Of|Where|By)\b|.*\b(of|by|in) which\b")
MAX_LENGTH = 100
ALLOWED: dict[str, int] = {}
"""Offenders that are left in a package; all others have none."""


def first_lines(path: Path) -> list[str]:
    """Return the first lines of all docstrings of a module."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    return [text.split("\n")[0] for node in nodes if (text := ast.get_docstring(node))]


def offenders() -> dict[str, list[str]]:
    """Return the first lines that break a rule, by package."""
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        package = parts[0] if len(parts) > 1 else "top"
        for line in first_lines(path):
            if INVERTED.match(line) or len(line) > MAX_LENGTH:
                found.setdefault(package, []).append(f"{path.relative_to(ROOT)}: {line}")
    return found


@pytest.mark.slow
def test_first_lines_are_plain():
    """No package has more offenders than allowed, and no allowance is larger than needed."""
    found = offenders()
    counts = Counter({package: len(lines) for package, lines in found.items()})
    more = {package: found[package] for package in found if counts[package] > ALLOWED.get(package, 0)}
    assert not more, "\n".join(line for lines in more.values() for line in lines)
    assert {package: counts[package] for package in ALLOWED} == ALLOWED


if __name__ == "__main__":
    print({package: len(lines) for package, lines in sorted(offenders().items())})
