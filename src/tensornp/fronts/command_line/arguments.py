"""The arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from tensornp.errors import BadRequestError

COMMANDS = {
    "scan": "read all values, and tell what stands out",
    "diff": "compare the weights of two paths",
}
"""The words that may stand before a path, with what each does."""
SORTED_BY = ("name", "kind", "shape", "elements", "dtype", "where", "bytes", "notes")
"""Columns by which weights are sorted that are known without reading a value."""
_USAGE = """tensornp [OPTION ...] PATH
       tensornp scan [OPTION ...] PATH
       tensornp diff [OPTION ...] A B"""
_EPILOG = """A path is a safetensors file, one of torch.save, GGUF, .npy or .npz, an index of
several, or a folder: of these, of torch.distributed.checkpoint, or of weights
that accelerate has offloaded; or the address of a file or an index, such as
https://host/model.safetensors or s3://bucket/model.safetensors. A list reads
only the header of a file, and runs nothing in it. tensornp ./scan lists a file
called scan.

The exit status is 0; diff returns 1 if weights differ. It is 2 after an error,
which is printed in one line."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise BadRequestError."""
        raise BadRequestError(f"{message}; tensornp --help tells what there is")


def parser() -> Parser:
    """Return the parser of the command line."""
    made = Parser(
        "tensornp", _USAGE, "List the weights of a checkpoint, scan their values, or compare two of them.", _EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, add_help=False,
    )  # fmt: skip
    made.add_argument("paths", nargs="*", metavar="PATH", help=argparse.SUPPRESS)
    made.add_argument("--find", metavar="WORDS", help="only weights whose names have these words or fit these globs")
    made.add_argument("--sort", metavar="COLUMN", choices=SORTED_BY, help=f"one of {', '.join(SORTED_BY)}")
    made.add_argument("--json", action="store_true", help="print JSON, in which every weight is by itself")
    made.add_argument("--html", metavar="FILE", help="write a page that stands alone to FILE, and print nothing")
    made.add_argument(
        "--color", metavar="WHEN", choices=("auto", "always", "never"), default="auto",
        help="auto, always or never; auto heeds NO_COLOR",
    )  # fmt: skip
    made.add_argument("--version", action="store_true", help="print the version")
    made.add_argument("-h", "--help", action="store_true", help="print this help")
    return made


def parsed(made: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed options, with `command` and `paths`; BadRequestError if they make no sense."""
    # The parser does not know two dashes among what is intermixed.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    asked = made.parse_intermixed_args(arguments[:end])
    asked.paths += arguments[end + 1 :]
    asked.command = asked.paths.pop(0) if asked.paths and asked.paths[0] in COMMANDS else ""
    if asked.version or asked.help:
        return asked
    wanted = ("A", "B") if asked.command == "diff" else ("PATH",)
    if len(asked.paths) != len(wanted):
        called = f"tensornp {asked.command}".strip()
        number = len(asked.paths) or "none"
        made.error(f"{called} takes {' and '.join(wanted)}, and {number} {'is' if number == 1 else 'are'} given")
    if not all(path.strip() for path in asked.paths):
        made.error("an empty text is no path; . is the current folder")
    if asked.sort and asked.command:
        made.error(f"--sort orders a list, and {asked.command} has an order of its own")
    return asked
