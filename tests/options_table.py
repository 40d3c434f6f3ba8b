"""Make the table of options in the documentation: `python tests/options_table.py` writes it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from tensornp.core.summary.options import DisplayOptions

PAGE = Path(__file__).parents[1] / ".docs" / "options.md"
HEAD = "| option | default | meaning |\n| --- | --- | --- |\n"


def table() -> str:
    """Return the table in Markdown: name, default and help of each option."""
    rows = (
        f"| `{option.name}` | `{option.default}` | {option.metadata['help']} |" for option in fields(DisplayOptions)
    )
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + table(), encoding="utf-8")
