"""The README's table of what becomes of every kind of tensor: `python tests/gallery_table.py` prints it, `--write` puts
it into the README.

Each kind of the gallery is made in processes of its own, which may die: once for the folk recipe, once for torch's own
`repr`, once for tensornp.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import gallery_child
from gallery import names_by_group

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- made by tests/gallery_table.py -->", "<!-- end -->"
HEADINGS = (
    "", "kinds", "recipe: right", "raises", "wrong", "kills the process",
    "tensornp: right", "refused, with the cure", "wrong", "torch's `repr` raises", "kills the process",
)  # fmt: skip


def table() -> str:
    """Return the table in Markdown: the kinds of each group by what becomes of them, and the sums."""
    rows = [[group, *counts(names)] for group, names in names_by_group()]
    rows.append(["**all**", *map(sum, zip(*(row[1:] for row in rows), strict=True))])
    lines = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def counts(names: list[str]) -> list[int]:
    """Return the figures of one row, in the order of the headings."""
    recipe = Counter(outcome(gallery_child.recipe, name) for name in names)
    shown = Counter(outcome(gallery_child.torch_repr, name) for name in names)
    ours = Counter(outcome(gallery_child.ours, name) for name in names)
    return [
        len(names), recipe["right"], recipe["raised"], recipe["wrong"], recipe["died"],
        ours["right"], ours["refused"], len(names) - ours["right"] - ours["refused"],
        shown["raised"], shown["died"],
    ]  # fmt: skip


def outcome(task, name: str) -> str:
    """Return how a task ended: its own word for it, "raised" or "died"."""
    how, what = gallery_child.run(task, name)
    assert how != "raised", f"{name}: {what}"
    return what if how == "returned" else how


def in_readme() -> str:
    """Return the table that the README holds."""
    return README.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def main() -> None:
    made = table()
    print(made)
    if "--write" in sys.argv[1:]:
        before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        README.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
