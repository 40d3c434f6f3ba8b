"""The command ``tensornp``: list, scan or compare checkpoints."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import tensornp
from tensornp.core.lowlevel.fallback import RAISE
from tensornp.core.lowlevel.text import counted
from tensornp.errors import BadRequestError, TensornpError
from tensornp.models.names.quoted import closest

if TYPE_CHECKING:
    from tensornp.render.layout.document import Document

EQUAL, DIFFERENT, TROUBLE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""
COMMANDS = ("scan", "diff")
"""The words that may stand before a path: read all values, and compare the weights of two."""
SORTED_BY = ("name", "kind", "shape", "elements", "dtype", "where", "bytes", "notes")
"""Columns by which weights are sorted that are known without reading a value."""
_OF_ENTRY = "name kind shape dtype nbytes location tied_to note problem wanted_imports".split()
_OF_STATS = "count nan posinf neginf zeros min max mean std norm scope".split()
_OF_COMPARED = (
    "equal same_bits verdict max_abs relative cosine_distance changed_fraction _only_finite_first _only_finite_second"
).split()
_OF_BOTH = ("equal same_bits missing unexpected _renamed reshaped retyped _beside _exempt failed _not_listed").split()
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


class _Answer(NamedTuple):
    """The result of a command: document, JSON record, exit status and problem."""

    document: Callable[[], Document]
    record: Callable[[], dict[str, Any]]
    status: int = EQUAL
    trouble: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # A replacement for a stream may have no encoding.
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        made = parser()
        asked = parsed(made, sys.argv[1:] if arguments is None else arguments)
        if asked.help or asked.version:
            print(made.format_help().rstrip() if asked.help else f"tensornp {tensornp.__version__}", flush=True)
            return EQUAL
        return _answered(asked)
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
        near = closest(asked.paths[0], COMMANDS) if asked.paths and not asked.command else ""
        made.error(f"{called} takes {' and '.join(wanted)}, and {number} {'is' if number == 1 else 'are'} given{near}")
    if asked.sort and asked.command:
        made.error(f"--sort orders a list, and {asked.command} has an order of its own")
    return asked


def _answered(asked: argparse.Namespace) -> int:
    answer = {"": _listed, "scan": _scanned, "diff": _compared}[asked.command](asked)
    if answer.trouble:
        _trouble(answer.trouble)
    if asked.html:
        from tensornp.render.layout.document import page_of

        if any(os.path.exists(one) and os.path.realpath(one) == os.path.realpath(asked.html) for one in asked.paths):
            raise BadRequestError(f"--html must be another file, got the checkpoint {asked.html!r}")
        page = page_of(answer.document().html())
        Path(asked.html).write_text(page, encoding="utf-8", errors="backslashreplace")
    if asked.json:
        print(json.dumps(_plain(answer.record()), indent=1, allow_nan=False), flush=True)
    elif not asked.html:
        print(answer.document().text(), flush=True)
    return answer.status


def _listed(asked: argparse.Namespace) -> _Answer:
    from tensornp.models.outline.columns import column_called
    from tensornp.render.models.weights import weights_document

    (explorer,) = _opened(asked)
    order = column_called(asked.sort) if asked.sort else None

    def record() -> dict[str, Any]:
        entries = order.sorted(explorer.values(), lambda one: one) if order else explorer.values()
        weights = [_some(one, _OF_ENTRY) for one in entries]
        head = {"source": explorer.source, "totals": explorer.totals._asdict(), "problems": explorer.problems}
        return {**head, "weights": weights}

    return _Answer(partial(weights_document, explorer, max_rows=None, order=order), record)


def _scanned(asked: argparse.Namespace) -> _Answer:
    from tensornp.render.models.scan import scan_document

    (explorer,) = _opened(asked)
    # Ctrl-C ends the scan, which then has a partial result.
    found = explorer.scan(progress=_progress())
    unread = [name for name in found.failed if name not in explorer or not explorer[name].problem]
    lost = [one for one in explorer.values() if one.problem and not one._is_pending and not one._is_nothing]
    status = INTERRUPTED if found.num_left else TROUBLE if unread or lost else EQUAL
    trouble = f"{counted(len(unread) + len(lost), 'weight')} could not be read" if status == TROUBLE else ""

    def record() -> dict[str, Any]:
        # The worst first.
        weights = [
            {"name": name, "findings": [one.text for one in found.findings(name)], **_some(stats, _OF_STATS)}
            for name, stats in found.items()
        ]
        head = {"source": explorer.source, "complete": found.complete, "problems": explorer.problems}
        return {**head, "failed": found.failed, "weights": weights}

    return _Answer(partial(scan_document, found, ("--json", "--json")), record, status, trouble)


def _compared(asked: argparse.Namespace) -> _Answer:
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

    def record() -> dict[str, Any]:
        # The largest change first.
        weights = [{"name": name, **_some(one, _OF_COMPARED)} for name, one in found.items()]
        sources = dict(zip(("first", "second"), found._sources, strict=True))
        return {**sources, "verdict": found._told(), **_some(found, _OF_BOTH), "weights": weights}

    return _Answer(partial(weights_comparison_document, found, called), record, status, trouble)


def _opened(asked: argparse.Namespace) -> list[Any]:
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
    # A stream that was closed before the start is None.
    return None if sys.stderr is not None and sys.stderr.isatty() else False


def _trouble(text: str) -> int:
    from tensornp.core.lowlevel.text import legible

    with suppress(AttributeError, OSError):
        print(f"tensornp: {legible(text)}", file=sys.stderr, flush=True)
    return TROUBLE


def _some(obj: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name.lstrip("_"): getattr(obj, name) for name in names}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; other objects and non-finite numbers are texts."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
