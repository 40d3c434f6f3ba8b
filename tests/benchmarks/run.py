"""Measure the speed and the memory of tensornp, and print one Markdown table for each question.

Contestants run in turns, many short rounds of each; times are taken round by round, and given as the median with the
10th and the 90th percentile. A claim that does not hold is said to, and fails nothing: machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from side_by_side import Figure, table

QUESTIONS = {
    "card": "What does a card cost, beside what else shows a tensor?",
    "felt": "How long do a first card and a later one take in a kernel, from the cell to its end, beside print?",
    "convert": "What does to_numpy cost, beside plain PyTorch?",
    "values": "What do statistics and comparisons cost, beside a plain read and plain torch?",
    "weights": "What do listing, slicing and scanning a checkpoint cost, beside the libraries that read it?",
    "passes": "What does following a pass cost, beside the same step that nobody follows?",
    "command_line": "What CPU time does a list on the command line take, beside importing NumPy?",
    "load": "What does loading cost, beside importing torch?",
    "toggle": "How long does the toggle take, in JupyterLab and Chromium?",
    "navigator": "How long do a move and a search take, from key to paint in JupyterLab and Chromium?",
}
"""The questions by the name of the module that answers them."""


def main() -> None:
    """Answer the questions that were asked, one after the other."""
    options = _parse_options()
    # What pip installs has its bytecode, and so has what is loaded here, whatever the environment says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    run: dict[str, Any] = {"machine": _machine(), "figures": []}
    print(run["machine"])
    for name in options.only or QUESTIONS:
        figures, notes = _answered(name, quick=options.quick)
        print("\n" + "\n\n".join([f"## {QUESTIONS[name]}", table(figures), *notes]), flush=True)
        run["figures"] += [{"question": name, **asdict(figure)} for figure in figures]
    if options.json:
        options.json.write_text(json.dumps(run, indent=1), encoding="utf-8")


def _machine() -> str:
    versions = ", ".join(f"{name} {import_module(name).__version__}" for name in ("torch", "numpy", "IPython"))
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, Python {platform.python_version()}, {versions}"


def _answered(name: str, *, quick: bool) -> tuple[list[Figure], list[str]]:
    """Return the figures that a module reports, and its sentences."""
    found = list(import_module(name).report(quick=quick))
    return [one for one in found if isinstance(one, Figure)], [one for one in found if isinstance(one, str) and one]


def _parse_options() -> argparse.Namespace:
    summary, details = (__doc__ or "").split("\n\n")
    questions = "\n".join(f"  {name:12} {question}" for name, question in QUESTIONS.items())
    parser = argparse.ArgumentParser(
        description=summary,
        epilog=f"questions:\n{questions}\n\n{details}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller tensors")
    parser.add_argument(
        "--only", action="append", choices=QUESTIONS, metavar="NAME", help="answer this question; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
