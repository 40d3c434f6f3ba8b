"""A regular expression that somebody types: tried on names as `re` does it, and given up before one waits long.

Within one match, `re` can neither be stopped nor told a limit. Where the number of its steps is bounded by the length
of the names, it is looked at the clock between these; what repeats a repeat is tried by `re` in a process of its own.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import monotonic

from tensornp.errors import BadRequestError

LIMIT_S = 3.0
_MAX_STEPS = 10_000_000
"""Of one match: some tenths of a second."""
_NUM_BETWEEN = 16
"""Names after which the clock is looked at."""
_REPEATED_GROUP = re.compile(r"\)[*+{]|\(\?[a-zA-Z]*x")
"""A group that is repeated, or may be: with the flag x, anything can stand between it and its star."""
_REPEAT = re.compile(r"[*+?{][?+]?|\\\d|\(\?P=")
_CODE = """
import json, re, signal, sys
text, names, limit = json.load(sys.stdin)
if hasattr(signal, "alarm"):
    signal.alarm(limit)  # also where nobody is left to end it
search = re.compile(text).search
json.dump([i for i, name in enumerate(names) if search(name)], sys.stdout)
"""


def found_by(text: str, names: Sequence[str]) -> list[bool]:
    """Return of each name whether the regular expression `text` is found in it.

    Raises
    ------
    BadRequestError
        If it is none, or takes longer than `LIMIT_S` seconds.
    """
    try:
        search = re.compile(text).search
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        raise BadRequestError(f"/{text}/ is not a regular expression: {error}") from None
    if max(map(len, names), default=0) > _longest_name(text):
        return _found_elsewhere(text, names)
    ends, left, found = monotonic() + LIMIT_S, iter(names), list[bool]()
    while some := list(islice(left, _NUM_BETWEEN)):
        if monotonic() > ends:
            raise _too_long(text)
        found.extend(search(name) is not None for name in some)
    return found


def _longest_name(text: str) -> float:
    """Return how long names may be on which the expression is tried in few steps; nothing if that is not bounded.

    Where no group is repeated, each repeat ends in one of as many places as a name has characters, and each bar gives
    two ways.
    """
    if _REPEATED_GROUP.search(text):
        return 0
    num_repeats = len(_REPEAT.findall(text.replace("(?", "(")))
    return float((_MAX_STEPS / 2 ** text.count("|")) ** (1 / (num_repeats + 1)))


def _found_elsewhere(text: str, names: Sequence[str]) -> list[bool]:
    """Return the same, found by a process that can be ended."""
    import subprocess

    # Where Python is part of another program, that would start once more.
    if "python" not in Path(sys.executable or "").name.lower():
        raise BadRequestError(f"/{text}/ may take for ever, and there is no Python to try it apart; {_CURE}")
    asked = json.dumps([text, list(names), math.ceil(LIMIT_S) + 1]).encode()
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CODE], input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=LIMIT_S, check=True, creationflags=hidden,
        )  # fmt: skip
        at = set(json.loads(answer.stdout))
    except subprocess.TimeoutExpired:
        raise _too_long(text) from None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = f"/{text}/ may take for ever, and cannot be tried apart ({type(error).__name__})"
        raise BadRequestError(f"{said}; {_CURE}") from None
    return [i in at for i in range(len(names))]


_CURE = "write it without a repeat within a repeat, as (a+)+ is"


def _too_long(text: str) -> BadRequestError:
    return BadRequestError(f"/{text}/ was given up after {LIMIT_S:g} seconds; {_CURE}")
