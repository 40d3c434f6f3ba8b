"""CONTRIBUTING's table of what becomes of every kind of tensor: `python tests/gallery_table.py` prints it, `--write`
puts it there.

Each kind of the gallery is made in processes that may die: for tensornp, for torch's own `repr`, and for the folk
recipe.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from forked import Ending
from gallery import names_by_group
from gallery_child import OUTCOMES, endings

PAGE = Path(__file__).parents[1] / ".github" / "CONTRIBUTING.md"
BEGIN, END = "<!-- made by tests/gallery_table.py -->", "<!-- end -->"
HEADINGS = (
    "", "kinds", "recipe: right", "raises", "wrong", "kills the process",
    "tensornp: right", "refused, with the cure", "wrong", "torch's `repr` raises", "kills the process",
)  # fmt: skip


def outcomes(name: str) -> dict[str, Ending]:
    """Return what becomes of one kind, by the task that tells."""
    return endings(name, *OUTCOMES)


def table(outcomes: Callable[[str], dict[str, Ending]] = outcomes) -> str:
    """Return the table in Markdown: the kinds of each group by what becomes of them, and the sums."""
    rows = [[group, *counts([outcomes(name) for name in names])] for group, names in names_by_group()]
    rows.append(["**all**", *map(sum, zip(*(row[1:] for row in rows), strict=True))])
    lines = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def counts(kinds: list[dict[str, Ending]]) -> list[int]:
    """Return the figures of one row, in the order of the headings."""
    ours, shown, recipe = (Counter(in_a_word(kind[task.__name__]) for kind in kinds) for task in OUTCOMES)
    return [
        len(kinds), recipe["right"], recipe["raised"], recipe["wrong"], recipe["died"],
        ours["right"], ours["refused"], len(kinds) - ours["right"] - ours["refused"],
        shown["raised"], shown["died"],
    ]  # fmt: skip


def in_a_word(ending: Ending) -> str:
    """Return how a task ended: its own word for it, or "died"."""
    how, what = ending
    assert how != "raised", what
    return what if how == "returned" else how


def written() -> str:
    """Return the table that the page holds."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def main() -> None:
    made = table()
    print(made)
    if "--write" in sys.argv[1:]:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
