"""What a part of a name, a glob or a regular expression matches."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.errors import BadRequestError

_WILDCARDS = frozenset("*?[")
_WILDCARD = re.compile(r"\*|\?|\[.*")


def matcher(pattern: str | re.Pattern[Any]) -> Callable[[str], object]:
    """Return what tells whether a name fits: a regular expression that is found in it, a glob, or a part of it."""
    if isinstance(pattern, re.Pattern) and not isinstance(pattern.pattern, bytes):
        return pattern.search
    if not isinstance(pattern, str):
        said = "an expression of bytes" if isinstance(pattern, re.Pattern) else an_instance(pattern)
        raise BadRequestError(f"a weight is found by a glob or a compiled regular expression, not by {said}")
    if _WILDCARDS.isdisjoint(pattern):
        return lambda name: pattern in name
    fits = re.compile(fnmatch.translate(pattern)).match
    # Most names are told by a plain text of the pattern, which is found ten times as fast.
    literal = max(_WILDCARD.split(pattern), key=len)
    return lambda name: literal in name and fits(name)
