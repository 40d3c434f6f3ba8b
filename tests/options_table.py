"""The README's table of options: `python tests/options_table.py` prints it, `--write` puts it into the README."""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from tensornp.core.lowlevel.units import format_nbytes
from tensornp.core.summary.options import DisplayOptions

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- made by tests/options_table.py -->", "<!-- end of the options -->"


def table() -> str:
    """Return the table in Markdown: each option, its default, and what it means."""
    rows = [(f"`{option.name}`", _default(option), option.metadata["help"]) for option in fields(DisplayOptions)]
    lines = [("`%config TensorDisplay.…`", "default", ""), ("---", "---", "---"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _default(option: Field[Any]) -> str:
    variable, default = option.metadata.get("environment"), option.default
    if variable:
        return f"`True`, unless `{variable}=0`"
    in_units = f" ({format_nbytes(default)})" if "nbytes" in option.name and default else ""
    return f"`{default}`{in_units}"


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
