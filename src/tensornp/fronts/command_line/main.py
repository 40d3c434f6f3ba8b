"""The command ``tensornp``: list, scan or compare checkpoints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import tensornp
from tensornp.core.lowlevel.fallback import RAISE
from tensornp.core.lowlevel.text import counted
from tensornp.errors import BadRequestError, TensornpError
from tensornp.fronts.command_line.arguments import parsed, parser

if TYPE_CHECKING:
    import argparse

    from tensornp.render.layout.document import Document

EQUAL, DIFFERENT, TROUBLE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


class _Answer(NamedTuple):
    """The result of a command: document, JSON record, exit status and problem."""

    document: Callable[[], Document]
    record: Callable[[], dict[str, Any]]
    status: int = EQUAL
    trouble: str = ""


def main() -> int:
    """Run the command with the arguments of the process; return the exit status."""
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its status."""
    for stream in (sys.stdout, sys.stderr):
        # A replacement for a stream may have no encoding.
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python would print an error when it writes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EQUAL
    except TensornpError as error:
        return _trouble(str(error))
    except OSError as error:
        return _trouble(": ".join(filter(None, (error.filename, error.strerror))) or str(error))
    except Exception as error:
        if os.environ.get(RAISE):
            raise
        return _trouble(f"this should not have happened, {type(error).__name__}: {error} ({RAISE}=1 shows where)")


def _run(arguments: Sequence[str]) -> int:
    made = parser()
    asked = parsed(made, arguments)
    if asked.help:
        return _print(made.format_help().rstrip())
    if asked.version:
        return _print(f"tensornp {tensornp.__version__}")
    return _answered(asked)


def _answered(asked: argparse.Namespace) -> int:
    answer = {"": _listed, "scan": _scanned, "diff": _compared}[asked.command](asked)
    if answer.trouble:
        _trouble(answer.trouble)
    if asked.html:
        _write_page(asked.html, answer.document(), asked.paths)
    return _print(_text_of(answer, asked), answer.status) if asked.json or not asked.html else answer.status


def _listed(asked: argparse.Namespace) -> _Answer:
    from tensornp.fronts.command_line.records import listed_record
    from tensornp.models.outline.columns import column_called
    from tensornp.render.models.weights import weights_document

    (explorer,) = _opened(asked)
    order = column_called(asked.sort) if asked.sort else None
    document = partial(weights_document, explorer, max_rows=None, order=order)
    return _Answer(document, partial(listed_record, explorer, order))


def _scanned(asked: argparse.Namespace) -> _Answer:
    from tensornp.fronts.command_line.records import scanned_record
    from tensornp.render.models.scan import scan_document

    (explorer,) = _opened(asked)
    # Ctrl-C ends the scan, which then has a partial result.
    found = explorer.scan(progress=_progress())
    unread = [name for name in found.failed if name not in explorer or not explorer[name].problem]
    lost = [one for one in explorer.values() if one.problem and not one._is_pending and not one._is_nothing]
    status = INTERRUPTED if found.num_left else TROUBLE if unread or lost else EQUAL
    trouble = f"{counted(len(unread) + len(lost), 'weight')} could not be read" if status == TROUBLE else ""
    document = partial(scan_document, found, ("--json", "--json"))
    return _Answer(document, partial(scanned_record, explorer, found), status, trouble)


def _compared(asked: argparse.Namespace) -> _Answer:
    from tensornp.fronts.command_line.records import compared_record
    from tensornp.models.comparing.compare import compare
    from tensornp.models.files.address import shown_path
    from tensornp.render.models.comparison import weights_comparison_document

    first, second = _opened(asked)
    found = compare(first, second, progress=_progress())
    differs = found.changed() or found.missing or found.unexpected or found._beside
    status, trouble = (DIFFERENT, "") if differs else (EQUAL, "")
    if not (found.equal or differs):
        status, trouble = TROUBLE, "what could be compared is equal, and not all could be"
    called = f"tnp.compare({', '.join(repr(shown_path(path)) for path in asked.paths)})"
    document = partial(weights_comparison_document, found, called)
    return _Answer(document, partial(compared_record, found), status, trouble)


def _opened(asked: argparse.Namespace) -> list[Any]:
    """Open the paths, filtered by `--find`; raise BadRequestError if no name matches."""
    from tensornp.models.weights import weights

    whole = [weights(path) for path in asked.paths]
    if not asked.find:
        return whole
    found = [explorer.find(asked.find) for explorer in whole]
    if any(whole) and not any(found):
        raise BadRequestError(f"no name{' in either' if len(found) > 1 else ''} fits {asked.find!r}")
    for some, explorer in zip(found, whole, strict=True):
        # Problems and calls of a file are told whatever the search finds.
        some.problems = explorer.problems
    return found


def _progress() -> Any:
    """Return None for a progress bar on a terminal, else False."""
    from tensornp.fronts.command_line.colours import is_terminal

    return None if is_terminal(sys.stderr) else False


def _text_of(answer: _Answer, asked: argparse.Namespace) -> str:
    if asked.json:
        from tensornp.fronts.command_line.records import json_of

        return json_of(answer.record())
    from tensornp.fronts.command_line.colours import coloured, is_coloured

    document = answer.document()
    return coloured(document) if is_coloured(asked.color) else document.text()


def _write_page(path: str, document: Document, sources: Sequence[str]) -> None:
    """Write a page to a path, unless it is one of the sources."""
    from tensornp.render.layout.document import page_of

    if any(os.path.exists(path) and os.path.exists(one) and os.path.samefile(path, one) for one in sources):
        raise BadRequestError(f"--html must be another file, got the checkpoint {path!r}; nothing was written")
    page = page_of(document.html())
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page)


def _print(text: str, status: int = EQUAL) -> int:
    print(text, flush=True)
    return status


def _trouble(text: str) -> int:
    """Print a problem in one line; return the status of it."""
    from tensornp.core.lowlevel.text import legible

    # A stream that was closed before the start is None.
    with suppress(AttributeError, OSError):
        print(f"tensornp: {legible(text)}", file=sys.stderr, flush=True)
    return TROUBLE
