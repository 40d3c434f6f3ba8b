"""Measure the speed and the memory of tensornp, and print Markdown tables.

Contestants run in turns, many short rounds of each; ratios are taken round by round, and given as the median with the
10th and the 90th percentile. A claim that does not hold is said to, and fails nothing: machines differ.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib import import_module

QUESTIONS = {
    "card": "What does a card cost, beside what else shows a tensor?",
    "scale": "Does the card of a huge tensor cost what the card of a small one costs?",
    "memory": "What do the search for other names and the fingerprint cost?",
    "convert": "What does to_numpy cost, beside plain PyTorch?",
    "kinds": "What do the card and the refusal of every kind in the gallery cost?",
    "values": "What do statistics, heat maps and comparisons cost, beside a plain read and plain torch?",
    "weights": "What do listing, slicing and scanning a checkpoint cost, beside the libraries that read it?",
    "load": "What does loading cost, beside importing torch?",
    "toggle": "How long does the toggle take, in JupyterLab and Chromium?",
    "navigator": "How long do a move and a search take, from key to paint in JupyterLab and Chromium?",
}
"""The questions by the name of the module that answers them."""


def main() -> None:
    """Answer the questions that were asked, one after the other."""
    options = _parse_options()
    versions = {name: import_module(name).__version__ for name in ("torch", "numpy", "IPython")}
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}")
    for name in options.only or QUESTIONS:
        print(f"\n## {name}: {QUESTIONS[name]}\n", flush=True)
        for block in import_module(name).report(quick=options.quick):
            if block:
                print(f"{block}\n", flush=True)


def _parse_options() -> argparse.Namespace:
    summary, details = (__doc__ or "").split("\n\n")
    questions = "\n".join(f"  {name:9} {question}" for name, question in QUESTIONS.items())
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
    return parser.parse_args()


if __name__ == "__main__":
    main()
