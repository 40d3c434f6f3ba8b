"""What words, a glob or a regular expression match of a name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import closest, shown_name

_WILDCARDS = frozenset("*?[")
_WILDCARD = re.compile(r"\*|\?|\[.*")
_WORD = re.compile(r"(?:\[[^\]]*\]|\S)+")


def fitting(pattern: str | re.Pattern[Any], names: Sequence[str]) -> list[int]:
    """Return the places of the names that fit: in which a regular expression is found, or all words.

    A word is a part of the name, or a glob: one without a star at either end may fit anywhere in it. Whether letters
    are capitals only matters where capitals are typed.
    """
    if isinstance(pattern, re.Pattern) and not isinstance(pattern.pattern, bytes):
        return [i for i, name in enumerate(names) if pattern.search(name)]
    if not isinstance(pattern, str):
        said = "an expression of bytes" if isinstance(pattern, re.Pattern) else an_instance(pattern)
        raise BadRequestError(f"a weight is found by a glob or a compiled regular expression, not by {said}")
    # Capitals are meant where they are typed.
    searched = names if pattern != pattern.lower() else [name.lower() for name in names]
    found = list(range(len(names)))
    for word in words_of(pattern):
        # A pass over all names for each word: a call for each name would take ten times as long.
        found = _having(word, searched, found)
    return found


def words_of(pattern: str) -> list[str]:
    """Return what is searched for, each word by itself; a space between brackets parts none."""
    return _WORD.findall(pattern)


def none_fits(pattern: str, names: Sequence[str]) -> str:
    """Return that no name fits a pattern, and what part of one is closest to the first word of it that none has."""
    parts = dict.fromkeys(part for name in names for part in name.split("."))
    missing = (word for word in words_of(pattern) if not fitting(word, names))
    return f"no name fits {shown_name(pattern)}" + next(
        filter(None, (closest(one.strip("*"), parts) for one in missing)), ""
    )


def _having(word: str, names: Sequence[str], places: Sequence[int]) -> list[int]:
    """Return at which of these places a name has the word."""
    if _WILDCARDS.isdisjoint(word):
        return [i for i in places if word in names[i]]
    glob = word if word[0] == "*" or word[-1] == "*" else f"*{word}*"
    fits = re.compile(fnmatch.translate(glob)).match
    # Most names are told by a plain text of the pattern, which is found ten times as fast.
    literal = max(_WILDCARD.split(glob), key=len)
    return [i for i in places if literal in names[i] and fits(names[i])]
