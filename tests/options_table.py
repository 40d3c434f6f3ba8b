"""The README's table of options: `python tests/options_table.py` prints it, `--write` puts it into the README."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from tensornp.core.summary.options import DisplayOptions
from tensornp.render.badges import format_nbytes

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- made by tests/options_table.py -->", "<!-- end of the options -->"


def table() -> str:
    """Return the table in Markdown: each option, its default, and what it means."""
    rows = [
        (f"`{o.name}`", f"`{o.default}`{_in_units(o.name, o.default)}", o.metadata["help"])
        for o in fields(DisplayOptions)
    ]
    lines = [("`%config TensorDisplay.…`", "default", ""), ("---", "---", "---"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _in_units(name: str, default: Any) -> str:
    return f" ({format_nbytes(default)})" if "nbytes" in name and default else ""


def in_readme() -> str:
    """Return the table that the README holds."""
    return README.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def main() -> None:
    """Print the table, or write it."""
    print(table())
    if "--write" in sys.argv[1:]:
        text = README.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        README.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
